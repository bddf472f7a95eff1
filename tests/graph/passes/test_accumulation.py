"""Sums of gradients of parts: each part is added where it belongs."""

import numpy as np
import pytest
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes.accumulation import accumulated
from cytape.graph.passes.fusion import fused
from cytape.graph.run.interpreter import run
from tests.cases import each
from tests.graph.passes.graphs import (
    GraphWithControls,
    check_same,
    names,
    programs,
    results,
    subgraph_of,
    with_gradients,
)

X = np.linspace(-1, 1, 12)
ROWS = X.reshape(3, 4)


def found(function, *arrays, rtol=0.0):
    before = subgraph_of(function, *arrays)
    after = accumulated(before)
    check_same(before, after, arrays, rtol)
    assert names(accumulated(after)) == names(after)
    counts = names(after)
    terms = [op.indices for op in after.graph.ops if op.name == "Accumulate"]
    return counts, terms


def test_gradients_of_slices_are_added_where_they_belong():
    counts, terms = found(with_gradients(lambda x: cnp.sum(x[1:] * x[:-1] + cnp.sin(x[::2][0]))), X)
    assert "Add" in counts  # of the forward pass
    (indices,) = terms
    assert len(indices) == 3
    assert counts.get("IndexAdd") == 1  # of a slice of a slice
    assert counts["Accumulate"] == 1


def test_whole_terms_and_parts_are_added_in_the_order_of_the_sum():
    def function(x):
        return cnp.sum(x * x[::-1]) + cnp.sum(x[3:5])

    counts, terms = found(with_gradients(function), X)
    assert counts["Accumulate"] == 1
    assert "IndexAdd" not in counts
    assert sum(index is None for index in terms[0]) == 1


@each("part", [
    lambda x: x[1:][x[1:] > -0.73] * 5.0, lambda x: x[::2][x[::2] < 0.5],
    lambda x: x[::-1][cnp.argsort(x[::-1])[:3]]])
def test_elements_in_places_that_a_run_tells_of_a_part_are_added_to_that_part(part):
    found(with_gradients(lambda x: cnp.sum(part(x)) + cnp.sum(x * x)), X)
    found(with_gradients(lambda x: cnp.sum(x * x) + cnp.sum(part(x)) + cnp.sum(cnp.sin(x))), X)


def test_many_elements_of_one_vector():
    counts, terms = found(
        with_gradients(lambda x: sum(x[i] * x[(5 * i) % 12] for i in range(12))), X)
    assert counts["Accumulate"] == 1
    assert len(terms[0]) == 24
    assert "IndexAdd" not in counts


def test_parts_of_a_matrix():
    def function(x):
        return cnp.sum(x[:, 1] * x[1, 0] + x[::-2, -1, None]) + cnp.sum(x[None, 0, ...] ** 2)

    counts, _ = found(with_gradients(function), ROWS, rtol=1e-15)
    assert counts["Accumulate"] == 1
    assert "IndexAdd" not in counts


def test_broadcast_terms_are_not_made():
    def function(x):
        return cnp.sum(x) + cnp.sum(x[2:]) + cnp.sum(x[:3])

    counts, terms = found(with_gradients(function), X)
    assert counts["Accumulate"] == 1
    assert terms[0].count(None) == 1


def test_indices_that_may_name_a_place_twice_are_left_to_numpy():
    counts, terms = found(
        with_gradients(lambda x: cnp.sum(x[np.array([0, 0, 3])]) + cnp.sum(x[1:])), X)
    assert counts["IndexAdd"] == 1
    assert sum(index is None for index in terms[0]) == 1


