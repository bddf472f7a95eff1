"""Views cut out, connected and bypassed."""

import numpy as np
import pytest

import cytape
from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_d_5a_14_placeholders_before_the_inputs(ops):
    view = editor.sgv(ops.f.op, ops.g.op)
    same, placeholders = editor.detach_inputs(view)
    assert same is view
    assert [t.op.name for t in placeholders] == ["foo/geph__c_0", "foo/geph__d_0", "geph__a_0"]
    assert [t.id for t in view.inputs] == [t.id for t in placeholders]
    assert names(ops.e.op.inputs) == ["c", "d"]
    feeds = dict(zip(placeholders, np.full((3, 2), [[1.0], [2.0], [4.0]]), strict=True))
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(ops.h, feeds), [8.0, 8.0])


def test_d_5a_14_placeholders_behind_the_outputs(ops):
    view, placeholders = editor.detach_outputs(editor.sgv(ops.c.op, ops.f.op))
    assert names(view.outputs) == ["c", "f"]
    assert [t.op.name for t in placeholders] == ["foo/geph__c_0", "foo/bar/geph__f_0"]
    assert names(ops.f.op.inputs) == ["c", "d"]  # inside
    assert ops.g.op.inputs[0].id == placeholders[0].id
    view, placeholders = editor.detach_outputs(ops.h.op)  # which has no readers
    assert (view.outputs, placeholders) == ((), [])


def test_d_5a_14_both(ops):
    view, before, after = editor.detach(ops.f.op)
    assert [t.op.name for t in before + after] == [
        "foo/geph__c_0", "foo/geph__d_0", "foo/bar/geph__f_0"]
    assert ops.h.op.inputs[0].id == after[0].id
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(
        [ops.f, ops.h], {before[0]: [1.0, 1.0], before[1]: [2.0, 2.0], after[0]: [0.0, 0.0]}),
        [[3.0, 3.0], [4.0, 4.0]])


def test_d_5a_14_control_inputs_and_outputs(ops):
    view, _ = editor.detach_inputs(ops.h.op, control_inputs=True)
    assert ops.h.op.control_inputs == ()
    editor.add_control_inputs(ops.h.op, [ops.c.op, ops.f.op])
    editor.detach_control_outputs(ops.c.op, editor.ControlOutputs(ops.graph))
    assert ops.h.op.control_inputs == (ops.f.op,)
    editor.detach_control_inputs([ops.h.op, ops.f.op])
    assert ops.h.op.control_inputs == (ops.f.op,)  # inside
    outputs = editor.ControlOutputs(ops.graph)
    editor.add_control_inputs(ops.f.op, ops.a.op)
    editor.detach(ops.f.op, control_ios=outputs)
    assert ops.h.op.control_inputs == ops.f.op.control_inputs == ()


def test_control_outputs_alone(ops):
    editor.detach_outputs(ops.c.op, editor.ControlOutputs(ops.graph))
    assert ops.h.op.control_inputs == ()


def test_d_5a_14_outputs_feed_inputs(ops):
    graph = ops.graph
    x = graph.placeholder("float64", (2,), name="x")
    y = np.sqrt(x)
    view0, view1 = editor.connect(ops.a.op, y.op)
    assert view1.inputs[0].id == ops.a.id
    np.testing.assert_array_equal(cytape.Session(graph).run(y), [1.0, 1.0])
    both = editor.SubGraphView([ops.b.op, ops.d.op])
    editor.connect(both, ops.c.op)
    np.testing.assert_array_equal(cytape.Session(graph).run(ops.c), [5.0, 5.0])
    with pytest.raises(ValueError, match="got 1 and 2"):
        editor.connect(ops.a.op, ops.c.op)
    with pytest.raises(ValueError, match="would have to run before itself"):
        editor.connect(editor.SubGraphView([ops.e.op, ops.f.op]), ops.c.op)


def test_d_5a_14_earlier_consumers_of_the_outputs_can_be_disconnected(ops):
    n = ops.graph.n_nodes
    editor.connect(ops.e.op, abs(ops.b).op, disconnect_first=True)
    assert names(ops.c.op.inputs) == ["a", "b"]
    editor.connect(ops.c.op, editor.sgv(ops.h.op).remap_inputs([0]), disconnect_first=True)
    assert names(ops.h.op.inputs) == ["c", "g"]
    assert ops.e.op.inputs[0].op.name == "foo/geph__c_0"
    assert ops.graph.n_nodes == n + 2


def test_d_5a_14_bypassed(ops):
    view = editor.sgv(ops.f.op).remap_inputs([0])
    same, placeholders = editor.bypass(view)
    assert same is view
    assert names(ops.h.op.inputs) == ["c", "g"]
    assert [t.op.name for t in placeholders] == ["foo/geph__c_0"]
    assert ops.f.op.inputs[0].id == placeholders[0].id
    np.testing.assert_array_equal(cytape.Session(ops.graph).run(ops.h), [7.0, 7.0])


def test_arguments_that_do_not_fit_change_nothing(ops):
    listing = str(ops.graph)
    with pytest.raises(ValueError, match="got 2 and 1"):
        editor.bypass(ops.f.op)
    with pytest.raises(ValueError, match="got 1 and 2"):
        editor.connect(ops.c.op, ops.h.op, disconnect_first=True)
    for edit in editor.detach, editor.detach_inputs, editor.detach_outputs, editor.bypass:
        with pytest.raises(ValueError, match="the view is empty"):
            edit([])
    assert str(ops.graph) == listing


def test_placeholders_of_an_edit_that_fails_are_taken_back(ops):
    listing = str(ops.graph)
    with pytest.raises(ValueError, match="would have to run before itself"):
        editor.connect(editor.SubGraphView([ops.e.op, ops.f.op]), ops.c.op, disconnect_first=True)
    assert str(ops.graph) == listing


def test_variables_are_not_detached_from_what_reads_them():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (), name="x")
        w = cytape.Variable(3.0, name="w")
        with cytape.name_scope("enc"):
            y = x * w
    view, [placeholder] = editor.detach_inputs(editor.sgv_scope("enc", graph=graph))
    assert [t.name for t in view.inputs] == ["w:0", placeholder.name]
    assert cytape.Session(graph).run(y, {placeholder: 2.0}) == 6.0
    read, placeholders = editor.detach_outputs(graph.variable_handle(w).op)
    assert read.outputs == () and placeholders == []
