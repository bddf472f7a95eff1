"""Operations that a block makes."""

import pytest

import cytape
from cytape.graph import editor


def test_the_operations_of_a_gradient_are_captured():
    graph = cytape.Graph()
    x = graph.placeholder("float64", ())
    y = x * x
    with graph.as_default(), editor.capture_ops() as ops:
        assert ops == []
        [dx] = cytape.gradients(y, x)
    assert dx.op in ops
    assert not {x.op, y.op} & set(ops)
    assert ops == graph.get_operations()[-len(ops):]


def test_a_block_without_operations(ops):
    with editor.capture_ops(ops.graph) as made:
        pass
    assert made == []


def test_operations_that_an_edit_in_the_block_moves(ops):
    with editor.capture_ops(ops.graph) as made:
        new = ops.graph.constant([5.0, 5.0], name="new")
        editor.reroute_ts(new, ops.a)
    assert made == [new.op]
    assert ops.graph.get_operations()[-1] == ops.h.op


def test_a_graph_is_needed():
    with pytest.raises(RuntimeError, match="no graph is being built"), editor.capture_ops():
        pass


def test_ops_made_before_an_error_are_captured(ops):
    with pytest.raises(ZeroDivisionError), editor.capture_ops(ops.graph) as made:
        y = abs(ops.a)
        raise ZeroDivisionError
    assert made == [y.op]
