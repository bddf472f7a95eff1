"""Producers, consumers and boundaries of operations and tensors."""

import pytest

import cytape
from cytape.graph import editor


def names(items):
    return [item.name.removeprefix("foo/").removeprefix("bar/").removesuffix(":0")
            for item in items]


def test_producers_and_consumers(ops):
    assert names(editor.get_tensors(ops.graph)) == list("abcdefgh")
    assert editor.get_generating_ops([ops.c, ops.h]) == [ops.c.op, ops.h.op]
    assert names(editor.get_consuming_ops([ops.a, ops.c])) == ["c", "g", "e", "f"]
    assert editor.get_consuming_ops([]) == []
    with pytest.raises(TypeError, match="expected a graph"):
        editor.get_tensors(ops.a)


def test_d_5a_09_control_outputs_can_be_queried_per_graph(ops):
    outputs = editor.ControlOutputs(ops.graph)
    assert outputs.graph is ops.graph
    assert outputs.get(ops.c.op) == [ops.h.op]
    assert outputs.get(ops.a.op) == []
    editor.add_control_inputs(ops.g.op, ops.b.op)
    assert outputs.get(ops.b.op) == []
    assert outputs.update() is outputs
    assert outputs.get_all() == {ops.c.op: [ops.h.op], ops.b.op: [ops.g.op]}
    with pytest.raises(TypeError, match="expected a graph"):
        editor.ControlOutputs(ops.a)


def test_check_cios(ops):
    outputs = editor.ControlOutputs(ops.graph)
    assert editor.check_cios() == (False, None)
    assert editor.check_cios(True, outputs) == (True, outputs)
    assert editor.check_cios(control_ios=outputs) == (True, outputs)
    with pytest.raises(ValueError, match="not both"):
        editor.check_cios(control_outputs=outputs, control_ios=outputs)
    with pytest.raises(TypeError, match="expected a ControlOutputs"):
        editor.check_cios(control_outputs=True)


def test_neighbours_of_operations(ops):
    assert set(names(editor.get_ops_ios(ops.f.op))) == {"c", "d", "h"}
    assert set(names(editor.get_ops_ios(ops.c.op))) == {"a", "b", "e", "f", "g"}
    outputs = editor.ControlOutputs(ops.graph)
    assert set(names(editor.get_ops_ios(ops.c.op, control_ios=outputs))) == set("abefgh")
    assert set(names(editor.get_ops_ios(ops.h.op, control_inputs=True))) == {"f", "g", "c"}


def test_boundaries(ops):
    inputs, outputs, inside = editor.compute_boundary_ts([ops.c.op, ops.e.op])
    assert (names(inputs), names(outputs), names(inside)) == (["a", "b", "d"], ["c", "e"], ["c"])
    inputs, outputs, inside = editor.compute_boundary_ts(ops.graph)
    assert (names(inputs), names(outputs), names(inside)) == ([], ["e", "h"], list("abcdfg"))
    assert editor.compute_boundary_ts([]) == ([], [], [])


def test_consumers_follow_edits(ops):
    assert names(ops.c.consumers()) == ["e", "f", "g"]
    editor.reroute_ts(ops.a, ops.c, can_modify=ops.f.op)
    assert names(ops.c.consumers()) == ["e", "g"]
    assert names(ops.a.consumers()) == ["c", "f", "g"]
    graph = cytape.Graph()
    x = graph.placeholder("float64", (), name="x")
    assert x.consumers() == []
    y = abs(x)
    assert x.consumers() == [y.op]
