"""Sums and extrema that plans run without Python, and those that they leave to it."""

import numpy as np
import pytest

import cytape
from cytape.graph.model.graph import Graph
from tests.graph.plans import assert_as_reference

ALONG = [
    *[(shape, axis) for shape in [(3, 4), (1, 4), (3, 1), (2, 3, 4)]
      for axis in [None, 0, -1, (0, -1)]],
    ((), None), ((5,), 0),
]


def plan_for(function, array):
    graph = Graph()
    x = graph.placeholder(array.dtype, array.shape)
    return assert_as_reference(graph, [x], [function(x)], [array])


@pytest.mark.parametrize("function", [np.sum, np.mean, np.max, np.min])
@pytest.mark.parametrize("shape, axis", ALONG, ids=str)
def test_along_axes(function, shape, axis):
    array = np.random.default_rng(0).normal(size=shape)
    assert plan_for(lambda x: function(x, axis=axis), array).n_calls == 0
    assert plan_for(lambda x: function(x.T, axis=axis, keepdims=True), array).n_calls == 0


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1), (1, 1), ()], ids=str)
def test_what_was_broadcast_is_summed(shape):
    graph = Graph()
    x = graph.placeholder("float64", shape)
    with graph.as_default():
        gradient = cytape.gradients(np.sin(x) + np.ones((3, 4)), x)
    array = np.random.default_rng(0).normal(size=shape)
    assert assert_as_reference(graph, [x], gradient, [array]).n_calls == 0


def test_terms_of_one_shape_are_added_and_others_left_to_numpy():
    array = np.random.default_rng(0).normal(size=(3, 3))
    assert plan_for(lambda x: cytape.add_n([x, x.T, x[::-1]]), array).n_calls == 0
    assert plan_for(lambda x: cytape.add_n([x[:0], x[1:1]]), array).n_calls == 0
    assert plan_for(lambda x: np.sum(x[:0], axis=0), array).n_calls == 0


@pytest.mark.parametrize("function", [
    lambda x: np.sum(x > 0), lambda x: np.max(x > 0), lambda x: np.mean(x, dtype="float32"),
])
def test_other_dtypes_are_left_to_numpy(function):
    assert plan_for(function, np.linspace(-1, 1, 12).reshape(3, 4)).n_calls == 1
