"""Draws as ops: streams, seeds of graphs, draws for tensors of unknown shape."""

import pickle

import numpy as np
import pytest

import cytape
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.python import draws
from tests.cases import each


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


def test_without_seeds_a_graph_draws_from_what_eager_calls_draw_from():
    graph, seeded = Graph(), Graph()
    seeded.seed = 3
    for default in (draws.numpys_stream, draws.default_stream):
        assert draws.new_stream(graph, None, default) is default
        assert draws.new_stream(None, None, default.unseeded) is default
        assert pickle.loads(pickle.dumps(default)) is default and not default.given
    assert draws.new_stream(seeded).unseeded is draws.numpys_stream
    assert not draws.new_stream(seeded).given and draws.new_stream(seeded, 4).given
    assert repr(draws.new_stream(graph, 4)) == "Stream(0, 4)"


def test_seeds_are_for_numpys_generator_and_that_of_dropout():
    numbers, n = [], draws.times_seeded()
    for _ in range(2):
        draws.seed(seed=3)
        numbers.append((np.random.random(), draws.default_generator().random()))  # noqa: NPY002
    assert numbers[0] == numbers[1] and draws.times_seeded() == n + 2


@each("seed", [-3, 2.5])
def test_a_graph_with_a_bad_seed(seed):
    graph = Graph()
    graph.seed = seed
    with graph.as_default(), pytest.raises(ValueError, match="seed must be an integer"):
        draws.draw_of(draws.uniform_op, size=3, dtype=np.dtype(float), seed=None)


def test_an_input_in_a_graph_decides_where_to_draw():
    graph = Graph()
    x = graph.placeholder(np.dtype("float32"), None)
    y = draws.random_in_shape_of(x, np.dtype("float32"), None)
    assert y.graph is graph
    assert (y.shape, y.dtype) == (None, np.float32)
    (value,) = run(graph, [graph.symbol_of(y)], {graph.symbol_of(x): np.ones((2, 3), np.float32)})
    assert (value.shape, value.dtype) == ((2, 3), np.float32)


def test_dropout_in_a_trace_is_that_of_eager_calls():
    def f(x):
        return cytape.nn.dropout(x, 0.5)

    x, traced = np.arange(1.0, 40.0), cytape.function(f)
    draws.seed(3)
    expected = [f(x) for _ in range(2)]
    draws.seed(3)
    for e in expected:
        np.testing.assert_array_equal(traced(x), e)
    assert not np.array_equal(*expected)
