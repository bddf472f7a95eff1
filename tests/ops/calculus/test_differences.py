"""Differences, gradients, sums and unwrapping: what the op table does not state."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each

X = np.array([1.0, 4.0, 9.0, 16.0])


def test_differences_of_truth_values_are_changes():
    x = np.array([True, False, False])
    np.testing.assert_array_equal(np.diff(cytape.constant(x)), np.diff(x))


@each("make", [cytape.constant, cytape.Variable])
def test_differences_of_dates_are_spans_of_time(make):
    dates = np.array(["2020-01-01", "2020-01-05", "2020-03-01"], "M8[D]")
    np.testing.assert_array_equal(np.ediff1d(make(dates)), np.ediff1d(dates), strict=True)


def test_a_difference_of_no_order_is_the_operand():
    x = cytape.constant(X)
    assert np.diff(x, 0) is x
    assert isinstance(cnp.diff([x, x], 0), cytape.Tensor)
    np.testing.assert_array_equal(cnp.diff([x, x], 0), [X, X])
    assert isinstance(cnp.diff(X, 0, prepend=x[0]), cytape.Tensor)


@each(axis=[0, 1], gradient=[1.0, -0.0, np.inf, np.nan, None])
def test_gradients_of_large_differences(gradient, axis):
    x = cytape.constant(np.random.default_rng(0).normal(size=(60, 70)))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = np.diff(x, axis=axis)
    g = np.random.default_rng(1).normal(size=y.shape) if gradient is None else (
        np.broadcast_to(gradient, y.shape))
    lines, expected = np.moveaxis(g, axis, 0), np.zeros((60, 70))
    np.moveaxis(expected, axis, 0)[1:] = lines
    with np.errstate(invalid="ignore"):
        found = tape.gradient(y, x, output_gradients=g)
        np.moveaxis(expected, axis, 0)[:-1] -= lines
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@each("n", [0, 1, 3])
def test_differences_of_as_many_as_a_run_tells(n):
    f = cytape.function(cytape.grad(lambda x: np.sum(np.diff(x) ** 2)),
                        input_signature=[cytape.Spec.of((None,), float)])
    x = X[:n]
    expected = np.zeros(n)
    expected[1:] += 2 * np.diff(x)
    expected[:-1] -= 2 * np.diff(x)
    np.testing.assert_array_equal(f(x), expected)


def test_integers_become_floats():
    x = np.array([1, 5, 2])
    np.testing.assert_array_equal(np.gradient(cytape.constant(x)), np.gradient(x))
    coordinates = np.array([0, 1, 3])
    np.testing.assert_array_equal(
        np.gradient(cytape.constant(X[:3]), coordinates), np.gradient(X[:3], coordinates))


def test_unwrapping_moves_with_what_is_unwrapped():
    jump = np.array([0.0, 6.0, 12.0])
    np.testing.assert_array_equal(cytape.grad(lambda p: np.sum(np.unwrap(p) * X[:3]))(jump), X[:3])


def test_unwrapped_values_are_numpys_to_the_bit_where_steps_are_half_a_period():
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        for period in (0.3, 0.1, 0.7, 2 * np.pi):
            x = rng.integers(-6, 7, (50, 6)) * 0.5 * period + rng.choice([0.0, 0.1, 0.3], (50, 1))
            for p in x.astype(dtype):
                np.testing.assert_array_equal(
                    np.unwrap(cytape.constant(p), period=period), np.unwrap(p, period=period))
