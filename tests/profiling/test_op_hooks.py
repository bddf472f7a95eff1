"""Hooks around op calls."""

import threading

import numpy as np
import pytest

import cytape
from cytape.profiling import op_hooks

X = np.ones(3)


def names(log, kind="forward"):
    return [event.name for event in log.events if event.kind == kind]


@pytest.fixture
def log():
    log = op_hooks.begin()
    yield log
    op_hooks.end(log)


def test_all_ways_into_an_op_are_measured_once(log):
    x = cytape.constant(X)
    x + 1
    np.add(x, 1)
    cytape.numpy.add(x, x)
    x @ x
    np.matmul(x, x)
    x[0]
    x[[0, 1]]
    np.sum(x, axis=0)
    x.sum()
    np.where(x > 0, x, 0.0)
    np.clip(x, 0.0, 1.0)
    np.transpose(x)
    np.negative(-x)
    assert names(log) == (
        "Add Add Add MatMul MatMul GetItem GetItem Sum Sum Greater Where Clip Transpose "
        "Negative Negative").split()


def test_writes_are_measured(log):
    x = cytape.constant(X)
    x[0] = 2.0
    assert names(log) == ["SetItem"]
    assert x.numpy().tolist() == [2.0, 1.0, 1.0]


def test_arrays_and_errors_are_not_measured(log):
    cytape.numpy.sin(X)
    with pytest.raises(ValueError, match="broadcast"):
        cytape.constant(X) + np.ones(2)
    assert log.events == []


def test_results_are_the_same(log):
    x = cytape.constant(X)
    assert np.add(x, 1).numpy().tolist() == [2.0, 2.0, 2.0]
    assert np.divmod(x, 2)[0].numpy().tolist() == [0.0] * 3
    assert cytape.numpy.add(x, x, dtype="float32").dtype == np.float32
    assert np.add(x, x, out=None).shape == (3,)


def test_backward_calls_have_the_line_of_the_forward_call(log):
    x = cytape.constant(X)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = np.sin(x)
        z = (y * y).sum()
    tape.gradient(z, x)
    lines = {event.name: event.line for event in log.events if event.kind == "forward"}
    backward = [event for event in log.events if event.kind == "backward"]
    assert [event.name for event in backward] == ["Sum", "Multiply", "Sin"]
    assert all(event.line == lines[event.name] for event in backward)
    assert lines["Multiply"] == lines["Sin"] + 1
    assert backward[0].file == __file__


def test_other_threads_are_not_measured(log):
    thread = threading.Thread(target=lambda: cytape.constant(X) + 1)
    thread.start()
    thread.join()
    assert log.events == []


def test_hooks_are_removed():
    log = op_hooks.begin()
    op_hooks.end(log)
    x = cytape.constant(X)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.sin(x + x)[1:])
    tape.gradient(y, x)
    cytape.function(lambda x: x * 2)(x)
    assert log.events == []
    assert type(cytape.numpy.add).__flags__ & 1 << 11  # vectorcall


def test_memory_is_followed_until_it_is_freed(log):
    x = cytape.constant(np.ones(1000))
    y = np.sin(x)
    view = y[10:]
    z = y.reshape(10, 100)
    matrix = np.linalg.inv(np.eye(3) * cytape.constant(2.0))
    taken = [nbytes for _, nbytes in log.memory]
    assert taken.count(8000) == 1 and min(taken) >= -72
    del y, view
    assert -8000 not in [nbytes for _, nbytes in log.memory]
    del z
    assert log.memory[-1][1] == -8000
    del matrix
    assert sum(nbytes for _, nbytes in log.memory) == 0


def test_views_of_arguments_are_not_memory(log):
    x = cytape.constant(np.ones(1000))
    x[10:]
    x.reshape(10, 100)
    assert log.memory == []


def test_hooks_cost_nothing_afterwards():
    add = type(cytape.numpy.add)
    before = add.__flags__
    outer, inner = op_hooks.begin(), op_hooks.begin()
    op_hooks.end(outer)
    assert inner is outer and add.__flags__ != before
    op_hooks.end(inner)
    assert add.__flags__ == before
