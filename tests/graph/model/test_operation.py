"""Views of a graph's operations."""

import numpy as np
import pytest

import cytape
from cytape.ops.engine.op_kinds import general

declared_halves = general("DeclaredHalves", lambda x: (x[:2], x[2:]))


def test_an_operation_shows_what_was_called(graph):
    x = graph.placeholder("float64", (2, 3), name="x")
    y = np.sum(x, axis=1)
    operation = y.op
    assert (operation.name, operation.type, operation.graph) == ("Sum", "Sum", graph)
    assert [tensor.name for tensor in operation.inputs] == ["x:0"]
    assert [tensor.name for tensor in operation.outputs] == ["Sum:0"]
    assert [tensor.name for tensor in operation.values()] == ["Sum:0"]
    assert (operation.get_attr("axis"), operation.attrs["keepdims"]) == (1, False)
    assert operation.definition is cytape.ops.engine.op_kinds.OPS["Sum"]
    assert repr(operation) == "<Operation 'Sum' (Sum)>"
    assert (y.name, y.value_index, y.graph, y.shape) == ("Sum:0", 0, graph, (2,))


def test_its_attributes_cannot_be_changed_through_it(graph):
    operation = np.sum(graph.placeholder("float64", (2, 3)), axis=1).op
    operation.attrs["axis"] = 0
    assert operation.get_attr("axis") == 1


def test_a_missing_attribute_is_named(graph):
    operation = graph.placeholder("float64", name="x").op
    with pytest.raises(KeyError, match="op 'x' has no attribute 'axis'.*dtype.*shape"):
        operation.get_attr("axis")


def test_views_of_the_same_call_are_equal(graph):
    x, y = graph.placeholder("float64"), graph.placeholder("float64")
    assert x.op is not x.op
    assert x.op == x.op and hash(x.op) == hash(x.op)
    assert x.op != y.op
    assert x.op != cytape.Graph().placeholder("float64").op
    assert x.op != "Placeholder"
    assert {x.op: 1, y.op: 2}[x.op] == 1


def test_several_outputs_have_numbers(graph):
    halves = declared_halves(graph.placeholder("float64", (4,), name="x"))
    assert [half.name for half in halves] == ["DeclaredHalves:0", "DeclaredHalves:1"]
    assert [half.value_index for half in halves] == [0, 1]
    assert halves[0].op == halves[1].op
    assert [half.ref() for half in halves[0].op.outputs] == [half.ref() for half in halves]


def test_it_knows_where_it_was_built(graph):
    def build():
        return np.tanh(graph.placeholder("float64"))

    file, line, function = build().op.location
    assert (file, function) == (__file__, "build")
    assert line == build.__code__.co_firstlineno + 1


def test_it_knows_what_it_differentiates(graph):
    x = graph.placeholder("float64", name="x")
    with graph.original_op(x.op):
        y = np.tanh(x)
        with graph.original_op(None):
            z = np.tanh(x)
    assert (x.op.original_op, y.op.original_op, z.op.original_op) == (None, x.op, None)


def test_control_inputs_and_device(graph):
    first = graph.no_op("first")
    with graph.control_dependencies([first]), graph.device("cpu:1"):
        second = graph.no_op("second")
    assert (first.control_inputs, first.device) == ((), "")
    assert (second.control_inputs, second.device) == ((first,), "cpu:1")


def test_there_is_none_out_of_range(graph):
    with pytest.raises(IndexError, match="no node 0"):
        graph.operation_at(0)


def test_tensors_with_values_have_none():
    x = cytape.constant(1.0)
    for attribute in ("op", "name", "value_index"):
        with pytest.raises(AttributeError, match="only symbolic tensors"):
            getattr(x, attribute)
    with pytest.raises(AttributeError, match="only symbolic tensors"):
        x.consumers()
    assert (x.graph, x.device) == (None, "cpu")
    assert cytape.Variable(1.0, name="v").name == "v"


def test_a_view_keeps_its_graph():
    operation = cytape.Graph().placeholder("float64", name="x").op
    assert operation.graph.get_operations() == [operation]
