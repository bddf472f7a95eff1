"""SymbolicGraph: how calls of ops are stored, and what tells of them."""

import gc
import sys
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.reference import run
from cytape.ops.creation import identity_op
from cytape.ops.declare import OPS, general
from cytape.ops.symbolic import SymbolicGraph
from cytape.tensor.spec import Spec
from cytape.tensor.state import building_into, current_graph

halves = general("DeclaredSymbolicHalves", lambda x: (x / 2, x / 2),
                 shape_rule=lambda x: (x, x))


@pytest.fixture
def graph():
    return Graph()


def ops_of(graph):
    return [op.name for op in graph.ops]


# ---- storage


def test_nodes_and_symbols(graph):
    x = graph.placeholder("float64", (2,))
    a, b = halves(x)
    y = a * b
    assert ops_of(graph) == ["Placeholder", "DeclaredSymbolicHalves", "Multiply"]
    assert (graph.n_nodes, graph.n_symbols) == (3, 4)
    assert [list(graph.outputs_of(n)) for n in range(3)] == [[0], [1, 2], [3]]
    assert [graph.inputs_of(n) for n in range(3)] == [[], [0], [1, 2]]
    assert [graph.node_of(s) for s in range(4)] == [0, 1, 1, 2]
    assert graph.output_position(2) == 1 and graph.spec_of(3) is x.spec
    assert graph.symbol_of(y) == 3 and graph.tensor_at(3).id == y.id


@pytest.mark.parametrize("ask", [
    lambda g: g.inputs_of(5), lambda g: g.outputs_of(-1), lambda g: g.spec_of(9),
    lambda g: g.node_of(-1), lambda g: g.tensor_at(1), lambda g: g.context_of(1),
    lambda g: g.location_of(7), lambda g: g.add(identity_op, [3], {}, [Spec.of((), float)]),
    lambda g: g.add(identity_op, [0] * 70 + [3], {}, [Spec.of((), float)]),
])
def test_positions_are_checked(graph, ask):
    graph.placeholder("float64", ())
    with pytest.raises(IndexError):
        ask(graph)
    assert graph.n_nodes == 1


def test_many_nodes_and_inputs(graph):
    x = graph.placeholder("float64", ())
    y = x
    for _ in range(5000):
        y = y + x
    total = cnp.stack([y] * 100)
    assert graph.n_nodes > 5000 and total.shape == (100,)
    results = run(graph, [graph.symbol_of(total)], {graph.symbol_of(x): np.array(1.0)})
    np.testing.assert_array_equal(results[0], np.full(100, 5001.0))


def test_where_a_node_was_built(graph):
    x = graph.placeholder("float64", (2,))
    y = np.tanh(x); line = sys._getframe().f_lineno  # noqa: E702
    z = cnp.mean(
        y * 2.0)
    for tensor, expected in (y, line), (z, line + 1):
        file, found, name = graph.location_of(graph.node_of(graph.symbol_of(tensor)))
        assert (file, name) == (__file__, "test_where_a_node_was_built")
        assert expected <= found <= expected + 1


def test_a_graph_goes_with_its_last_tensor(graph):
    x = graph.placeholder("float64", ())
    y = np.sin(x) * 2.0
    gone = weakref.ref(graph)
    del graph, x
    gc.collect()
    assert gone() is None or y.graph is gone()
    del y
    gc.collect()


# ---- what becomes a node


def test_tensors_with_values_become_constants_and_numbers_are_shared(graph):
    x = graph.placeholder("float64", (2,))
    c = cytape.constant([1.0, 2.0])
    y = x * 2.0 + 2 * c + np.array([5.0, 6.0]) - 0.0 * -0.0
    assert ops_of(graph).count("Constant") == 4  # 2.0 once, -0.0, c, the array
    (result,) = run(graph, [graph.symbol_of(y)], {graph.symbol_of(x): np.ones(2)})
    np.testing.assert_array_equal(result, [9.0, 12.0])


@pytest.mark.parametrize("number, dtype, expected", [
    (2, "float32", "float32"), (2.5, "float32", "float32"), (2, "int8", "int8"),
    (2.5, "int64", "float64"), (True, "int64", "int64"), (1j, "float32", "complex64"),
    (np.float64(1.5), "float32", "float64"), (2, "float16", "float16"),
])
def test_numbers_are_weak_as_numpys(graph, number, dtype, expected):
    x = graph.placeholder(dtype, (2,))
    for y in (x * number, number * x):
        assert y.dtype == (np.ones(2, dtype) * number).dtype == expected


