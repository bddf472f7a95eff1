"""Memory under `vmap`: writes to arguments that members share, and owners of results."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import TapeStateError
from cytape.testing import check_grads
from tests.cases import each
from tests.graph.batching.test_vmap import WAYS, W, X, looped


def write_to_shared(x, w):
    w[0] = x[0]
    return w * x


def add_to_shared(x, w):
    w += x
    return w


def fill_shared(x, w):
    w[1:] = 7.0  # the same for all
    return w * x


@each("way", ["eager", "function", "graph"])
@each("f", [write_to_shared, add_to_shared, fill_shared, lambda x, w: w.at[0].add(x[1])])
@each("shared", [cytape.constant, np.array])
def test_shared_values_are_copied_per_member_before_a_write(way, f, shared):
    w = shared(W)
    call = WAYS[way](lambda x: cytape.vmap(f, (0, None))(x, w))
    expected = looped(lambda x: f(x, cytape.constant(W)), X)
    np.testing.assert_array_equal(call(X), expected)
    np.testing.assert_array_equal(np.asarray(w), W)
    call = WAYS[way](lambda x, w: cytape.vmap(lambda x, *, p: f(x, p[0]))(x, p=[w]))
    np.testing.assert_array_equal(call(X, W), expected)
    nested = cytape.vmap(cytape.vmap(f, (0, None)), (0, None))
    np.testing.assert_array_equal(nested(X[None], cytape.constant(W)), expected[None])


@each(way=["eager", "function"], f=[write_to_shared, add_to_shared, fill_shared])
def test_derivatives_of_what_is_written_to_what_members_share(way, f):
    def total(w, x):
        return cnp.sum(cnp.sin(WAYS[way](cytape.vmap(f, (0, None)))(x, w)))

    def by_member(w, x):
        return sum([cnp.sum(cnp.sin(f(row, w.copy()))) for row in x])

    for found, expected in zip(
            cytape.grad(total, (0, 1))(W, X), cytape.grad(by_member, (0, 1))(W, X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    tangents = (np.cos(W), np.cos(X))
    np.testing.assert_allclose(cytape.jvp(total, (W, X), tangents)[1],
                               cytape.jvp(by_member, (W, X), tangents)[1], rtol=1e-12)


def test_a_tensor_from_elsewhere_is_not_written_to():
    w = cytape.constant(W)
    with pytest.raises(TapeStateError, match=r"make a copy inside \(x = x.copy\(\)\)"):
        cytape.vmap(lambda x: write_to_shared(x, w))(X)
    np.testing.assert_array_equal(
        cytape.vmap(lambda x: write_to_shared(x, w.copy()))(X), looped(
            lambda x: write_to_shared(x, W.copy()), X))


def test_values_that_members_share_can_be_asked_for():
    found = cytape.vmap(lambda x, n: x[: int(n)], (0, None))(X, cytape.constant(2))
    np.testing.assert_array_equal(found, X[:, :2])


@each("unused", [0, 1, 2])
def test_an_argument_that_is_not_used_has_as_many_members_too(unused):
    def f(*args):
        return sum(x for i, x in enumerate(args) if i != unused)

    open_rows = [cytape.Spec.of((None, 2), float)] * 3
    for mapped in (cytape.vmap(f), cytape.function(cytape.vmap(f), input_signature=open_rows)):
        args = [np.ones((3, 2))] * 3
        assert mapped(*args).shape == (3, 2)
        args[unused] = np.ones((4, 2))
        with pytest.raises(ValueError, match="the same length"):
            mapped(*args)


@each("f, x", [
    (lambda x: cnp.concatenate([x, x], axis=None), np.zeros((0, 2, 3))),
    (lambda x: cnp.interp([1.0, 2.0], x, [1.0, 2.0, 3.0]), np.zeros((0, 3))),
    (lambda x: cytape.grad(lambda x: cnp.sum(cnp.interp(x, x, x)))(x), np.zeros((0, 3))),
])
def test_no_members_are_as_many_results(f, x):
    expected = cytape.vmap(f)(np.arange(float(np.prod(x.shape[1:]))).reshape(1, *x.shape[1:]))
    found = cytape.vmap(f)(x)
    assert found.shape == (0, *expected.shape[1:]) and found.dtype == expected.dtype


@each("way", [lambda f: f, cytape.function])
@each("f, out_axes", [
    (lambda x, row: cnp.sin(x[0]), 0), (lambda x, row: cnp.sin(x[0]), 1),
    (lambda x, row: cnp.zeros(3), 0), (lambda x, row: x, None), (lambda x, row: x[:2], 0),
    (lambda x, row: row, 0), (lambda x, row: row, 1), (lambda x, row: row[::-1], 0),
    (lambda x, row: cnp.reshape(row, (3, 1)), 0),
])
def test_results_are_the_callers_to_write_to(way, f, out_axes):
    def written(x):
        x = x * 1.0
        y = cytape.vmap(lambda row: f(x, row), out_axes=out_axes)(x)
        y[0] = 9.0
        y += 1.0
        return x, y

    of_x, of_y = way(written)(X)
    np.testing.assert_array_equal(of_x, X)
    expected = np.array(cytape.vmap(lambda row: f(X, row), out_axes=out_axes)(X))
    expected[0] = 9.0
    np.testing.assert_array_equal(of_y, expected + 1.0)
    if out_axes is not None:
        check_grads(way(lambda x: cnp.sum(written(x)[1] ** 2)), [X], order=1)
