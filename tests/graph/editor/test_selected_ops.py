"""Operations and tensors selected."""

import re

import pytest

import cytape
from cytape.graph import editor
from tests.graph.editor.test_connections import names


def test_d_5a_01_selecting_operations(ops):
    graph = ops.graph
    assert len(editor.select_ops(graph)) == 8
    assert len(editor.select_ops("^foo/", graph=graph)) == 7
    assert len(editor.select_ops("^foo/bar/", graph=graph)) == 4
    assert len(editor.select_ops("^foo/bar/", ops.a.op, graph=graph)) == 5
    assert len(editor.select_ops(re.compile("^foo/bar/"), graph=graph)) == 4
    assert editor.select_ops("^foo/bar/", "bar/e$", ops.e.op, graph=graph) == (
        editor.select_ops("^foo/bar/", graph=graph))


def test_d_5a_01_selecting_tensors(ops):
    assert len(editor.select_ts(".*:0", graph=ops.graph)) == 8
    assert len(editor.select_ts(ops.graph)) == 8
    assert names(editor.select_ts(ops.a, [ops.a, ops.b, ops.c.op])) == ["a", "b"]


def test_d_5a_01_regular_expressions_that_say_what_they_are_meant_for(ops):
    graph = ops.graph
    assert editor.select_ops("(?#ts)^foo/", graph=graph) == []
    assert len(editor.select_ops("(?#ops)^foo/", graph=graph)) == 7
    assert editor.select_ts("(?#ops)^foo/", graph=graph) == []
    assert len(editor.select_ts("(?#ts)^foo/", graph=graph)) == 7
    assert editor.select_ops("^foo/", graph=graph, restrict_ops_regex=True) == []
    assert editor.select_ts("^foo/", graph=graph, restrict_ts_regex=True) == []
    found, ts = editor.select_ops_and_ts("^foo/bar/", "(?#ts)^foo/b:0", ops.a, graph=graph)
    assert (names(found), names(ts)) == (["e", "f", "g", "h"], ["b", "a"])


def test_d_5a_01_a_regular_expression_without_a_graph(ops):
    for select in editor.select_ops, editor.select_ts:
        with pytest.raises(ValueError, match="a search for '\\^foo' needs a graph"):
            select("^foo")
    with pytest.raises(TypeError):
        editor.select_ops("^foo", graphs=ops.graph)


@pytest.mark.parametrize("scope", ["foo/bar", "foo/bar/"])
def test_d_5a_01_scopes(ops, scope):
    assert names(editor.get_name_scope_ops(ops.graph, scope)) == ["e", "f", "g", "h"]
    assert len(editor.sgv_scope(scope, ops.graph).ops) == 4


def test_scopes_are_no_regular_expressions(ops):
    graph = cytape.Graph()
    graph.no_op("a.b/c"), graph.no_op("axb/c"), graph.no_op("a.bb/c")
    assert [op.name for op in editor.get_name_scope_ops(graph, "a.b")] == ["a.b/c"]
    assert len(editor.get_name_scope_ops(graph, "")) == 3
    with pytest.raises(TypeError, match="a scope is a string"):
        editor.get_name_scope_ops(graph, None)


def test_d_5a_02_all_inputs_and_outputs_each_once_inputs_first(ops):
    assert names(editor.filter_ts([ops.f.op, ops.g.op], True)) == ["c", "d", "a", "f", "g"]
    assert names(editor.filter_ts([ops.c.op, ops.f.op], True)) == ["a", "b", "c", "d", "f"]
    assert names(editor.filter_ts(ops.f.op, lambda t: t.op.type == "Add")) == ["c", "f"]
    assert editor.filter_ts([], True) == []


def test_d_5a_02_the_regular_expression_is_for_names_of_tensors(ops):
    assert names(editor.filter_ts_from_regex(ops.graph, "^foo/.:0$")) == ["b", "c", "d"]
    assert editor.filter_ts_from_regex(ops.graph, "Add") == []  # that is their type
    assert names(editor.filter_ops_from_regex(ops.graph, "bar/[ef]")) == ["e", "f"]


def test_filters(ops):
    assert len(editor.filter_ops(ops.graph, True)) == 8
    assert names(editor.filter_ops(ops.graph, lambda op: op.type == "Constant")) == ["a", "b", "d"]
    assert names(editor.select_ops(ops.graph, positive_filter=lambda op: op == ops.a.op)) == ["a"]
    assert names(editor.select_ts(ops.graph, positive_filter=lambda t: t is not None)) == list(
        "abcdefgh")
    with pytest.raises(TypeError, match="positive_filter must be a function"):
        editor.filter_ops(ops.graph, 3)
    with pytest.raises(TypeError, match="expected a regular expression"):
        editor.filter_ops_from_regex(ops.graph, 3)
