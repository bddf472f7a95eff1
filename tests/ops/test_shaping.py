"""Special cases of new shapes: layouts, bad arguments, several arrays at once."""

from itertools import product

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
import cytape.numpy as ops
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from tests.cases import each


def test_tensors_without_axes_are_scalars():
    scalars = 1.0, np.float64(1.0), "a", cytape.constant(1.0), cytape.Variable(1.0)
    assert all(map(cnp.isscalar, scalars))
    for x in (np.array(1.0), [1.0], cytape.constant([1.0]), [cytape.constant(1.0)]):
        assert not cnp.isscalar(x)
    graph = Graph()
    assert cnp.isscalar(graph.placeholder(np.dtype(float), ()))
    assert not cnp.isscalar(graph.placeholder(np.dtype(float), None))
    vector = lambda x: cnp.array([x, 2 * x]) if cnp.isscalar(x) else x  # noqa: E731
    for f in (cytape.grad, lambda f: cytape.function(cytape.grad(f))):
        assert f(lambda x: cnp.sum(vector(x) ** 2))(np.array(3.0)) == 30


def test_orders_that_numpy_refuses_are_refused():
    x = cytape.constant(np.ones((2, 3)))
    for function, order in product((ops.reshape, cytape.Tensor.reshape), ("K", "x")):
        with pytest.raises(ValueError, match="order"):
            function(x, 6, order=order)
    with pytest.raises(ValueError, match="order"):
        ops.ravel(x, "x")


def test_parameters_about_memory_leave_values_alone():
    x = np.ones((2, 3))
    assert ops.reshape(x, 6, copy=True).base is not x
    np.testing.assert_array_equal(ops.reshape(cytape.constant(x), 6, copy=True), x.reshape(6))


def test_shape_ndim_and_size_are_plain_numbers():
    t = cytape.constant(np.ones((2, 3)))
    assert np.shape(t) == ops.shape(t) == (2, 3)
    assert np.ndim(t) == ops.ndim(t) == 2
    assert np.size(t) == ops.size(t) == 6
    assert ops.size(t, axis=0) == 2
    assert ops.shape([[1.0, 2.0]]) == (1, 2)
    assert ops.size([[1.0, 2.0]]) == 2


@each("name", ["atleast_1d", "atleast_2d", "broadcast_arrays", "meshgrid"])
def test_a_tensor_among_arrays_makes_all_results_tensors(name):
    results = getattr(ops, name)(cytape.constant([1.0, 2.0]), np.array([3.0, 4.0]))
    expected = getattr(np, name)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert isinstance(results, tuple)
    for result, array in zip(results, expected, strict=True):
        assert isinstance(result, cytape.Tensor)
        np.testing.assert_array_equal(result.numpy(), array)


@each("name", ["atleast_1d", "broadcast_arrays", "meshgrid"])
def test_plain_arrays_and_no_arrays(name):
    assert type(getattr(ops, name)(np.ones(2), 1.0)) is type(getattr(np, name)(np.ones(2), 1.0))
    assert getattr(ops, name)() == getattr(np, name)()


def test_a_gradient_through_a_variable_and_a_method():
    variable = cytape.Variable([[1.0, 2.0, 3.0]])
    with cytape.GradientTape() as tape:
        y = (np.squeeze(variable).reshape(3, 1).T * [1.0, 10.0, 100.0]).transpose(1, 0)
    np.testing.assert_array_equal(tape.gradient(y, variable).numpy(), [[1.0, 10.0, 100.0]])


@each("shape, axis, expected", [
    ((2, None), None, None), ((2, None), 0, 2), ((2, None), -1, None), ((None, 0), None, 0),
    (None, 0, None), (None, None, None), ((2, 3), None, 6), ((2, 3), 1, 3)])
def test_the_size_of_a_symbolic_tensor(shape, axis, expected):
    graph = Graph()
    x = graph.placeholder(np.dtype(float), shape)
    size = cnp.size(x, axis)
    if expected is not None:
        assert size == expected
        return
    value = np.ones([n or 3 for n in (shape or (4, 5))])
    (found,) = run(graph, [graph.symbol_of(size)], {graph.symbol_of(x): value})
    assert (found, size.dtype) == (np.size(value, axis), np.intp)


@each("to, shape", [
    (lambda x, n: (n, -1), (None, None)), (lambda x, n: [2, n, -1], (2, None, None)),
    (lambda x, n: n * 4, (None,)), (lambda x, n: cnp.stack([n, n + 1]), (None, None)),
    (lambda x, n: (cnp.size(x, 0), 4), (None, 4))])
def test_reshape_to_extents_that_a_run_knows(to, shape):
    graph = Graph()
    x, n = graph.placeholder(np.dtype(float), (None, 4)), graph.placeholder(np.dtype(int), ())
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = cnp.reshape(x, to(x, n))
        z = (y * y).sum()
    gradient = tape.gradient(z, x)
    assert y.shape == shape
    value = np.arange(12.0).reshape(3, 4)
    found = run(graph, [graph.symbol_of(y), graph.symbol_of(gradient)],
                {graph.symbol_of(x): value, graph.symbol_of(n): np.array(3)})
    np.testing.assert_array_equal(found[0], value.reshape(to(value, 3)))
    np.testing.assert_array_equal(found[1], 2 * value)


@each("n", [1, 2, 3])
def test_arrays_with_enough_axes_are_no_views(n):
    def doubled(x):
        u = getattr(np, f"atleast_{n}d")(x * 1.0)
        u *= 2.0
        return u

    x = np.ones((2, 3, 4)[:n])
    for f in (doubled, cytape.function(doubled)):
        np.testing.assert_array_equal(f(cytape.constant(x)), 2 * x)
        np.testing.assert_array_equal(cytape.grad(lambda x: np.sum(f(x)))(x), 2 * x)  # noqa: B023


@each("call", [
    lambda x: np.moveaxis(x, 1.0, 0), lambda x: np.moveaxis(x, (1.0,), (0,)),
    lambda x: np.moveaxis(x, 3, 0), lambda x: np.rollaxis(x, 1.0), lambda x: np.rollaxis(x, 0, 9),
    lambda x: np.matrix_transpose(x[0, 0])])
def test_axes_that_are_none_are_numpys_errors(call):
    x = np.zeros((2, 3, 4))
    np.moveaxis(cytape.constant(x), 1, 0)  # 1 == 1.0: a cache of axes must tell them apart
    np.moveaxis(cytape.constant(x), (1,), (0,))
    with pytest.raises((TypeError, ValueError)) as theirs:
        call(x)
    with pytest.raises(theirs.type):
        call(cytape.constant(x))


def test_the_order_of_an_unknown_number_of_axes_is_refused():
    with Graph().as_default() as graph:
        x = graph.placeholder("float64", None)
        assert cnp.ravel(x).shape == (None,)
        with pytest.raises(cytape.errors.SymbolicTensorError, match="order 'F' needs to know how"):
            cnp.ravel(x, "F")
