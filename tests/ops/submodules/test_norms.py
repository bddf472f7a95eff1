"""Norms and the condition number: what the op table does not state."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ways import gradient, taped, watching


@each("ord", [None, 2, -2, "nuc", "fro", 1, -1, np.inf, -np.inf])
def test_the_norm_of_a_matrix_of_zeros_has_derivatives_of_zero(ord):
    x = np.zeros((3, 2))
    for function in (lambda x: np.linalg.norm(x, ord), lambda x: np.linalg.matrix_norm(x, ord=ord)):
        np.testing.assert_array_equal(gradient(function, x), x)
        np.testing.assert_array_equal(cytape.hessian(function)(x), np.zeros((3, 2, 3, 2)))
        _, tangent = cytape.jvp(function, (x,), (x + 1,))
        assert tangent == 0


@each(ord=[1, np.inf, 2, "nuc"], shape=[(0, 3), (0, 0), (3, 0)])
def test_the_norm_of_nothing(ord, shape):
    x = np.empty(shape)
    run = cytape.function(
        lambda x: np.linalg.norm(x, ord), input_signature=[cytape.Spec.of((None, None), float)])
    assert np.linalg.norm(cytape.constant(x), ord) == run(x) == np.linalg.norm(x, ord) == 0
    assert gradient(lambda x: np.linalg.norm(x, ord), x).shape == shape


@each("ord", [2, -2, "nuc"])
def test_equal_singular_values(ord):
    """The largest of equal values share the gradient; nuc has one in any case."""
    found = gradient(lambda x: np.linalg.norm(x, ord), np.eye(2))
    np.testing.assert_allclose(found, np.eye(2) if ord == "nuc" else np.eye(2) / 2, atol=1e-15)


@each("ord", [0, 1, 2, 3, 0.5, -1, np.inf, -np.inf, None])
@each("dtype", ["float16", "float32", "int64", "complex64"])
def test_dtypes_are_numpys(ord, dtype):
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    for options in ({}, {"keepdims": True}, {"axis": 1}, {"axis": (1, 0)}):
        found = np.linalg.vector_norm(cytape.constant(x), ord=ord, **options)
        expected = np.linalg.vector_norm(x, ord=ord, **options)
        assert (found.dtype, found.shape) == (expected.dtype, np.shape(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-2)


def test_the_condition_number_of_a_singular_matrix_is_infinite():
    x = np.stack([np.zeros((2, 2)), np.eye(2), np.full((2, 2), np.nan)])
    for p in (1, -1, np.inf, "fro"):
        found = np.linalg.cond(cytape.constant(x), p)
        np.testing.assert_array_equal(found, np.linalg.cond(x, p))
    for p in (None, 2, -2):
        np.testing.assert_array_equal(
            np.linalg.cond(cytape.constant(x[:2]), p), np.linalg.cond(x[:2], p))


@each("dtype", ["float32", "complex64", "int64"])
def test_the_condition_number_is_real(dtype):
    x = np.array([[2, 1], [0, 1]], dtype)
    for p in (None, 1):
        found, expected = np.linalg.cond(cytape.constant(x), p), np.linalg.cond(x, p)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@each("ord, extremum", [(np.inf, np.max), (-np.inf, np.min)])
@each(axis=[None, 1, (0, 2)], dtype=["float16", "float32", "float64", "complex128"])
@each("size", [4, 40])  # small arrays and large ones go different ways in functions
def test_extreme_norms_are_extrema_of_magnitudes(ord, extremum, axis, dtype, size):
    rng = np.random.default_rng(0)
    for x in (rng.integers(-3, 4, (size,) * 3), -np.zeros((size,) * 3),
              np.where(rng.random((size,) * 3) < 0.02, np.nan, 1), rng.normal(size=(size,) * 3)):
        x = (x * (1 - 0.5j) if dtype == "complex128" else x).astype(dtype)

        def weighted(y):
            return np.sum(y * np.cos(np.arange(np.size(y))).reshape(np.shape(y)))

        def norm(x):
            return weighted(np.linalg.vector_norm(x, axis=axis, ord=ord))

        expected = gradient(lambda x: weighted(extremum(abs(x), axis)), x)
        for function in (norm, cytape.function(norm)):
            with np.errstate(invalid="ignore"):  # of complex NaN
                found = gradient(function, x)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, 1e-3 if dtype == "float16" else 1e-6)


def test_the_norm_of_a_line_of_zeros_has_gradient_zero():
    np.testing.assert_array_equal(
        gradient(lambda x: np.linalg.norm(x, axis=0), np.array([[0.0, 3.0], [0.0, 4.0]])),
        [[0, 0.6], [0, 0.8]])


@each(scale=[1e-150, 1e-16, 1.0, 1e16, 1e150], g=[1e-280, 1.0, 1e280])
def test_gradients_of_every_magnitude(g, scale):
    x = np.array([3.0, 4.0]) * scale
    norm = np.linalg.norm(x)
    for function in (np.linalg.norm, np.linalg.vector_norm):
        _, pullback = cytape.vjp(function, x)
        np.testing.assert_allclose(pullback(g)[0], x / norm * g, 1e-15)


@each(dtype=["float32", "float64"], n=[5, 5000])
@each("make", [cytape.constant, cytape.Variable, lambda x: cytape.constant(x.reshape(5, -1))])
def test_norms_of_few_elements_are_differentiated_as_those_of_many(make, n, dtype):
    """Those of few are made of two ops; zeros, and what is near an overflow, are left to a rule."""
    values = np.random.default_rng(0).normal(size=n).astype(dtype)
    other = values[::-1]
    for scale in (1, 0, 1e-10, 1e10):
        x = make((scale * values).astype(dtype))
        with watching(x, persistent=True) as outer:
            tape, norm = taped(np.linalg.norm, x)
            first = tape.gradient(norm, x)
            along = np.sum(first * other.reshape(x.shape))
        array = np.asarray(x)
        assert norm.numpy() == np.linalg.norm(array)
        direction = array / np.linalg.norm(array) if scale else np.zeros_like(array)
        np.testing.assert_allclose(first, direction, rtol=1e-6)
        # Of the other vector only what is across x turns the direction.
        across = other.reshape(x.shape) - np.sum(direction * other.reshape(x.shape)) * direction
        np.testing.assert_allclose(
            outer.gradient(along, x) * np.linalg.norm(array), across if scale else 0 * array,
            atol=1e-3)


def test_a_norm_that_overflows_warns_once():
    x = np.array([1e200, 1.0])
    with pytest.warns(RuntimeWarning, match="overflow") as caught:
        assert np.linalg.norm(cytape.constant(x)).item() == np.inf
    assert len(caught) == 1
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(cytape.grad(np.linalg.norm)(x), [1, 1e-200])
        np.testing.assert_array_equal(
            cytape.jacrev(cytape.grad(np.linalg.norm))(x), [[0, 0], [0, 1e-200]])


# traces do not look for squares that overflow: it would cost more than the gradient
@each("wrap, ord", [(lambda f: f, ord) for ord in (None, 2, 3, 1.5, 4, 0.5, -1)]
      + [(cytape.function, ord) for ord in (3, 1.5, 4, 0.5, -1)])
def test_gradients_where_powers_overflow_or_vanish(wrap, ord):
    x = np.array([[3.0, 4.0, 1.0], [3.0, -4.0, 2.0]])
    gradient = wrap(cytape.grad(lambda x: np.sum(np.linalg.norm(x, ord, axis=1))))
    with np.errstate(all="ignore"):
        for scale in 1e200, 1e-200, 1e-310:
            np.testing.assert_allclose(
                gradient(x * [[scale], [1.0]]), gradient(x), rtol=1e-11)


@each(make=[cytape.Variable, cytape.constant], call=[
    lambda f: cytape.function(f)(), lambda f: cytape.vmap(lambda s: s * f())(np.ones(1))[0],
    lambda f: cytape.function(lambda p: cytape.cond(p, f, lambda: cytape.constant(0.0)))(
        cytape.constant(True)),
    lambda f: cytape.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, f()), (0, 0.0))[1],
    lambda f: cytape.function(lambda x: cytape.grad(lambda x: f() * x)(x))(cytape.constant(1.0)),
])
def test_norms_of_what_a_trace_captures(call, make):
    """Such a tensor has values, and is no part of a graph yet; what is made of it is."""
    x = make(np.array([3.0, 4.0]))
    assert float(call(lambda: np.linalg.norm(x))) == 5.0
    assert float(call(lambda: np.sum(np.partition(x, 1)))) == 7.0
