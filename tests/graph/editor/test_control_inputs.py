"""Control inputs, added and removed."""

import numpy as np
import pytest

import cytape
from cytape.graph import editor
from tests.cases import each


def test_d_5a_09_adding_and_removing(ops):
    editor.add_control_inputs(ops.g.op, [ops.b.op, ops.d.op])
    assert ops.g.op.control_inputs == (ops.b.op, ops.d.op)
    editor.remove_control_inputs(ops.g.op, ops.b.op)
    assert ops.g.op.control_inputs == (ops.d.op,)
    editor.remove_control_inputs(ops.h.op, [ops.c.op])  # of a block
    assert ops.h.op.control_inputs == ()


def test_d_5a_09_existing_and_missing_control_inputs(ops):
    with pytest.raises(ValueError, match="op 'foo/bar/h' waits for 'foo/c' already"):
        editor.add_control_inputs(ops.h.op, [ops.a.op, ops.c.op])
    with pytest.raises(ValueError, match="op 'foo/bar/h' does not wait for 'a'"):
        editor.remove_control_inputs(ops.h.op, [ops.c.op, ops.a.op])
    assert ops.h.op.control_inputs == (ops.c.op,)


def test_added_control_inputs_can_be_removed(ops):
    ops.graph.add_control_inputs(ops.h.op, ops.a)
    editor.remove_control_inputs(ops.h.op, [ops.a.op])
    assert ops.h.op.control_inputs == (ops.c.op,)


def test_an_operation_that_was_built_later_runs_earlier():
    graph = cytape.Graph()
    v = cytape.Variable(1.0)
    with graph.as_default():
        first = v.assign_add(1.0)
        y = graph.constant(5.0)
    with pytest.raises(ValueError, match="built after"):
        graph.add_control_inputs(first, y)
    editor.add_control_inputs(first.op, y.op)
    assert y.op.node < first.op.node
    assert cytape.Session(graph).run(first) == 2.0


def test_a_cycle_changes_nothing(ops):
    listing = str(ops.graph)
    with pytest.raises(ValueError, match="'foo/c' would have to run before itself: 'foo/c' needs "):
        editor.add_control_inputs(ops.c.op, ops.h.op)
    with pytest.raises(ValueError, match="'a' needs 'a'"):
        editor.add_control_inputs(ops.a.op, ops.a.op)
    assert str(ops.graph) == listing


def test_waiting_operations_and_their_control_inputs(ops):
    with pytest.raises(TypeError, match="op must be an operation"):
        editor.add_control_inputs(ops.a, ops.b.op)
    with pytest.raises(TypeError, match="expected Operation"):
        editor.add_control_inputs(ops.h.op, ops.b)
    with pytest.raises(ValueError, match="another graph"):
        editor.add_control_inputs(ops.h.op, cytape.Graph().no_op())


def test_a_session_waits_from_then_on():
    graph = cytape.Graph()
    v = cytape.Variable(1.0)
    with graph.as_default():
        update = v.assign_add(1.0)
        y = graph.constant(5.0)
        z = abs(y)
    session = cytape.Session(graph)
    for _ in range(3):
        session.run(z)
    assert v.numpy() == 1.0
    editor.add_control_inputs(z.op, update.op)
    for _ in range(3):
        assert session.run(z) == 5.0
    assert v.numpy() == 4.0
    editor.remove_control_inputs(z.op, update.op)
    session.run(z)
    assert v.numpy() == 4.0


CALLS = {
    "without a gradient": lambda f, x: cytape.numpy_function(f, x, specs=x.spec),
    "with one": lambda f, x: cytape.numpy_function(
        f, x, specs=x.spec, grad_func=lambda x, dy: dy),
    "of two results": lambda f, x: cytape.numpy_function(
        lambda x: (f(x), x), x, specs=(x.spec, x.spec))[0],
    "of an integer": lambda f, x: cytape.numpy_function(
        lambda x: f(x).astype(int), x, specs=cytape.Spec.of((), "int64")),
}


@each("call", CALLS.values(), ids=CALLS)
def test_a_call_of_python_waits_from_then_on(call):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        result = call(lambda x: x, x)
        later = np.sin(x)
    editor.add_control_inputs(result.op, later.op)
    trace = cytape.graph.RunTrace()
    cytape.Session(graph).run([result, later], {x: 1.0}, options=trace)
    run = [event.op_type for event in trace.events]
    assert run.index("Sin") < run.index("PythonValues")
    editor.remove_control_inputs(result.op, later.op)
    assert not any(map(graph.control_inputs_of, range(graph.n_nodes)))


def test_calls_of_python_keep_their_order():
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", ())
        first, second = (CALLS["with one"](lambda x: x, x) for _ in range(2))
    with pytest.raises(ValueError, match="run before itself"):
        editor.add_control_inputs(first.op, second.op)
    assert not first.op.control_inputs
    editor.add_control_inputs(second.op, first.op)
