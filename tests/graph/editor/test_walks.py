"""Walks along a graph."""

import pytest

from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_d_5a_03_forward_walks(ops):
    walk = editor.get_forward_walk_ops
    assert names(walk(ops.c.op)) == ["c", "e", "f", "g", "h"]
    assert names(walk([ops.c.op], inclusive=False)) == ["e", "f", "g", "h"]
    assert names(walk(ops.a)) == ["c", "e", "f", "g", "h"]
    assert names(walk([ops.d])) == ["e", "f", "h"]
    assert walk([]) == []


def test_d_5a_03_backward_walks(ops):
    walk = editor.get_backward_walk_ops
    assert names(walk(ops.h.op)) == ["a", "b", "c", "d", "f", "g", "h"]
    assert names(walk(ops.e, inclusive=False)) == ["a", "b", "c", "d"]
    assert names(walk([ops.c])) == ["a", "b", "c"]
    assert walk([]) == []


def test_d_5a_04_walks_within_a_set_of_ops(ops):
    walk = editor.get_forward_walk_ops
    assert names(walk(ops.c.op, within_ops=[ops.c.op, ops.f.op])) == ["c", "f"]
    assert names(walk([ops.a.op, ops.c.op], within_ops=[ops.c.op])) == ["c"]
    assert walk(ops.c.op, within_ops=[ops.f.op]) == []  # the seed is outside
    assert walk(ops.c.op, within_ops=[]) == []
    assert names(editor.get_backward_walk_ops(ops.h.op, within_ops=[ops.h.op, ops.f.op])) == [
        "f", "h"]


def test_d_5a_04_walks_where_a_function_says(ops):
    allowed = {ops.c.op, ops.g.op, ops.h.op}.__contains__
    assert names(editor.get_forward_walk_ops(ops.c.op, within_ops_fn=allowed)) == ["c", "g", "h"]
    assert names(editor.get_backward_walk_ops(ops.h.op, within_ops_fn=allowed)) == ["c", "g", "h"]


def test_d_5a_04_walks_that_stop_at_tensors(ops):
    walk = editor.get_forward_walk_ops
    assert names(walk(ops.c.op, stop_at_ts=[ops.f])) == ["c", "e", "f", "g", "h"]  # h by g
    assert names(walk(ops.c.op, stop_at_ts=[ops.f, ops.g])) == ["c", "e", "f", "g"]
    walk = editor.get_backward_walk_ops
    assert names(walk(ops.f.op, stop_at_ts=ops.c)) == ["d", "f"]
    assert names(walk(ops.h.op, stop_at_ts=[ops.c, ops.d])) == ["a", "f", "g", "h"]


def test_d_5a_04_control_edges_only_when_asked_for(ops):
    walk = editor.get_backward_walk_ops
    assert names(walk(ops.h.op, stop_at_ts=[ops.f, ops.g])) == ["h"]
    assert names(walk(ops.h.op, stop_at_ts=[ops.f, ops.g], control_inputs=True)) == [
        "a", "b", "c", "h"]
    outputs = editor.ControlOutputs(ops.graph)
    stops = [ops.c]
    assert names(editor.get_forward_walk_ops(ops.c.op, stop_at_ts=stops)) == ["c"]
    assert names(editor.get_forward_walk_ops(
        ops.c.op, stop_at_ts=stops, control_outputs=outputs)) == ["c", "h"]


def test_both_walks_at_once(ops):
    assert names(editor.get_walks_intersection_ops(ops.c.op, ops.f.op)) == ["c", "f"]
    assert names(editor.get_walks_intersection_ops(
        ops.c.op, ops.f.op, backward_inclusive=False)) == ["c"]
    assert names(editor.get_walks_union_ops(ops.f.op, ops.c.op)) == ["a", "b", "c", "f", "h"]
    assert names(editor.get_walks_union_ops(
        ops.f.op, ops.c.op, forward_inclusive=False, within_ops=[ops.c.op, ops.h.op])) == ["c"]
    outputs = editor.ControlOutputs(ops.graph)
    assert names(editor.get_walks_intersection_ops(
        ops.c.op, ops.h.op, within_ops=[ops.c.op, ops.h.op], control_ios=outputs)) == ["c", "h"]


def test_walks_up_to_a_boundary(ops):
    walk = editor.get_within_boundary_ops
    assert names(walk(ops.graph, ops.e.op, ops.c.op)) == ["a", "c", "d", "e", "f", "g", "h"]
    assert "c" not in names(walk(ops.graph, ops.e.op, ops.c.op, inclusive=False))
    with pytest.raises(ValueError, match="seed_ops are on the boundary"):
        walk(ops.graph, ops.e.op, ops.e.op)


def test_a_walk_begins_at_operations_or_tensors(ops):
    with pytest.raises(TypeError, match="expected Operation objects"):
        editor.get_forward_walk_ops([ops.c.op, ops.d])
    with pytest.raises(TypeError, match="expected Tensor objects"):
        editor.get_backward_walk_ops([ops.c, ops.d.op])
    with pytest.raises(TypeError, match="got a graph"):
        editor.get_forward_walk_ops(ops.graph)
