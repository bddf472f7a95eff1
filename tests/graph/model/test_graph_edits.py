"""Edits of inputs and control inputs of ops, and undoing."""

import numpy as np
import pytest

import cytape
from cytape.graph.model.graph_edits import says_as_much
from cytape.tensor import Spec
from tests.cases import each


@pytest.fixture
def graph():
    """x, y: placeholders; a = tanh(x), b = a * y, c: a NoOp after b."""
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (), name="x")
        y = cytape.placeholder("float64", (), name="y")
        a = cytape.identity(x, name="a")
        graph.give_name(a * y, "b")
        with graph.control_dependencies("b"):
            graph.no_op("c")
    return graph


def names(graph):
    return [op.name for op in graph.get_operations()]


def test_operations_and_tensors_stay_what_they_are_when_nodes_move(graph):
    a, b, c = map(graph.get_operation_by_name, "abc")
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
    z = graph.placeholder("float64", (), name="z")
    graph.add_to_collection("ops", b)
    hashes = [hash(op) for op in (a, b, c, z.op)]
    graph.rewire({a.node: {0: graph.symbol_of(z)}}, {})
    assert names(graph) == ["x", "y", "z", "a", "b", "c"]
    assert [op.name for op in (a, b, c, z.op)] == ["a", "b", "c", "z"]
    assert [hash(op) for op in (a, b, c, z.op)] == hashes
    assert [graph.get_operation_by_name(op.name) for op in (a, b, c, z.op)] == [a, b, c, z.op]
    assert (a.inputs[0].name, b.inputs[1].name, x.consumers()) == ("z:0", "y:0", [])
    assert (z.consumers(), y.consumers()) == ([a], [b])
    assert c.control_inputs == (b,)
    assert graph.get_collection("ops") == [b]
    late = graph.no_op("late")
    assert (late.node, names(graph)[-1]) == (6, "late")
    graph.rewire({}, {a.node: [late.node]})
    assert names(graph) == ["x", "y", "z", "late", "a", "b", "c"]
    assert (a.name, z.op.name, late.name, c.control_inputs) == ("a", "z", "late", (b,))


def test_names_that_were_given_stay_so(graph):
    z = abs(graph.placeholder("float64", (), name="z"))
    graph.rewire({2: {0: graph.symbol_of(z)}}, {})
    assert {op.name: graph.was_named(op.node) for op in graph.get_operations()} == {
        "x": True, "y": True, "z": True, "Absolute": False, "a": True, "b": True, "c": True}


def test_nothing_moves_that_need_not(graph):
    z = graph.placeholder("float64", (), name="z")
    w = abs(z)
    graph.rewire({w.op.node: {0: graph.symbol_of(graph.get_tensor_by_name("x:0"))}}, {})
    assert names(graph) == ["x", "y", "a", "b", "c", "z", "Absolute"]


def test_contexts_and_reads_of_variables_follow():
    graph = cytape.Graph()
    v = cytape.Variable(2.0, name="v")
    with graph.as_default():
        x = cytape.placeholder("float64", (), name="x")
        y = cytape.identity(x, name="y")
        with graph.control_dependencies(y):
            read = v * 1.0
    [gradient] = cytape.gradients(abs(y), x)
    z = graph.placeholder("float64", (), name="z")
    graph.rewire({y.op.node: {0: graph.symbol_of(z)}}, {})
    with graph.as_default(), graph.control_dependencies(y):
        again = v + 0.0
    assert again.op.control_inputs == (y.op,)
    reads = [op for op in graph.get_operations() if op.type == "ReadVariable"]
    assert len(reads) == 1  # the same one, after y
    assert reads[0].control_inputs == (y.op,)
    originals = {op.original_op.name for op in graph.get_operations() if op.original_op}
    assert originals == {"Absolute"}
    assert cytape.Session(graph).run([read, again], {z: 1.0}) == [2.0, 2.0]
    assert gradient.op.name.startswith("gradients")


def test_a_version_for_every_change(graph):
    versions = [graph.version]
    graph.rewire({3: {0: 0}}, {})
    versions.append(graph.version)
    graph.rewire({}, {4: []})
    versions.append(graph.version)
    graph.add_control_inputs(graph.get_operation_by_name("c"), "x")
    versions.append(graph.version)
    graph.no_op()
    versions.append(graph.version)
    assert len(set(versions)) == 5


def test_ops_built_in_a_block_that_raises_are_removed(graph):
    v = cytape.Variable(1.0, name="v")
    listing, version = str(graph), graph.version
    x = graph.get_tensor_by_name("x:0")
    graph.add_to_collection("all", x)
    with pytest.raises(ZeroDivisionError), graph.all_or_nothing(), graph.as_default():
        y = x * 3.25
        with graph.name_scope("scope"), graph.control_dependencies("a"):
            z = v * y
        assert z.name == "scope/Multiply:0"
        graph.add_control_inputs(z, y)
        graph.add_to_collection("all", z)
        graph.add_to_collection("new", z)
        assert x.consumers()[-1] == y.op
        raise ZeroDivisionError
    assert str(graph) == listing
    assert (graph.n_nodes, graph.n_symbols) == (5, 4)
    assert graph.version != version  # plans made inside are out of date
    assert graph.get_collection("all")[0].name == "x:0"
    assert (len(graph.get_collection("all")), graph.get_collection("new")) == (1, [])
    assert [op.name for op in x.consumers()] == ["a"]
    assert graph.variables == []
    with graph.as_default(), graph.name_scope("scope"):
        y = x * 3.25
        z = v * y
    assert [z.name, y.name] == ["scope/Multiply_1:0", "scope/Multiply:0"]
    assert [op.name for op in graph.get_operations()[5:]] == [
        "Constant", "scope/Multiply", "v", "scope/ReadVariable", "scope/Multiply_1"]
    assert cytape.Session(graph).run(z, {x: 2.0}) == 6.5


def test_a_block_within_a_block(graph):
    with pytest.raises(ZeroDivisionError), graph.all_or_nothing():
        graph.no_op("first")
        with graph.all_or_nothing():
            graph.no_op("second")
        raise ZeroDivisionError
    assert names(graph) == ["x", "y", "a", "b", "c"]
    with graph.all_or_nothing():
        graph.no_op("first")
    assert names(graph)[-1] == "first"


def test_captures_of_a_function_are_forgotten():
    outer = cytape.constant(2.0)

    @cytape.function
    def f(x):
        graph = x.graph
        with pytest.raises(ZeroDivisionError), graph.all_or_nothing():
            x * outer
            raise ZeroDivisionError
        assert graph.captures == []
        return x * outer

    assert f(cytape.constant(3.0)).numpy() == 6.0


def test_inputs_and_nodes_that_there_are(graph):
    for inputs in {9: {0: 0}}, {3: {0: 9}}, {3: {2: 0}}:
        with pytest.raises(IndexError):
            graph.rewire(inputs, {})
    assert names(graph) == ["x", "y", "a", "b", "c"]
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized: it cannot be edited"):
        graph.rewire({}, {})


@each("shape, other, expected", [
    ((2,), (2,), True), ((2,), (3,), False), ((2,), (2, 1), False), ((), None, True),
    (None, (), False), (None, None, True), ((None, 3), (None, 3), True), ((2, 3), (None, 3), True),
    ((2, 3), (None, None), True), ((None, 3), (2, 3), False), ((None,), (None, None), False),
])
def test_known_parts_of_a_shape(shape, other, expected):
    assert says_as_much(Spec.of(shape, float), Spec.of(other, float)) is expected
    assert not says_as_much(Spec.of(shape, float), Spec.of(other, np.float32))