def test_elements_in_places_that_a_run_tells_are_added_to_what_is_fed():
    def sum_of_two(x, i):
        return cnp.sum(x[i] * x[i + 1])

    def gradient_and_more(x, i, carried):
        (gradient,) = cytape.gradients(sum_of_two(x, i), [x])
        return carried + gradient

    before = subgraph_of(gradient_and_more, X, np.array(4), X)
    after = accumulated(before)
    check_same(before, after, [X, np.array(4), X], rtol=1e-15)
    chain = [[after.graph.ops[after.graph.node_of(symbol)].name
              for symbol in after.graph.inputs_of(node)]
             for node in range(after.graph.n_nodes) if after.graph.ops[node].name == "Add"]
    assert chain[-2:] == [["Placeholder", "IndexAdd"], ["Add", "IndexAdd"]]
    assert names(fused(after)) == names(after)  # nor does one go through the whole for them


def test_sums_without_parts_are_left_alone():
    counts, terms = found(lambda x: [x + cnp.sin(x) + cnp.cos(x)], X)
    assert counts == {"Sin": 1, "Cos": 1, "Add": 2}
    assert terms == []


def test_values_used_elsewhere_are_computed_still():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(float, (12,))
        _, gradient = with_gradients(lambda x: cnp.sum(x[1:] * x[:-1]))(x)
        total = gradient + with_gradients(lambda x: cnp.sum(cnp.sin(x[5:])))(x)[1]
    symbols = [graph.symbol_of(t) for t in (x, gradient, total)]
    subgraph = Subgraph(graph, (symbols[0],), (symbols[2], symbols[1]))
    after = accumulated(subgraph)
    assert names(after)["Accumulate"] == 2
    check_same(subgraph, after, [X])
    part = next(graph.outputs_of(n)[0] for n, op in enumerate(graph.ops) if op.name == "IndexAdd")
    subgraph = Subgraph(graph, (symbols[0],), (symbols[2], part))
    after = accumulated(subgraph)
    assert names(after)["IndexAdd"] == 1
    check_same(subgraph, after, [X])
    fed = Subgraph(graph, (symbols[0], part), (symbols[2],))
    check_same(fed, accumulated(fed), [X, np.ones(12)])


def test_control_inputs_of_others_remain():
    graph = GraphWithControls()
    with graph.as_default():
        x = graph.placeholder(float, (12,))
        _, gradient = with_gradients(lambda x: cnp.sum(x[1:] * x[:-1]))(x)
        before = graph.after(gradient)
        y = cnp.sin(x)
        graph.enter_context(before)
    subgraph = Subgraph(
        graph, (graph.symbol_of(x),), (graph.symbol_of(y), graph.symbol_of(gradient)))
    after = accumulated(subgraph)
    assert names(after)["IndexAdd"] == 2
    node = after.graph.node_of(after.fetches[0])
    assert [after.graph.ops[n].name for n in after.graph.control_inputs_of(node)] == ["Add"]


def test_warnings_are_numpys():
    huge = np.array([1e308, 1e308])
    before = subgraph_of(
        lambda x: with_gradients(lambda y: cnp.sum(y[:2] * x) + cnp.sum(y[1:2] * 1e308))(x)[1:],
        huge)
    after = accumulated(before)
    assert names(after)["Accumulate"] == 1
    with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
        run(after.graph, after.fetches, {after.feeds[0]: huge})
    np.testing.assert_array_equal(results(after, [huge]), results(before, [huge]))


@settings(max_examples=100, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    found(function, *arrays)


@each("n_whole", [0, 1])
def test_broadcast_terms_beside_one_that_is_placed_at_run_time(n_whole):
    def f(x, mask):
        y = 2.0 * cnp.sum(x) + 3.0 * cnp.sum(x[mask]) + cnp.sum(x) * cnp.sum(x)
        return y + cnp.sum(x * x) if n_whole else y

    x, mask = np.array([0.5, -0.4, 0.8]), np.array([True, False, True])
    traced = cytape.function(cytape.grad(f))
    for _ in range(3):
        np.testing.assert_allclose(traced(x, mask), cytape.grad(f)(x, mask), rtol=1e-12)
    none = np.zeros(3, bool)
    np.testing.assert_allclose(traced(x, none), cytape.grad(f)(x, none), rtol=1e-12)