def test_a_number_that_does_not_fit(graph):
    x = graph.placeholder("int8", (2,))
    with pytest.raises(OverflowError):
        x + 1000


def test_everything_is_built_while_a_graph_is(graph):
    with graph.as_default():
        assert current_graph() is graph
        y = cytape.constant(2.0) * 3.0
        with building_into(None):
            assert float(cytape.constant(2.0) * 3.0) == 6.0
    assert y.graph is graph and current_graph() is None
    assert (cytape.constant(2.0) * 3.0).graph is None


def test_plain_arrays_stay_plain(graph):
    with graph.as_default():
        assert isinstance(cnp.sin(np.ones(2)), np.ndarray)
    assert graph.n_nodes == 0


def test_tensors_of_another_graph(graph):
    x, other = graph.placeholder("float64", ()), Graph()
    y = other.placeholder("float64", ())
    with pytest.raises(ValueError, match="belongs to another graph"):
        x + y
    with other.as_default(), pytest.raises(ValueError, match="belongs to another graph"):
        np.sin(x)
    assert graph.n_nodes == other.n_nodes == 1


@pytest.mark.parametrize("call, message", [
    (lambda x, y: x + y, r"\(3,\).*\(2, 4\)"),
    (lambda x, y: x @ y, r"\(3,\).*\(2, 4\)"),
    (lambda x, y: cnp.concatenate([x, y]), "dimension|shape"),
    (lambda x, y: x.reshape(2, 2), "reshape|size"),
    (lambda x, y: y[5], "index 5 is out of bounds"),
    (lambda x, y: cnp.sum(y, axis=2), "axis 2"),
    (lambda x, y: cnp.mean(cnp.sum(x), axis=1), "axis 1"),
])
def test_errors_come_when_a_graph_is_built_and_leave_it_as_it_was(graph, call, message):
    x, y = graph.placeholder("float64", (3,)), graph.placeholder("float64", (2, 4))
    with pytest.raises((ValueError, IndexError), match=message):
        call(x, y)
    assert graph.n_nodes == 2 + ("Sum" in ops_of(graph))


def test_a_finalized_graph(graph):
    x = graph.placeholder("float64", (3,))
    graph.finalize()
    for call in (lambda: x + 1.0, lambda: np.sin(x), lambda: x[0], lambda: x @ x):
        n_nodes = graph.n_nodes
        with pytest.raises(RuntimeError, match="finalized"):
            call()
        assert graph.n_nodes == n_nodes


def test_an_op_without_a_shape_rule_is_asked_for_ones():
    graph = Graph()
    op = general("DeclaredOuterOfOnes", lambda x, n: np.ones((n,) + x.shape, x.dtype) * x)
    x = graph.placeholder("float32", (None, 3))
    y = op(x, n=2)
    assert y.shape == (2, None, 3) and y.dtype == "float32"


@pytest.mark.parametrize("ask", [
    bool, float, int, complex, lambda x: x.item(), lambda x: x.tolist(), lambda x: x.numpy(),
    np.asarray, lambda x: [0, 1][x.astype(int)], lambda x: range(x.astype(int)),
])
def test_a_symbolic_tensor_has_no_value(graph, ask):
    x = graph.placeholder("float64", ())
    with pytest.raises(SymbolicTensorError, match=r"symbolic.*test_symbolic.py, line \d+"):
        ask(x)


# ---- recorders


def test_recorders_follow_what_is_built(graph):
    with graph.as_default():
        x = graph.placeholder("float64", (2,))
        with cytape.ForwardAccumulator(x, np.array([1.0, 2.0])) as accumulator:
            with cytape.GradientTape() as tape:
                tape.watch(x)
                y = cnp.sum(cnp.exp(x) * x)
            (dx,) = tape.gradient(y, [x])
        slope, product = accumulator.jvp(y), accumulator.jvp(dx)
    x_value = np.array([0.5, -1.0])
    found = cytape.Session(graph).run([dx, slope, product], {x: x_value})
    gradient = np.exp(x_value) * (x_value + 1)
    expected = gradient, gradient @ [1.0, 2.0], np.exp(x_value) * (x_value + 2) * [1.0, 2.0]
    for actual, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, e, rtol=1e-14)


def test_the_base_alone():
    graph = SymbolicGraph()
    with pytest.raises(NotImplementedError):
        graph.constant(cytape.constant(1.0))
    x = graph.build(OPS["Placeholder"], shape=(2,), dtype=np.dtype(float))
    assert graph.control_inputs_of(0) == [] and "Placeholder:0" in graph.describe(0)
    assert np.sin(x).graph is graph
