"""`recompute_grad`: a function whose gradient computes its values again."""

import numpy as np
import pytest

import cytape
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.autodiff.custom.test_custom_gradient import gradient_of
from tests.cases import each


def both_ways(f, *args, **options):
    """Compare a function's values and derivatives with and without recomputation."""
    recomputed = cytape.recompute_grad(f)
    for plain, again in zip(
        gradient_of(f, *args, **options), gradient_of(recomputed, *args, **options), strict=True
    ):
        for a, b in zip(plain, again, strict=True):
            if a is None:
                assert b is None
            else:
                np.testing.assert_allclose(a.numpy(), b.numpy())
                assert a.dtype == b.dtype
    return recomputed


def test_D_2_33_f_runs_once_forward_and_once_in_each_backward_pass():
    runs = []

    def f(x):
        runs.append(None)
        return np.tanh(x * x)

    recomputed = cytape.recompute_grad(f)
    x = cytape.constant(0.5)
    tape, y = ways.taped(recomputed, x, persistent=True)
    assert len(runs) == 1
    expected = 2 * 0.5 * (1 - np.tanh(0.25) ** 2)
    for n_runs in (2, 3):
        assert float(tape.gradient(y, x)) == pytest.approx(expected)
        assert len(runs) == n_runs
    assert recomputed.__wrapped__ is f


def test_D_2_33_nothing_is_kept_forward():
    x = cytape.constant(np.ones(3))

    def block(x):
        for _ in range(20):
            x = np.tanh(x)
        return x

    with ways.watching(x) as tape:
        before = live_tensors()
        y = cytape.recompute_grad(block)(x)
        assert live_tensors() == before + 2  # y, and what x names as long as it is not changed
    np.testing.assert_allclose(
        tape.gradient(y, x).numpy(), gradient_of(block, np.ones(3))[0][0].numpy())


@each("x", [0.5, np.array([0.5, 2.0]), np.ones((0, 3)), np.float32(0.5)])
def test_D_2_33_same_values_and_derivatives(x):
    both_ways(lambda x: np.tanh(x) * x**2, x)


def test_D_2_33_variables_that_are_read_inside():
    v, w = cytape.Variable([1.0, 2.0]), cytape.Variable(3.0, trainable=False)
    both_ways(lambda x: np.sin(x * v) * w, 0.5)
    recomputed = cytape.recompute_grad(lambda x: np.sin(x * v) * w)
    x = cytape.constant(0.5)
    with ways.watching(x) as tape:
        y = recomputed(x)
        assert tape.watched_variables() == (v,)
    by_x, by_v, by_w = tape.gradient(y, [x, v, w])
    np.testing.assert_allclose(by_x.numpy(), np.sum(np.cos([0.5, 1.0]) * [1, 2] * 3))
    np.testing.assert_allclose(by_v.numpy(), np.cos([0.5, 1.0]) * 0.5 * 3)
    assert by_w is None


def test_D_2_33_variables_as_arguments():
    v = cytape.Variable([1.0, 2.0])
    both_ways(lambda v: np.sin(v) * v, v)
    both_ways(lambda u, v: np.sin(u) * v * v, v, v)
    both_ways(lambda v: np.sin(v) * v, cytape.Variable(0.5, trainable=False))


def test_D_2_33_the_same_tensor_twice():
    x = cytape.constant(3.0)
    recomputed = cytape.recompute_grad(lambda x, y: x * x * y)
    assert float(ways.gradient(lambda x: recomputed(x, x), x)) == 27.0


def test_D_2_33_integer_inputs():
    recomputed = cytape.recompute_grad(lambda x, n: x**n)
    x, n = cytape.constant(3.0), cytape.constant(2)
    tape, y = ways.taped(lambda x: recomputed(x, n), x)
    gradients = tape.gradient(y, [x, n])
    assert float(gradients[0]) == 6.0
    assert gradients[1] is None


def test_recompute_structures_keywords_and_plain_arrays():
    def f(weights, *, scale, power=2):
        return {"y": [(weights["w"] * scale) ** power], "n": np.argmax(weights["w"])}

    recomputed = cytape.recompute_grad(f)
    w, scale = cytape.constant([1.0, 2.0]), cytape.constant(3.0)
    tape, y = ways.taped(lambda w, scale: recomputed({"w": w}, scale=scale, power=3), w, scale)
    by_w, by_scale = tape.gradient(y["y"], [w, scale])
    assert by_w.numpy().tolist() == [81.0, 324.0]
    assert float(by_scale) == 3 * 9 * (1 + 8)
    assert int(y["n"]) == 1
    plain = recomputed({"w": np.ones(2)}, scale=2.0)
    assert type(plain["y"][0]) is np.ndarray


def test_recompute_a_function_that_takes_a_gradient_itself():
    def f(x):
        return cytape.grad(lambda y: y**3 * x)(x)  # 3 x^3

    recomputed = cytape.recompute_grad(f)
    first, second = gradient_of(recomputed, 2.0)
    assert float(recomputed(cytape.constant(2.0))) == 24.0
    assert float(first[0]) == 36.0
    assert float(second[0]) == 36.0
