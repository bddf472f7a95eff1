import itertools

import numpy as np
import pytest

from examples import digits


@pytest.fixture(scope="module")
def data():
    return digits.load_digits()


def test_data_is_complete_and_split_without_overlap(data):
    images, labels, test_images, test_labels = data
    assert images.shape == (1437, 64)
    assert test_images.shape == (360, 64)
    assert set(labels) == set(test_labels) == set(range(10))
    assert not {row.tobytes() for row in images} & {row.tobytes() for row in test_images}


def test_three_epochs_of_training_lower_the_loss(data):
    images, labels, test_images, test_labels = data
    parameters = digits.make_parameters()
    losses = list(digits.train(parameters, images, labels, epochs=3))
    assert all(after < before for before, after in itertools.pairwise(losses))
    assert np.mean(digits.predict(parameters, test_images) == test_labels) > 0.9


def test_gradients_agree_with_central_differences_and_with_the_reference_tape(data):
    _, _, images, labels = data
    parameters = digits.make_parameters()
    assert digits.central_difference_error(parameters, images, labels) < 1e-6
    assert digits.reference_difference(parameters, images, labels) < 1e-12


def test_progress_is_plain_lines_unless_on_a_terminal(capsys):
    digits.show_progress("half", done=False)
    digits.show_progress("all", done=True)
    assert capsys.readouterr().out == "half\nall\n"


def test_picture_is_drawn(data, tmp_path):
    pytest.importorskip("matplotlib")
    _, _, images, labels = data
    predictions = labels.copy()
    predictions[[5, 50]] = (labels[[5, 50]] + 1) % 10
    path = tmp_path / "output" / "digits.png"
    digits.draw([2.0, 1.0, 0.5], [0.5, 0.8, 0.9], images, labels, predictions, path)
    assert path.read_bytes().startswith(b"\x89PNG")
