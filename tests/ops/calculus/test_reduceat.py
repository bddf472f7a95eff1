"""Slices of `reduceat`: which elements they have, partial derivatives at ties and zeros."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests.cases import each, sampled

X = np.random.default_rng(2).uniform(0.6, 1.6, (4, 6))
INDICES = {
    "in order": [0, 2, 3], "after the start": [1, 3], "repeated": [1, 1, 2], "unsorted": [2, 0, 3],
    "one": [3], "none": []}
UFUNCS = ["add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "divide",
          "logaddexp", "hypot", "floor_divide", "logical_xor"]


@sampled(4, name=UFUNCS, indices=INDICES, axis=[0, -1], place=[lambda f: f, cytape.function])
def test_values_and_derivatives(name, indices, axis, place):
    ufunc, indices = getattr(np, name), INDICES[indices]
    f = place(lambda x: ufunc.reduceat(x, indices, axis=axis))
    found, expected = np.asarray(f(cytape.constant(X))), ufunc.reduceat(X, indices, axis=axis)
    np.testing.assert_array_equal(found, expected, strict=True)
    if indices and name not in ("floor_divide", "logical_xor"):
        check_grads(f, [X], order=2)


@each("place", [lambda f: f, cytape.function])
def test_zeros_among_factors(place):
    x = np.array([2.0, 0.0, 3.0, 0.0, 0.0, 4.0, 5.0])
    f = place(lambda x: np.multiply.reduceat(x, [0, 2, 5]))
    np.testing.assert_array_equal(cytape.jacrev(f)(x), [
        [0, 2, 0, 0, 0, 0, 0], [0] * 7, [0, 0, 0, 0, 0, 5, 4]])
    check_grads(f, [x], order=3)
    check_grads(place(lambda x: np.multiply.reduceat(x * (1 + 1j * x), [1, 4])), [x], order=2)


@each("name", ["maximum", "fmax"])
def test_ties_and_nan_are_those_of_folds(name):
    x = np.array([5.0, 1.0, 3.0, 3.0, 3.0, np.nan, 2.0, 2.0])
    gradient = cytape.grad(lambda x: np.sum(getattr(np, name).reduceat(x, [1, 5])))(x)
    last = [0, 0.5, 0.5] if name == "fmax" else [1, 0, 0]
    np.testing.assert_array_equal(gradient, [0, 0, 0.25, 0.25, 0.5, *last])


def test_infinite_gradients_reach_the_extremum_alone():
    gradient = cytape.grad(lambda x: np.sum(np.sqrt(np.maximum.reduceat(x, [0, 2]))))(
        np.array([-1.0, 0.0, 1.0, 4.0]))
    np.testing.assert_array_equal(gradient, [0, np.inf, 0, 0.25])


def test_dtype_out_and_members():
    x = cytape.constant(np.array([1, 2, 3, 4]))
    found = np.multiply.reduceat(x, [0, 2], dtype=float)
    np.testing.assert_array_equal(found, [2.0, 12.0], strict=True)
    out = cytape.Variable(np.zeros(2)) * 1.0
    assert cnp.multiply.reduceat(cytape.constant(X[0]), [0, 3], out=out) is out
    rows = cytape.vmap(lambda row: np.multiply.reduceat(row, [0, 3]))(X)
    np.testing.assert_allclose(rows, np.multiply.reduceat(X, [0, 3], axis=1))
    hessians = cytape.vmap(cytape.hessian(lambda row: np.sum(np.multiply.reduceat(row, [0, 3]))))(X)
    for row, found in zip(X, hessians, strict=True):
        np.testing.assert_allclose(
            found, cytape.hessian(lambda row: np.prod(row[:3]) + np.prod(row[3:]))(row))


def test_indices_that_only_a_run_tells():
    f = cytape.function(lambda x, indices: np.multiply.reduceat(x, indices, axis=1))
    for indices in INDICES.values():
        indices = np.array(indices, int)
        np.testing.assert_allclose(f(X, indices), np.multiply.reduceat(X, indices, axis=1))
        if indices.size:
            check_grads(lambda x, indices=indices: f(x, indices), [X], order=2)


EXTREMA_OF_SLICES = {
    name: lambda x, ufunc=ufunc: np.sum(ufunc.reduceat(x, [0, 3, 1, 4]) ** 3)
    for name, ufunc in [("maximum", np.maximum), ("fmin", np.fmin)]}


@each("name", EXTREMA_OF_SLICES)
@each("n_members", [1, 2, 5, 6])
@each("transform", [
    lambda f: cytape.jacrev(cytape.grad(f)), cytape.hessian,
    lambda f: cytape.jacfwd(cytape.jacrev(cytape.grad(f)))])
def test_jacobians_of_members_with_any_number_of_directions(name, n_members, transform):
    """There are 5 directions."""
    of_one = transform(EXTREMA_OF_SLICES[name])
    x = np.random.default_rng(0).normal(size=(n_members, 5))
    np.testing.assert_allclose(
        cytape.vmap(of_one)(x), np.stack([of_one(row) for row in x]), atol=1e-12)


@each("name", EXTREMA_OF_SLICES)
def test_directions_of_members(name):
    f = EXTREMA_OF_SLICES[name]
    x = np.random.default_rng(0).normal(size=(5, 5))
    found = cytape.jacfwd(cytape.vmap(cytape.grad(f)))(x)
    for i, row in enumerate(x):
        np.testing.assert_allclose(found[i, :, i], cytape.hessian(f)(row), atol=1e-12)


def test_jacobian_of_members_of_an_extremum():
    x = np.array([[1.0, 2.0], [4.0, 3.0]])
    found = cytape.vmap(cytape.jacfwd(np.fmax.reduce))(x)
    np.testing.assert_array_equal(found, [[0, 1], [1, 0]])
