"""Finding operations and tensors."""

import numpy as np
import pytest

import cytape
from cytape.ops.engine.op_kinds import general

declared_two = general("DeclaredTwoOutputs", lambda x: (x, x + 1), shape_rule=lambda x: (x, x))


def test_by_name(graph):
    x = graph.placeholder("float64", (2,), name="x")
    with graph.name_scope("a"):
        first, second = declared_two(x)
    assert graph.get_operation_by_name("a/DeclaredTwoOutputs") == first.op
    assert graph.get_tensor_by_name("a/DeclaredTwoOutputs:1").ref() == second.ref()
    assert graph.get_tensor_by_name("x:0").ref() == x.ref()
    later = np.tanh(x)
    assert graph.get_operation_by_name("Tanh") == later.op


def test_the_error_names_missing_elements(graph):
    graph.placeholder("float64", name="x")
    with pytest.raises(KeyError, match="no operation 'y'"):
        graph.get_operation_by_name("y")
    with pytest.raises(KeyError, match="no operation 'y'"):
        graph.get_tensor_by_name("y:0")
    with pytest.raises(KeyError, match="'x' has 1 outputs, none is 'x:1'"):
        graph.get_tensor_by_name("x:1")


@pytest.mark.parametrize("name", ["x:", "x:a", "x:-1", "x:²"])
def test_bad_tensor_names_are_refused(graph, name):
    graph.placeholder("float64", name="x")
    with pytest.raises(ValueError, match="not the name of a tensor"):
        graph.get_tensor_by_name(name)


def test_names_of_the_other_kind_are_refused(graph):
    graph.placeholder("float64", name="x")
    with pytest.raises(ValueError, match="'x'.* is not a tensor of a graph"):
        graph.get_tensor_by_name("x")
    with pytest.raises(ValueError, match="'x:0'.* is not an operation of a graph"):
        graph.get_operation_by_name("x:0")
    for find in (graph.get_tensor_by_name, graph.get_operation_by_name):
        with pytest.raises(TypeError, match="a name is a string"):
            find(3)


def test_elements_are_themselves(graph):
    x = graph.placeholder("float64", name="x")
    assert graph.as_graph_element(x) is x
    assert graph.as_graph_element(x.op) == x.op
    with pytest.raises(TypeError, match="is not an operation"):
        graph.as_graph_element(x, allow_tensor=False)
    with pytest.raises(TypeError, match="is not a tensor of"):
        graph.as_graph_element(x.op, allow_operation=False)
    for other in (3, None, cytape.constant(1.0), np.ones(2)):
        with pytest.raises(TypeError, match="is not a tensor or an operation"):
            graph.as_graph_element(other)
    other = cytape.Graph().placeholder("float64")
    for element in (other, other.op):
        with pytest.raises(ValueError, match="does not belong to this graph"):
            graph.as_graph_element(element)


def test_by_position(graph):
    x = graph.placeholder("float64", (2,), name="x")
    first, second = declared_two(x)
    assert graph.operation_at(1) == graph.operation_of(2) == second.op
    assert graph.tensor_name_of(2) == second.name
    assert [op.name for op in graph.get_operations()] == ["x", "DeclaredTwoOutputs"]


def test_operations_are_numbered_as_they_were_made():
    graph = cytape.Graph()
    ops = [graph.no_op(name) for name in "abcd"]
    assert [graph.number_of(op.node) for op in ops] == [0, 1, 2, 3]
    graph.rewire({}, {1: [3]})  # a, d, b, c
    assert [op.node for op in ops] == [0, 2, 3, 1]
    assert [graph.number_of(node) for node in range(4)] == [0, 3, 1, 2]
    assert [graph.node_numbered(number) for number in range(5)] == [0, 2, 3, 1, 4]
    late = graph.no_op("e")
    assert graph.number_of(late.node) == late.node == 4
    graph.rewire({}, {0: [late.node]})  # e, a, d, b, c
    assert [op.name for op in (*ops, late)] == list("abcde")
    assert [op.node for op in (*ops, late)] == [1, 3, 4, 2, 0]
    with pytest.raises(IndexError):
        graph.number_of(5)


def test_consumers_grow_with_the_graph(graph):
    x = graph.placeholder("float64", (2,), name="x")
    assert x.consumers() == []
    square = x * x
    assert x.consumers() == [square.op]
    tanh = np.tanh(x)
    with graph.control_dependencies([x]):
        graph.no_op()
    assert x.consumers() == [square.op, tanh.op]
    assert (square.consumers(), tanh.consumers()) == ([], [])
    first, second = declared_two(x)
    total = second + first
    assert first.consumers() == second.consumers() == [total.op]
    with pytest.raises(IndexError):
        graph.consumers_of(100)
