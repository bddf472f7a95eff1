"""Views of what is described."""

import pytest

import cytape
from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_a_view_of_operations_tensors_and_names(ops):
    view = editor.make_view("^foo/bar/[ef]$", ops.a.op, ops.b, graph=ops.graph)
    assert names(view.ops) == ["e", "f", "a"]
    assert names(view.passthroughs) == ["b"]
    assert editor.sgv is editor.make_view
    assert editor.make_view(view) is view
    assert editor.make_view(view, graph=ops.graph) is view


def test_a_view_of_a_scope(ops):
    assert names(editor.sgv_scope("foo/bar", ops.graph).ops) == ["e", "f", "g", "h"]
    assert editor.sgv_scope is editor.make_view_from_scope
    assert not editor.sgv_scope("nothing", ops.graph)


def test_a_view_of_another_graph(ops):
    other = cytape.Graph()
    with pytest.raises(ValueError, match="another graph than the given one"):
        editor.make_view(ops.a.op, graph=other)
    with pytest.raises(ValueError, match="another graph than the given one"):
        editor.make_view(editor.sgv(ops.a.op), graph=other)
    with pytest.raises(ValueError, match="pass graph="):
        editor.make_view("^foo")
    with pytest.raises(TypeError):
        editor.make_view(3)
