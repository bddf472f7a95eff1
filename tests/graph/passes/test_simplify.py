"""Specs that follow from what is fed, and all rewriting of single nodes at once."""

import numpy as np
import pytest
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.rewriting import without_dead_code
from cytape.graph.passes.simplify import simplified, with_known_specs
from cytape.ops.adjoints.conform import broadcast_to_op, sum_to_op
from cytape.tensor.values.spec import Spec
from tests.graph.passes.graphs import check_same, names, programs, subgraph_of, with_gradients

X = np.linspace(-1, 1, 6)


def unknown(function, *shapes):
    graph = Graph()
    with graph.as_default():
        inputs = [graph.placeholder(float, shape) for shape in shapes]
        results = function(*inputs)
    results = results if isinstance(results, (tuple, list)) else [results]
    return Subgraph(
        graph, tuple(map(graph.symbol_of, inputs)), tuple(map(graph.symbol_of, results)))


def specs_of(*arrays):
    return [Spec.of(x.shape, x.dtype) for x in arrays]


def test_shapes_follow_from_what_is_fed():
    subgraph = unknown(lambda x: cnp.exp(cnp.sin(x)) @ np.ones((3, 2)), (None, 3))
    assert not subgraph.graph.spec_of(subgraph.fetches[0]).known
    after = with_known_specs(subgraph, [Spec.of((5, 3), float)])
    assert after.graph.spec_of(after.fetches[0]) is Spec.of((5, 2), float)
    assert all(after.graph.spec_of(symbol).known for symbol in range(after.graph.n_symbols))
    check_same(subgraph, after, [np.ones((5, 3))])


def test_sums_to_the_shape_that_there_is_already_are_left_out():
    def function(x, y):
        return [sum_to_op(cnp.sin(x), y), broadcast_to_op(cnp.cos(y), x)]

    subgraph = unknown(function, (None,), (None,))
    same = with_known_specs(subgraph, [Spec.of((6,), float)] * 2)
    other = with_known_specs(subgraph, specs_of(X, X[:1]))
    assert names(same) == {"Sin": 1, "Cos": 1}
    assert names(other) == {"Sin": 1, "Cos": 1, "SumTo": 1, "BroadcastTo": 1}
    check_same(subgraph, same, [X, X])
    check_same(subgraph, other, [X, X[:1]])


def test_gradients_of_unknown_shapes_need_no_sums_when_the_shapes_are_equal():
    function = with_gradients(lambda x, y: x * cnp.sin(y))
    subgraph = unknown(function, (None,), (None,))
    after = simplified(with_known_specs(subgraph, specs_of(X, X)))
    assert "SumTo" in names(subgraph)
    assert "SumTo" not in names(after)
    check_same(subgraph, after, [X, 2 * X])
    other = simplified(with_known_specs(subgraph, specs_of(X, X[:1])))
    check_same(subgraph, other, [X, X[:1]], rtol=1e-14)


def test_unknown_extents_stay_unknown():
    subgraph = unknown(lambda x, y: cnp.sin(x) + cnp.cos(y), (None,), (None,))
    (spec,) = (subgraph.graph.spec_of(subgraph.feeds[1]),)
    after = with_known_specs(subgraph, [Spec.of((1,), float), spec])
    assert not after.graph.spec_of(after.fetches[0]).known
    check_same(subgraph, after, [X[:1], X])


def test_shapes_that_do_not_fit_are_refused():
    subgraph = unknown(lambda x, y: x + y, (None,), (None,))
    with pytest.raises(ValueError, match="broadcast"):
        with_known_specs(subgraph, specs_of(X, X[:4]))
    of_known_result = unknown(lambda x: x + X, (None,))
    assert of_known_result.graph.spec_of(of_known_result.fetches[0]).known
    with pytest.raises(ValueError, match="broadcast"):
        with_known_specs(of_known_result, specs_of(X[:4]))


def test_there_is_one_spec_per_feed():
    subgraph = subgraph_of(cnp.sin, X)
    with pytest.raises(ValueError, match="zip"):
        with_known_specs(subgraph, [])


def test_all_is_done_in_one_go():
    def function(x):
        cnp.tanh(x)
        two = cytape.constant(1.0) + cytape.constant(1.0)
        return [cnp.exp(x * two), cnp.exp(x * two) * 1.0, cnp.sin(x)]

    subgraph = subgraph_of(function, X)
    after = simplified(subgraph)
    assert names(after) == {"Multiply": 1, "Exp": 1, "Sin": 1}
    assert after.fetches[0] == after.fetches[1]
    check_same(subgraph, after, [X])


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    before = subgraph_of(function, *arrays)
    after = simplified(before)
    check_same(before, after, arrays)
    again = without_dead_code(simplified(after))
    assert again.graph.n_nodes == without_dead_code(after).graph.n_nodes
