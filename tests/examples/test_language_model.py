import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from examples import language_model


def test_thirty_steps_lower_the_loss_on_text_that_was_held_out(capsys):
    losses, held_out = language_model.main(short=True)
    uniform = np.log(len(language_model.load_text()[2]))
    assert losses[0] > uniform - 0.5
    assert held_out < losses[0] - 1
    assert f"{held_out:.2f} on held-out text" in capsys.readouterr().out


def test_gradients_agree_with_differences(monkeypatch):
    for name, value in {"CONTEXT": 5, "WIDTH": 4, "HEADS": 2, "LAYERS": 1}.items():
        monkeypatch.setattr(language_model, name, value)
    parameters = language_model.make_parameters(7)
    names = [key for key in parameters if key != "blocks"]
    given = [*[parameters[key] for key in names], *parameters["blocks"][0].values()]
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 7, (2, 6))

    def loss(*arrays):
        packed = dict(zip(names, arrays, strict=False))
        packed["blocks"] = [dict(zip(parameters["blocks"][0], arrays[len(names):], strict=True))]
        return language_model.loss_of(packed, texts)

    check_grads(loss, [rng.normal(size=variable.shape) for variable in given], order=1)


def test_the_model_does_not_see_later_characters():
    numbers, _, characters = language_model.load_text()
    parameters = language_model.make_parameters(len(characters))
    text = numbers[None, :20].copy()
    before = language_model.logits_of(parameters, text)[0, :10].numpy()
    text[0, 10:] = 0
    np.testing.assert_allclose(
        language_model.logits_of(parameters, text)[0, :10], before, rtol=1e-5, atol=1e-5)
    assert isinstance(parameters["logits"], cytape.Variable)


def test_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    path = language_model.draw(np.linspace(4, 2, 50), 2.1, tmp_path / "output" / "model.png")
    assert path.read_bytes().startswith(b"\x89PNG")
