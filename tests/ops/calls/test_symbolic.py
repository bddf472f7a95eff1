"""SymbolicGraph: what calls of ops with its tensors add to it."""


import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph import Graph
from cytape.graph.run.interpreter import run
from cytape.ops.calls.symbolic import SymbolicGraph, graph_for
from cytape.ops.engine.op_kinds import OPS, general
from cytape.tensor.recording.state import building_into, current_graph


@pytest.fixture
def graph():
    return Graph()


def ops_of(graph):
    return [op.name for op in graph.ops]


def test_which_graph_a_call_belongs_to():
    graph, other = Graph(), Graph()
    p, x = graph.placeholder("float64", ()), cytape.constant(1.0)
    assert graph_for([x, 2.0]) is None
    assert graph_for([x, p]) is graph
    with other.as_default():
        assert graph_for([x, 2.0]) is other
        assert graph_for([2.0, np.ones(3)]) is None


# ---- calls that become nodes


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
    (np.float64(1.5), "float32", "float64"), (2, "float16", "float16")])
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
    (lambda x, y: x + y, r"\(3,\).*\(2, 4\)"), (lambda x, y: x @ y, r"\(3,\).*\(2, 4\)"),
    (lambda x, y: cnp.concatenate([x, y]), "dimension|shape"),
    (lambda x, y: x.reshape(2, 2), "reshape|size"), (lambda x, y: y[5], "index 5 is out of bounds"),
    (lambda x, y: cnp.sum(y, axis=2), "axis 2"),
    (lambda x, y: cnp.mean(cnp.sum(x), axis=1), "axis 1")])
def test_errors_come_when_a_graph_is_built_and_leave_it_as_it_was(graph, call, message):
    x, y = graph.placeholder("float64", (3,)), graph.placeholder("float64", (2, 4))
    with pytest.raises((ValueError, IndexError), match=message):
        call(x, y)
    assert graph.n_nodes == 2 + ("Sum" in ops_of(graph))


def test_an_op_without_a_shape_rule_is_asked_for_ones():
    graph = Graph()
    op = general("DeclaredOuterOfOnes", lambda x, n: np.ones((n,) + x.shape, x.dtype) * x)
    x = graph.placeholder("float32", (None, 3))
    y = op(x, n=2)
    assert y.shape == (2, None, 3) and y.dtype == "float32"


@pytest.mark.parametrize("ask", [
    bool, float, int, complex, lambda x: x.item(), lambda x: x.tolist(), lambda x: x.numpy(),
    np.asarray, lambda x: [0, 1][x.astype(int)], lambda x: range(x.astype(int))])
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


def test_recorders_follow_a_captured_tensor_under_its_id(graph):
    x = cytape.constant(3.0)
    with graph.as_default(), cytape.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        gradient = tape.gradient(y, x)
    assert run(graph, [graph.symbol_of(gradient)], {}) == [6.0]


def test_the_base_alone():
    graph = SymbolicGraph()
    with pytest.raises(NotImplementedError):
        graph.constant(cytape.constant(1.0))
    x = graph.build(OPS["Placeholder"], shape=(2,), dtype=np.dtype(float))
    assert graph.control_inputs_of(0) == [] and "Placeholder:0" in graph.describe(0)
    assert np.sin(x).graph is graph
