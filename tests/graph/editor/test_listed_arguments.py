"""Arguments of functions of the editor."""

import pytest

import cytape
from cytape.graph import editor
from cytape.graph.editor.listed_arguments import graph_of, replacements, symbols_of_graph
from tests.cases import each


def test_operations_as_a_list(ops):
    assert editor.make_list_of_op(ops.graph) == ops.graph.get_operations()
    assert editor.make_list_of_op(ops.a.op) == [ops.a.op]
    assert editor.make_list_of_op(iter([ops.a.op, ops.b.op])) == [ops.a.op, ops.b.op]
    assert editor.make_list_of_op([ops.a.op, ops.b], ignore_ts=True) == [ops.a.op]
    assert editor.make_list_of_op([]) == []


def test_tensors_as_a_list(ops):
    assert len(editor.make_list_of_t(ops.graph)) == 8
    assert editor.make_list_of_t(ops.a)[0] is ops.a
    assert editor.make_list_of_t(ops.a.ref())[0] is ops.a
    assert editor.make_list_of_t([ops.a.ref(), ops.b])[1] is ops.b
    assert editor.make_list_of_t([ops.a.op], ignore_ops=True) == []


@each("wrong", [3, "a", [3], None])
def test_an_argument_of_another_type_is_an_error(wrong):
    with pytest.raises(TypeError, match="expected Operation objects, got"):
        editor.make_list_of_op(wrong)
    with pytest.raises(TypeError, match="expected Tensor objects, got"):
        editor.make_list_of_t(wrong)


def test_tensors_are_no_operations_nor_the_other_way_round(ops):
    with pytest.raises(TypeError, match="expected Operation objects"):
        editor.make_list_of_op([ops.a])
    with pytest.raises(TypeError, match="expected Tensor objects"):
        editor.make_list_of_t([ops.a.op])


def test_a_graph_where_none_may_be(ops):
    with pytest.raises(TypeError, match="got a graph"):
        editor.make_list_of_op(ops.graph, allow_graph=False)
    with pytest.raises(TypeError, match="got a graph"):
        editor.make_list_of_t(ops.graph, allow_graph=False)


def test_a_tensor_with_a_value_is_an_error():
    with pytest.raises(TypeError, match="which has a value"):
        editor.make_list_of_t(cytape.constant(1.0))


def test_things_of_two_graphs(ops):
    other = cytape.Graph().placeholder("float64", name="x")
    with pytest.raises(ValueError, match="belongs to another graph"):
        editor.make_list_of_op([ops.a.op, other.op])
    with pytest.raises(ValueError, match="belongs to another graph"):
        editor.make_list_of_t([ops.a, other])
    assert len(editor.make_list_of_t([ops.a, other], check_graph=False)) == 2
    assert graph_of([]) is None
    assert graph_of([ops.a.op, ops.b]) is ops.graph


def test_symbols_in_the_order_of_the_nodes(ops):
    assert symbols_of_graph(ops.graph) == list(range(8))
    editor.reroute_ts(ops.d, ops.a)  # which moves d
    assert sorted(symbols_of_graph(ops.graph)) == list(range(8))
    assert symbols_of_graph(ops.graph) != list(range(8))


def test_replacements(ops):
    new = ops.graph.constant([0.0, 0.0])
    assert replacements(ops.graph, {ops.a.ref(): new, ops.b: new}) == {0: new, 1: new}
    with pytest.raises(TypeError, match="must be a mapping"):
        replacements(ops.graph, [ops.a])
    with pytest.raises(TypeError, match="the replacement of 'a:0' must be a tensor, got 3"):
        replacements(ops.graph, {ops.a: 3})
    with pytest.raises(TypeError, match="cannot be replaced by a tensor of dtype int64"):
        replacements(ops.graph, {ops.a: ops.graph.constant([1, 2])})
    with pytest.raises(ValueError, match="does not belong to this graph"):
        replacements(ops.graph, {cytape.Graph().constant(1.0): new})
