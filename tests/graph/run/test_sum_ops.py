"""Sums and extrema that plans run without Python, and those that they leave to it."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.model.graph import Graph
from tests.cases import each
from tests.graph.plans import assert_as_reference, plan_of

ALONG = [
    *[(shape, axis) for shape in [(3, 4), (1, 4), (3, 1), (2, 3, 4)]
      for axis in [None, 0, -1, (0, -1)]],
    ((), None), ((5,), 0),
]


def plan_for(function, array):
    graph = Graph()
    x = graph.placeholder(array.dtype, array.shape)
    return assert_as_reference(graph, [x], [function(x)], [array])


@each("function", [np.sum, np.mean, np.max, np.min, np.prod])
@each("shape, axis", ALONG, ids=str)
def test_along_axes(function, shape, axis):
    array = np.random.default_rng(0).normal(size=shape)
    assert plan_for(lambda x: function(x, axis=axis), array).n_calls == 0
    assert plan_for(lambda x: function(x.T, axis=axis, keepdims=True), array).n_calls == 0


@each("function", [np.cumsum, np.cumprod])
@each("shape, axis", [
    ((7,), 0), ((1,), -1), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((2, 1, 4), -2), ((0, 3), 1),
    ((100, 33), 0), ((33, 100), 1)], ids=str)  # fmt: skip
@each("dtype", ["float32", "float64"])
def test_accumulations(function, shape, axis, dtype):
    array = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
    graph = Graph()
    x = graph.placeholder(dtype, shape)
    flipped = x[tuple([slice(None, None, -1)] * array.ndim)]
    plan = plan_of(graph, [x], [function(x, axis=axis), function(flipped, axis=axis)])
    assert plan.n_calls == 0
    for result, of in zip(plan.run([array]), [array, np.flip(array)], strict=True):
        np.testing.assert_array_equal(result, function(of, axis=axis))  # to the bit


@each("function", [np.prod, np.cumprod, np.cumsum])
def test_products_and_accumulations_of_other_dtypes_are_left_to_numpy(function):
    for array in np.arange(1, 5), np.ones(3, complex), np.ones(4, np.float16):
        assert plan_for(lambda x: function(x, axis=0), array).n_calls == 1
    assert plan_for(lambda x: function(x, axis=0, dtype="float32"), np.ones(3)).n_calls == 1


@each("axis", [0, 1, None])
def test_the_product_of_nothing_is_one(axis):
    assert plan_for(lambda x: np.prod(x, axis=axis), np.ones((0, 3))).n_calls == 0


@each("shape", [(4,), (1, 4), (3, 1), (1, 1), ()], ids=str)
def test_gradients_of_broadcast_operands_are_summed(shape):
    graph = Graph()
    x = graph.placeholder("float64", shape)
    with graph.as_default():
        gradient = cytape.gradients(np.sin(x) + np.ones((3, 4)), x)
    array = np.random.default_rng(0).normal(size=shape)
    assert assert_as_reference(graph, [x], gradient, [array]).n_calls == 0


@each(axes=[(2, 1, 0), (1, 0, 2), (0, 2, 1)], axis=[None, 0, (0, 2)])
def test_axes_in_another_order_are_summed_as_they_lie_in_memory(axes, axis):
    x = np.random.default_rng(0).normal(size=(30, 20, 10))
    expected = np.sum(np.transpose(x, axes), axis)
    summed = cytape.function(lambda x: cnp.sum(cnp.transpose(x, axes), axis))
    np.testing.assert_array_equal(summed(cytape.constant(x)).numpy(), expected)


def test_terms_of_one_shape_are_added_and_others_left_to_numpy():
    array = np.random.default_rng(0).normal(size=(3, 3))
    assert plan_for(lambda x: cytape.add_n([x, x.T, x[::-1]]), array).n_calls == 0
    assert plan_for(lambda x: cytape.add_n([x[:0], x[1:1]]), array).n_calls == 0
    assert plan_for(lambda x: np.sum(x[:0], axis=0), array).n_calls == 0


@each("function", [
    lambda x: np.sum(x > 0), lambda x: np.max(x > 0), lambda x: np.mean(x, dtype="float32"),
])
def test_other_dtypes_are_left_to_numpy(function):
    assert plan_for(function, np.linspace(-1, 1, 12).reshape(3, 4)).n_calls == 1
