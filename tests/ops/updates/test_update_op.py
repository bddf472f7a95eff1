"""Arrays that a program fills row by row, in time and memory in proportion to the rows."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.recording.state import Recorder
from cytape.tensor.tensor import live_tensors
from tests.cases import each
from tests.ways import watching

START = np.array([0.3, 0.5, -0.2])
N = 6


def step(x):
    return x + 0.1 * np.sin(x) * x


def filled(x, n=N, zeros=cnp.zeros):
    found = zeros((n, 3))
    for i in range(n):
        x = step(x)
        found[i] = x
    return found


def chained(x, n=N, zeros=cnp.zeros):
    found = zeros((n, 3))
    found[0] = x
    for i in range(1, n):
        found[i] = step(found[i - 1])
        found[i] += found[i - 1] * found[i]
    return found


def by_columns(x, n=N, zeros=cnp.zeros):
    found = zeros((3, n))
    for i in range(n):
        x = step(x)
        found[:, -1 - i] = x
        found[0, i] = found[1, i] * 2.0
    return found


def broadcast(x, n=N, zeros=cnp.zeros):
    found = zeros((n, 2, 3))
    for i in range(n):
        x = step(x)
        found[i] = x
        found[i, :, ::2] = x[1]
    return found


def overwritten(x, n=N, zeros=cnp.zeros):
    found = zeros((n, 3))
    found[...] = x
    for i in range(n):
        found[i] = found[i] * found[0]
        found[i, 0] = 1.0
        found[1:3] = found[2:4]
    return found


def large_rows(x, n=N, zeros=cnp.zeros):
    found = zeros((n, 3000))
    for i in range(n):
        found[i, ::2] = x[0]
        found[i, 1::2] = found[i - 1, ::2] * x[1]
    return found[:, :4]


PROGRAMS = [filled, chained, by_columns, broadcast, overwritten, large_rows]


def numerical(program, direction):
    def value(x):
        return program(x, zeros=np.zeros)

    return (value(START + 1e-6 * direction) - value(START - 1e-6 * direction)) / 2e-6


@each(traced=[False, True], program=PROGRAMS)
def test_values_and_derivatives(program, traced):
    f = cytape.function(program) if traced else program
    expected = program(START, zeros=np.zeros)
    np.testing.assert_allclose(np.asarray(f(cytape.constant(START))), expected, rtol=1e-14)
    columns = [numerical(program, direction) for direction in np.eye(3)]
    jacobian = np.stack(columns, -1)
    np.testing.assert_allclose(cytape.jacrev(f)(START), jacobian, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(cytape.jacfwd(f)(START), jacobian, rtol=1e-6, atol=1e-9)
    value, tangent = cytape.jvp(f, (START,), (np.eye(3)[1],))
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(tangent, columns[1], rtol=1e-6, atol=1e-9)


@each("program", PROGRAMS)
def test_second_order(program):
    def loss(x):
        return cnp.sum(program(x) ** 2)

    gradient = cytape.grad(loss)
    expected = np.stack([
        (gradient(START + 1e-6 * d) - gradient(START - 1e-6 * d)) / 2e-6 for d in np.eye(3)])
    for hessian in (cytape.hessian(loss), cytape.jacrev(gradient), cytape.jacfwd(gradient),
                    cytape.jacfwd(cytape.jacfwd(loss)), cytape.hessian(cytape.function(loss))):
        np.testing.assert_allclose(hessian(START), expected, rtol=1e-5, atol=1e-7)


def in_loop(x, n=N):
    def body(i, x, found):
        x = step(x)
        found[i] = x
        found[i, 1] += found[i - 1, 0] * x[2]
        return i + 1, x, found

    return cytape.while_loop(lambda i, *_: i < n, body, (0, x, cnp.zeros((n, 3))))[2]


def in_python(x, n=N):
    found = np.zeros((n, 3))
    for i in range(n):
        x = step(x)
        found[i] = x
        found[i, 1] += found[i - 1, 0] * x[2]
    return found


@each("traced", [False, True])
def test_in_loops_with_an_index_that_is_a_tensor(traced):
    f = cytape.function(in_loop) if traced else in_loop
    np.testing.assert_allclose(np.asarray(f(cytape.constant(START))), in_python(START), rtol=1e-14)
    jacobian = np.stack([
        (in_python(START + 1e-6 * d) - in_python(START - 1e-6 * d)) / 2e-6 for d in np.eye(3)], -1)
    np.testing.assert_allclose(cytape.jacrev(f)(START), jacobian, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(cytape.jacfwd(f)(START), jacobian, rtol=1e-6, atol=1e-9)

    def loss(x):
        return cnp.sum(f(x) ** 2)

    gradient = cytape.grad(loss)
    expected = np.stack([
        (gradient(START + 1e-6 * d) - gradient(START - 1e-6 * d)) / 2e-6 for d in np.eye(3)])
    np.testing.assert_allclose(cytape.hessian(loss)(START), expected, rtol=1e-5, atol=1e-7)


def test_an_index_out_of_range_is_an_error_when_a_graph_runs():
    f = cytape.function(lambda x, i: x.at[i].set(1.0))
    with pytest.raises(IndexError, match="out of (bounds|range)"):
        f(cytape.constant(START), cytape.constant(3))


# -- entries of a tape -----------------------------------------------------------------------------


def test_each_value_has_an_id_and_what_was_recorded_of_it_before_goes_by_the_old_one():
    x = cytape.constant(2.0)
    with watching(x, persistent=True) as tape:
        found = cnp.zeros(3)
        found[0] = x
        first, before = found.id, cnp.sum(found * found)
        found[0] = x * x
        found[1] = x
        assert found.id > first
        after = cnp.sum(found * found)
    assert float(tape.gradient(before, x)) == 4.0
    assert tape.gradient(after, found).numpy().tolist() == [8.0, 4.0, 0.0]
    assert float(tape.gradient(after, x)) == 36.0


def test_a_value_with_other_owners_is_not_changed():
    x = cytape.constant(np.ones(3))
    with watching(x) as tape:
        found = cnp.zeros((50, 3))
        found[0] = x
        squares = found * found  # which the tape keeps
        seen = found.numpy()
        found[0] = 5.0
        found[1] = x
        loss = np.sum(squares) + np.sum(found)
    assert seen[0].tolist() == [1.0] * 3
    assert tape.gradient(loss, x).numpy().tolist() == [3.0] * 3


def test_a_tape_keeps_neither_arrays_nor_tensors_per_row():
    x = cytape.constant(START)
    recorder = Recorder()
    recorder.watch(x.id)
    gc.collect()
    with recorder:
        found, before = cnp.zeros((1000, 3)), live_tensors()
        for i in range(1000):
            found[i] = x
    assert live_tensors() == before
    assert recorder.num_ops == 1000
    del found
    assert recorder.num_ops == 0


@each("differentiate", [
    cytape.grad, lambda f: lambda x: cytape.jvp(f, (x,), (x,)), cytape.jacfwd],
    ids=["reverse", "forward", "in batches"])
def test_the_time_is_in_proportion_to_the_rows(differentiate):
    def seconds(n):
        f, times = differentiate(lambda x: cnp.sum(filled(x, n))), []
        for _ in range(4):
            start = time.process_time()  # whatever else the machine does
            f(START)
            times.append(time.process_time() - start)
        return min(times)

    # 50 times, if each row copied the array.
    assert seconds(16_000) < 24 * seconds(2000)


def test_integer_updates_are_not_recorded():
    recorder = Recorder()
    with recorder:
        found = cnp.zeros(3)
        found[0] = cytape.constant(1.0)
    assert recorder.num_ops == 0


def test_threads_may_fill_one_array_each():
    gradient = cytape.grad(lambda x: cnp.sum(filled(x, 50) ** 2))
    expected = gradient(START)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: gradient(START), range(8)):
            np.testing.assert_array_equal(found, expected)


@each("dtype", ["float32", "float16", "complex128", "complex64"])
def test_dtypes(dtype):
    def f(x):
        found = cnp.zeros((4, 3), dtype)
        for i in range(4):
            x = x * x
            found[i, ::-1] = x
        return found

    x = START.astype(dtype) + (0.1j if dtype.startswith("c") else 0)
    weights = np.arange(12.0).reshape(4, 3).astype(dtype)
    gradient = cytape.grad(lambda x: cnp.sum(cnp.real(f(x) * weights)))(x)
    expected = cytape.grad(lambda x: cnp.sum(cnp.real(
        cnp.stack([x ** 2 ** (i + 1) for i in range(4)])[:, ::-1] * weights)))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected, rtol=2e-2 if dtype == "float16" else 1e-5)
