"""Views of parts of graphs."""

import pytest

import cytape
from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_d_5a_05_inputs_and_outputs(ops):
    view = editor.sgv(ops.f.op, ops.g.op)
    assert view.ops == (ops.f.op, ops.g.op)
    assert (names(view.inputs), names(view.outputs)) == (["c", "d", "a"], ["f", "g"])
    whole = editor.sgv(ops.graph)
    assert (names(whole.inputs), names(whole.outputs)) == ([], ["e", "h"])
    assert view.graph is ops.graph


def test_d_5a_05_lists_are_read_only(ops):
    view = editor.sgv(ops.f.op)
    for items in view.ops, view.inputs, view.outputs, view.passthroughs:
        with pytest.raises(AttributeError):
            items.append(None)


def test_d_5a_05_an_empty_view_is_false(ops):
    assert not editor.sgv()
    assert editor.sgv().graph is None
    assert editor.sgv().inputs == ()
    assert str(editor.sgv()) == "SubGraphView of nothing"
    assert editor.sgv(ops.a.op)


def test_d_5a_05_ops_of_two_graphs(ops):
    other = cytape.Graph().constant(1.0)
    with pytest.raises(ValueError, match="another graph"):
        editor.sgv(ops.a.op, other.op)
    with pytest.raises(ValueError, match="another graph"):
        editor.SubGraphView(ops.a.op, other)


def test_d_5a_06_inputs_by_index_or_tensor(ops):
    view = editor.sgv(ops.f.op, ops.g.op)
    assert names(view.remap_inputs([2, 0]).inputs) == ["a", "c"]
    assert names(view.remap_inputs([ops.a, ops.c]).inputs) == ["a", "c"]
    assert names(view.inputs) == ["c", "d", "a"]  # as it was
    for wrong in [0, 0], [ops.c, 0]:
        with pytest.raises(ValueError, match="an input can occur only once"):
            view.remap_inputs(wrong)
    for wrong in 3, -1:
        with pytest.raises(ValueError, match=f"3 inputs, there is no input {wrong}"):
            view.remap_inputs([wrong])
    with pytest.raises(ValueError, match="input of the view; its inputs are foo/c:0, foo/d:0, a:0"):
        view.remap_inputs([ops.h])


def test_d_5a_06_outputs_may_repeat(ops):
    view = editor.sgv(ops.f.op, ops.g.op)
    assert names(view.remap_outputs([1, 1, 0]).outputs) == ["g", "g", "f"]
    assert names(view.remap_outputs([ops.g]).outputs) == ["g"]
    assert names(view.remap_outputs([1, 1]).remap_outputs_make_unique().outputs) == ["g"]
    assert names(editor.sgv(ops.c.op).remap_outputs_to_consumers().outputs) == ["c"] * 3
    with pytest.raises(ValueError, match="2 outputs, there is no output 2"):
        view.remap_outputs([2])
    with pytest.raises(ValueError, match="is not an output of the view"):
        view.remap_outputs([ops.c])


def test_d_5a_06_back_to_the_default(ops):
    view = editor.sgv(ops.f.op, ops.g.op).remap([1], [0])
    assert (names(view.inputs), names(view.outputs)) == (["d"], ["f"])
    both = view.remap_default()
    assert (names(both.inputs), names(both.outputs)) == (["c", "d", "a"], ["f", "g"])
    inputs = view.remap_default(remove_output_map=False)
    assert (names(inputs.inputs), names(inputs.outputs)) == (["c", "d", "a"], ["f"])


def test_d_5a_06_unused_operations_are_pruned(ops):
    view = editor.sgv(ops.graph).remap_outputs([1]).remove_unused_ops()
    assert names(view.ops) == ["a", "b", "c", "d", "f", "g", "h"]
    view = editor.sgv(ops.c.op, ops.h.op).remap(new_output_indices=[ops.h]).remap_inputs([])
    assert names(view.remove_unused_ops(control_inputs=False).ops) == ["h"]
    assert names(view.remove_unused_ops().ops) == ["c", "h"]


def test_tensors_that_pass_through(ops):
    view = editor.SubGraphView([ops.f.op], [ops.a, ops.c, ops.b])
    assert names(view.passthroughs) == ["a", "b"]
    assert (names(view.inputs), names(view.outputs)) == (["c", "d", "a", "b"], ["f", "a", "b"])
    assert (names(view.connected_inputs), names(view.connected_outputs)) == (["c", "d"], ["f"])
    assert view.is_passthrough(ops.a)
    assert not view.is_passthrough(ops.c)
    assert names(editor.SubGraphView(passthrough_ts=[ops.a]).outputs) == ["a"]


def test_properties_of_a_view(ops):
    view = editor.sgv(ops.f.op, ops.g.op)
    assert view.op(1) == ops.g.op
    assert view.find_op_by_name("foo/bar/f") == ops.f.op
    with pytest.raises(ValueError, match="no op 'h' in the view, which has foo/bar/f, foo/bar/g"):
        view.find_op_by_name("h")
    assert (view.input_index(ops.a), view.output_index(ops.g)) == (2, 1)
    assert names(view.consumers()) == ["h"]
    assert names(editor.sgv(ops.c.op, ops.f.op).consumers()) == ["e", "g", "h"]
    assert str(view) == (
        "SubGraphView of 2 operations\nops: foo/bar/f, foo/bar/g\n"
        "inputs: foo/c:0, foo/d:0, a:0\noutputs: foo/bar/f:0, foo/bar/g:0")
    with view as same:
        assert same is view
    assert view.copy() is not view
