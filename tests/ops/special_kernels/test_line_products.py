"""Derivatives of products along lines, by division and by recurrences."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.special_kernels.line_products import products_derivative
from tests.cases import each, sampled

INF = np.inf
RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"]
STARTS = {"one slice": None, "slices": [0, 1, 4, 6], "after the start": [2, 3], "none": []}
LAYOUTS = [((7,), 0), ((7, 3), 0), ((9, 7), 1), ((2, 7, 9), 1), ((1, 7, 1), 1), ((7, 0), 0)]


def products(x, starts, cumulative):
    """Return the products of slices along the first axis."""
    starts = [0] if starts is None else starts
    stops = [*starts[1:], len(x)]
    parts = [np.cumprod(x[i:j], 0) for i, j in zip(starts, stops, strict=False)]
    if not cumulative:
        return np.array([part[-1] for part in parts]).reshape(len(parts), *x.shape[1:])
    before = np.zeros_like(x[:starts[0] if starts else len(x)])
    return np.concatenate([before, *parts])


def moved(x, starts, cumulative, places):
    """Return the derivative of products by some factors of each line: they are linear in each."""
    if not places:
        return products(x, starts, cumulative)
    one, zero = x.copy(), x.copy()
    one[places[0]], zero[places[0]] = 1, 0
    return moved(one, starts, cumulative, places[1:]) - moved(zero, starts, cumulative, places[1:])


@sampled(6, dtype=DTYPES, starts=STARTS, layout=LAYOUTS, zeros=[False, True],
         cumulative=[False, True])
def test_against_the_definition(layout, starts, zeros, cumulative, dtype):
    (shape, axis), starts = layout, STARTS[starts]
    x, t, g = (RNG.integers(1, 4, shape).astype(dtype) for _ in range(3))
    if x.dtype.kind == "c":
        x, g = (x - 1j * RNG.integers(0, 3, shape)).astype(dtype), (g + 1j * t).astype(dtype)
    x[RNG.random(shape) < 0.3 * zeros] = 0
    lines, moving = np.moveaxis(x, axis, 0), np.moveaxis(t, axis, 0)
    n_products = len(products(lines, starts, cumulative))
    g = g[tuple([slice(n_products) if i == axis else slice(None) for i in range(g.ndim)])]
    seeds = np.moveaxis(g, axis, 0)
    gradient, tangent, curvature = np.zeros_like(lines), np.zeros_like(seeds), np.zeros_like(lines)
    for i in range(len(lines)):
        first = moved(lines, starts, cumulative, [i])
        gradient[i] = (seeds * first).sum(0)
        tangent += moving[i] * first
        for j in range(len(lines)):
            if i != j:
                second = moved(lines, starts, cumulative, [i, j])
                curvature[i] += moving[j] * (seeds * second).sum(0)
    for expected, options in [
            (gradient, {"g": g}), (tangent, {"t": t}), (curvature, {"g": g, "t": t})]:
        for order in "CF":
            options = {name: np.asarray(y, order=order) for name, y in options.items()}
            found = products_derivative(
                np.asarray(x, order=order), (axis,), starts and np.array(starts)
                if starts != [] else np.zeros(0, int), cumulative=cumulative, **options)
            assert found.dtype == dtype
            np.testing.assert_allclose(
                found.reshape(np.moveaxis(expected, 0, axis).shape), np.moveaxis(expected, 0, axis),
                1e-6 if dtype in ("float32", "complex64") else 1e-13)


@each("g, x, expected", [
    ([1, 0, 0], [2, INF, 3], [1, 0, 0]), ([0, 1, 0], [2, INF, 3], [INF, 2, 0]),
    ([0, 0, 0], [INF, 0, INF], [0, 0, 0]), ([0, 0, 1], [0, 0, 3], [0, 0, 0]),
    ([0, 1, 0], [0, 5, INF], [5, 0, 0]), ([1, 0, 0, 0], [INF, 2, 3, 4], [1, 0, 0, 0]),
    ([1, 0, 0, 0, 0], [INF, 2, 3, 4, 5], [1, 0, 0, 0, 0])])
def test_gradients_of_zero_meet_no_infinite_products(g, x, expected):
    found = products_derivative(np.array(x, float), (0,), g=np.array(g, float), cumulative=True)
    np.testing.assert_array_equal(found, expected)


@each("g, x, t, gradient_moves, moved", [
    ([0, 1, 0], [2, INF, 3], [1, 0, 0], [0, 1, 0], [1, INF, INF]),
    ([0, 0, 0], [INF, 0, INF], [1, 1, 1], [0, 0, 0], [1, INF, np.nan]),
    ([0, 1, 0, 0], [3, 5, INF, INF], [0, 1, 1, 1], [1, 0, 0, 0], None)])
def test_tangents_of_zero_meet_no_infinite_products(g, x, t, gradient_moves, moved):
    g, x, t = (np.array(y, float) for y in (g, x, t))
    found = products_derivative(x, (0,), g=g, t=t, cumulative=True)
    np.testing.assert_array_equal(found, gradient_moves)
    if moved is not None:
        np.testing.assert_array_equal(products_derivative(x, (0,), t=t, cumulative=True), moved)


@each("g, x", [
    (np.ones(300, "i1"), np.ones(300, "i1")), (np.ones(3), np.ones(3, "f4")),
    (np.ones(3, "f2"), np.ones(3, "f2")), (np.ones(2), np.ones(3)),
    (np.ones(3, ">f8"), np.ones(3, ">f8")),
], ids=["integers", "dtypes", "half", "shapes", "byte order"])
@each("argument", ["g", "t"])
def test_memory_is_read_as_what_it_is(g, x, argument):
    with pytest.raises(TypeError, match="of one dtype, floats or complex numbers"):
        products_derivative(x, (0,), cumulative=True, **{argument: g})


@each("compiled", [False, True])
def test_derivatives_to_third_order(compiled):
    def third(x):
        return cytape.elementwise_grad(cytape.elementwise_grad(cytape.elementwise_grad(
            lambda x: cnp.cumprod(cnp.stack([x, x, x * x, 2.0 * x]))[-1])))(x)

    run = cytape.function(third) if compiled else third
    for x in (0.0, 1.5, -2.0):  # of 2 x**5
        np.testing.assert_allclose(np.asarray(run(cytape.constant(x))), 120 * x * x, rtol=1e-13)


def test_axes_apart_are_left_to_the_caller():
    assert products_derivative(np.ones((2, 3, 2)), (0, 2), g=np.ones(3)) is None


@each("starts", [[0, 7], [-1, 2], [3, 2]])
def test_slices_that_begin_nowhere_or_out_of_order_are_refused(starts):
    with pytest.raises(ValueError, match="in increasing order"):
        products_derivative(np.ones(7), (0,), starts=starts, g=np.ones(2))
