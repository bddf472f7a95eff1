"""Draws as ops: streams, seeds of graphs, draws for tensors of unknown shape."""

import pickle

import numpy as np
import pytest

import cytape
from cytape.graph import Graph
from cytape.graph.run.reference import run
from cytape.ops.shared import draws


def test_draws_are_stateful():
    assert draws.normal_op.stateful
    assert all(op.stateful for name, op in cytape.ops.OPS.items() if name.startswith("Random"))


def test_streams_begin_again_from_their_seeds():
    stream = draws.Stream(3, 4)
    first = stream.generator.random(2)
    again = pickle.loads(pickle.dumps(stream))
    assert (again.graph_seed, again.op_seed, repr(again)) == (3, 4, "Stream(3, 4)")
    np.testing.assert_array_equal(again.generator.random(2), first)
    assert not np.array_equal(stream.generator.random(2), first)


def test_a_stream_of_a_graph_without_a_seed_begins_anew_with_each_seed():
    stream = draws.Stream(None, 4)
    assert repr(stream) == "Stream(None, 4)"  # and nothing is drawn to say so
    draws.seed(3)
    first, n = stream.generator.random(2), draws.times_seeded()
    assert not np.array_equal(stream.generator.random(2), first)
    draws.seed(3)
    assert draws.times_seeded() == n + 1
    np.testing.assert_array_equal(stream.generator.random(2), first)
    draws.seed(4)
    assert not np.array_equal(stream.generator.random(2), first)


@pytest.mark.parametrize("seed", [-3, 2.5])
def test_a_graph_with_a_bad_seed(seed):
    graph = Graph()
    graph.seed = seed
    with graph.as_default(), pytest.raises(ValueError, match="seed must be an integer"):
        draws.draw_shaped(draws.uniform_op, (), 3, np.dtype(float), None)


def test_an_input_in_a_graph_decides_where_to_draw():
    graph = Graph()
    x = graph.placeholder(np.dtype("float32"), None)
    y = draws.random_in_shape_of(x, np.dtype("float32"), None)
    assert y.graph is graph
    assert (y.shape, y.dtype) == (None, np.float32)
    (value,) = run(graph, [graph.symbol_of(y)], {graph.symbol_of(x): np.ones((2, 3), np.float32)})
    assert (value.shape, value.dtype) == ((2, 3), np.float32)
