"""The gradient function of one op of a graph."""

import numpy as np
import pytest

import cytape
from cytape.errors import InvalidGradientError, NotDifferentiableError
from cytape.ops.engine.node_vspace import gradients_of_node, takes_none
from cytape.ops.engine.op_kinds import OPS, general
from tests.graph.programs import evaluate, types_of


@pytest.fixture
def graph():
    graph = cytape.Graph()
    with graph.as_default():
        yield graph


def of(tensor, gradients, needed, rule=None):
    return gradients_of_node(tensor.graph, tensor.op.node, gradients, needed, rule)


def test_elementwise(graph):
    x, y = cytape.constant(3.0), cytape.constant([5.0, 7.0])
    dx, dy = of(x * y, [cytape.constant([1.0, 10.0])], [True, True])
    assert evaluate(dx) == 75.0
    np.testing.assert_array_equal(evaluate(dy), [3.0, 30.0])


def test_only_what_is_needed_is_computed(graph):
    x, y = cytape.constant(3.0), cytape.constant(5.0)
    z, g = x * y, cytape.constant(1.0)
    before = graph.n_nodes
    dx, dy = of(z, [g], [False, True])
    assert dx is None
    assert evaluate(dy) == 3.0
    assert types_of(graph, before) == ["Multiply"]


def test_several_outputs(graph):
    x = cytape.constant([1.0, 2.0, 3.0])
    first, _ = np.split(x, [1])
    [dx] = of(first, [cytape.constant([5.0]), cytape.constant([6.0, 7.0])], [True])
    np.testing.assert_array_equal(evaluate(dx), [5.0, 6.0, 7.0])


def test_matrix_product(graph):
    a, b = cytape.constant(np.arange(6.0).reshape(2, 3)), cytape.constant(np.ones(3))
    da, db = of(a @ b, [cytape.constant([1.0, 10.0])], [True, True])
    np.testing.assert_array_equal(evaluate(da), [[1.0] * 3, [10.0] * 3])
    np.testing.assert_array_equal(evaluate(db), [30.0, 41.0, 52.0])


def test_gradients_get_the_dtype_of_the_input(graph):
    x = cytape.constant(np.ones(2, "float32"))
    [dx] = of(DECLARED_DOUBLES(x), [cytape.constant(np.ones(2, "float32"))], [True])
    assert dx.dtype == np.float32


DECLARED_DOUBLES = general(
    "DeclaredDoubles", lambda x: 2 * x, vjp=lambda op, g: g.astype("float64") * 2.0)


def test_ops_that_end_gradients(graph):
    x = cytape.constant(3.0)
    assert of(np.floor(x), [x], [True]) == [None]


opaque = general("DeclaredOpaqueNode", lambda x: x)
wrong = general("DeclaredWrongNode", lambda x, y: x, vjp=lambda op, g: (g,))


def test_errors(graph):
    x = cytape.constant(3.0)
    with pytest.raises(NotDifferentiableError, match="'DeclaredOpaqueNode'"):
        of(opaque(x), [x], [True])
    with pytest.raises(InvalidGradientError, match="expected 2, got 1"):
        of(wrong(x, x), [x], [True, True])
    with pytest.raises(IndexError):
        gradients_of_node(graph, graph.n_nodes, [x], [True])


@pytest.mark.parametrize("function", [np.sin, opaque])
def test_a_rule_sees_all_of_the_call(graph, function):
    calls = []

    def rule(op, dy):
        calls.append(op)
        return dy * op.inputs[0] + op.outputs[0]

    x = cytape.constant(2.0)
    y = function(x)
    [dx] = of(y, [cytape.constant(10.0)], [True], rule)
    assert evaluate(dx) == 20.0 + evaluate(y)
    [op] = calls
    assert (op.name, op.type, op.graph, op.needs) == (y.op.name, y.op.type, graph, (True,))
    assert op.inputs[0].name == x.name
    assert (op.input_specs[0], op.output_specs[0]) == (x.spec, y.spec)


def test_a_rule_sees_the_attributes(graph):
    x = cytape.constant([1.0, 2.0])
    y = np.sum(x, axis=0)
    seen = []
    of(y, [cytape.constant(1.0)], [True], lambda op, dy: seen.append(op.get_attr("axis")))
    assert seen == [0]


def test_takes_none():
    assert takes_none(OPS["Tuple"], 0)
    assert takes_none(OPS["Tuple"], 63)
    assert takes_none(OPS["Tuple"], 64)
    assert not takes_none(OPS["IdentityN"], 0)
    assert not takes_none(OPS["IdentityN"], 64)
