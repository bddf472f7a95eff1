"""Gradients and tangents of reduced slices: against one slice after the other."""

import functools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.calculus.slice_extrema import fold_at_extrema, spread, spread_to_extrema
from tests.cases import each

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"]
INDICES = {
    "in order": [0, 2, 3, 11], "after the start": [4, 9], "repeated": [1, 1, 2, 2],
    "unsorted": [7, 3, 11, 0, 5, 5, 6], "overlapping": [5, 0, 9, 2], "one": [11], "none": []}
SHAPES = [((12,), 0), ((12, 3), 0), ((3, 12), 1), ((2, 12, 4), 1)]


def slices(indices, n):
    following = [*indices[1:], n]
    return [slice(i, max(i + 1, j)) for i, j in zip(indices, following, strict=False)]


def drawn(shape, dtype):
    x = RNG.integers(-3, 4, shape)
    return (x + 1j * RNG.integers(-1, 2, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@each(dtype=DTYPES, indices=INDICES)
@each(("shape", "axis"), SHAPES)
@each("negative", [False, True])
def test_gradients_are_spread_and_added(shape, axis, indices, dtype, negative):
    parts = slices(INDICES[indices], 12)
    g = drawn([len(parts) if n == 12 else n for n in shape], dtype)
    expected = np.zeros(shape, dtype)
    for k, part in enumerate(parts):
        lines, own = np.moveaxis(expected, axis, 0), np.moveaxis(g, axis, 0)[k]
        lines[part] += -own if negative else own
        lines[part.start] += 2 * own if negative else 0
    found = spread(g, np.array(INDICES[indices], int), 12, axis, negative)
    np.testing.assert_array_equal(found, expected, strict=True)
    found = spread(np.asfortranarray(g), np.array(INDICES[indices], int), 12, axis, negative)
    np.testing.assert_array_equal(found, expected, strict=True)


def weights(name, x):
    """Return the derivative of a fold of few elements in each of them, by its definition."""
    ufunc, found = getattr(np, name), np.zeros(len(x))
    y, found[0] = x[0], 1
    for i, other in enumerate(x[1:], 1):
        if y == other:
            found[:i] /= 2
            found[i] = 0.5
        elif y == y and (ufunc(y, other) == other or other != other and ufunc(y, other) != y) or (
                y != y and ufunc(y, other) == other):
            found[:i], found[i] = 0, 1
        y = ufunc(y, other)
    return found


@each(dtype=DTYPES, indices=INDICES)
@each(("shape", "axis"), SHAPES)
@each(name=["maximum", "minimum", "fmax", "fmin"], nan=[0, 0.3])
def test_extrema_share_gradients_as_in_a_fold(name, shape, axis, indices, dtype, nan):
    parts, at = slices(INDICES[indices], 12), np.array(INDICES[indices], int)
    x = drawn(shape, dtype)
    x[RNG.random(shape) < nan] = np.nan
    y = getattr(np, name).reduceat(x, at, axis)
    g, t = drawn(y.shape, dtype), drawn(shape, dtype)
    to_elements, of_slices = np.zeros(shape, dtype), np.zeros(y.shape, dtype)
    into, lines, moving, gradients, tangents = (
        np.moveaxis(z, axis, 0) for z in (to_elements, x, t, g, of_slices))
    for k, part in enumerate(parts):
        share = np.apply_along_axis(functools.partial(weights, name), 0, lines[part])
        into[part] += share * gradients[k]
        tangents[k] = (share * moving[part]).sum(0)
    np.testing.assert_array_equal(spread_to_extrema(g, x, y, at, axis), to_elements, strict=True)
    np.testing.assert_array_equal(fold_at_extrema(t, x, y, at, axis), of_slices, strict=True)


@each("length", [511, 512, 513, 2000])
def test_extrema_of_long_slices(length):
    x = np.zeros(length)
    for place in 0, length // 2, length - 1:
        x[place] = 1
        g, at = np.array([3.0]), np.array([0])
        found = spread_to_extrema(g, x, np.ones(1), at, 0)
        assert found.sum() == 3
        np.testing.assert_array_equal(found > 0, x > 0)
        t = RNG.integers(0, 9, length) * 8.0
        assert fold_at_extrema(t, x, np.ones(1), at, 0) == found @ t / 3


@each("indices", [[0, 12], [-1]])
def test_indices_outside_are_refused(indices):
    at, g = np.array(indices), np.ones(len(indices))
    for call in (lambda: spread(g, at, 12, 0), lambda: spread_to_extrema(g, np.ones(12), g, at, 0),
                 lambda: fold_at_extrema(np.ones(12), np.ones(12), g, at, 0)):
        with pytest.raises(IndexError, match="out of bounds for 12 elements"):
            call()


@each(dtype=["float16", "float32", "complex128"], name=["add", "subtract", "maximum", "fmin"])
@each("place", [lambda f: f, cytape.function])
def test_derivatives_have_the_dtype_of_the_elements(name, dtype, place):
    x = np.arange(6, 0, -1).astype(dtype)
    grad = place(cytape.grad(lambda x: cnp.sum(cnp.real(
        getattr(np, name).reduceat(x, [2, 0, 4]) * np.array([1, 2, 4], dtype)))))
    expected = {"add": [2, 2, 3, 2, 4, 4], "subtract": [2, -2, -1, -2, 4, -4],
                "maximum": [2, 0, 1, 0, 4, 0], "fmin": [0, 0, 1, 2, 0, 4]}[name]
    np.testing.assert_array_equal(grad(x), np.array(expected, dtype), strict=True)
    _, tangent = cytape.jvp(lambda x: getattr(np, name).reduceat(x, [2, 0, 4]), (x,), (x,))
    np.testing.assert_array_equal(tangent, getattr(np, name).reduceat(x, [2, 0, 4]), strict=True)


def test_operands_that_do_not_fit_the_slices_are_refused():
    x, y = np.ones((3, 12)), np.ones((3, 2))
    for call in (
        lambda: spread(np.ones((3, 3)), [0, 4], 12, 1), lambda: spread(np.ones(3), [0, 4], 12, 1),
        lambda: spread_to_extrema(np.ones((2, 2)), x, y, [0, 4], 1),
        lambda: spread_to_extrema(y, x, np.ones((3, 1)), [0, 4], 1),
        lambda: spread_to_extrema(y, x.astype("float32"), y, [0, 4], 1),
        lambda: fold_at_extrema(np.ones((3, 2)), x, y, [0, 4], 1),
        lambda: fold_at_extrema(x, x, y, [0], 1),
        lambda: fold_at_extrema(x, x, y.astype("float32"), [0, 4], 1),
    ):
        with pytest.raises(ValueError, match="expected an array of shape"):
            call()


@each("axis", [-3, -1, 2])
def test_axes_that_arrays_do_not_have_are_refused(axis):
    x, indices = np.ones((2, 2)), np.array([0, 1])
    for call in (lambda: spread(x, indices, 2, axis),
                 lambda: spread_to_extrema(x, x, x, indices, axis),
                 lambda: fold_at_extrema(x, x, x, indices, axis)):
        with pytest.raises((ValueError, IndexError)):
            call()


def test_other_byte_orders_are_refused():
    x, indices = np.ones((2, 2), ">f8"), np.array([1, 0])
    for call in (lambda: spread(x, indices, 2, 0),
                 lambda: spread_to_extrema(x, x, x, indices, 0),
                 lambda: fold_at_extrema(x, x, x, indices, 0)):
        with pytest.raises(TypeError, match="convert them first"):
            call()
