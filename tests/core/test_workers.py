"""Backward passes on several threads: the same results, and nothing lost when one of them fails."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import live_tensors

N = 320  # so that a matrix is worth a thread


@pytest.fixture
def many_threads():
    cytape.set_num_threads(3)
    yield
    cytape.set_num_threads(1)


@pytest.mark.parametrize("bad, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_a_number_of_threads_is_a_positive_integer(bad, error):
    with pytest.raises(error):
        cytape.set_num_threads(bad)
    assert cytape.get_num_threads() == 1


def test_it_can_be_asked(many_threads):
    assert cytape.get_num_threads() == 3


def wide(x, weights):
    """Branches of one input, of different lengths, which meet in three places."""
    total = 0.0
    middle = cnp.sin(x)
    for k, w in enumerate(weights):
        y = x @ w
        for _ in range(k):
            y = cnp.tanh(y) * middle + x
        total = total + cnp.sum(y * y) + cnp.sum(y[: N // 2] * cnp.exp(-middle)[N // 2 :])
    return total


def gradients(persistent=False):
    rng = np.random.default_rng(0)
    x = cytape.constant(rng.normal(size=(N, N)))
    weights = [cytape.constant(rng.normal(size=(N, N)) / N) for _ in range(5)]
    with cytape.GradientTape(persistent=persistent) as tape:
        tape.watch([x, *weights])
        y = wide(x, weights)
    return [g.numpy() for g in tape.gradient(y, [x, *weights])]


@pytest.mark.threads
@pytest.mark.parametrize("persistent", [False, True])
def test_results_are_those_of_one_thread(persistent, many_threads):
    found = [gradients(persistent) for _ in range(5)]
    cytape.set_num_threads(1)
    expected = gradients(persistent)
    for gradient in found:
        for a, b in zip(gradient, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.threads
def test_independent_large_ops_run_on_workers(many_threads):
    gradients()
    names = {thread.name for thread in threading.enumerate()}
    assert any(name.startswith("cytape") for name in names)


@pytest.mark.threads
def test_small_work_stays_on_one_thread():
    script = textwrap.dedent("""
        import threading, numpy as np, cytape
        cytape.set_num_threads(4)
        x = cytape.constant(np.ones((30, 30)))
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = sum((np.sin(x * k) for k in range(10)), cytape.constant(0.0))
        tape.gradient(y, x)
        print(threading.active_count())
    """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "1\n", run.stderr


@pytest.mark.threads
def test_an_error_leaves_nothing_behind(many_threads):
    x = cytape.constant(np.ones((N, N)))

    @cytape.custom_gradient
    def refuse(x):
        def backward(upstream):
            raise ZeroDivisionError("no")
        return x * 1.0, backward

    before = live_tensors()
    for _ in range(5):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            branches = [cnp.sum(cnp.sin(cnp.cos(x * float(k)))) for k in range(4)]
            y = sum(branches[1:], branches[0]) + cnp.sum(refuse(cnp.exp(x)))
        with pytest.raises(ZeroDivisionError):
            tape.gradient(y, x)
        del tape, branches, y
    assert live_tensors() == before


@pytest.mark.threads
def test_what_is_recorded_stays_on_its_thread(many_threads):
    """An outer tape follows this thread only, so nothing may be computed on another."""
    x = cytape.constant(np.full((N, N), 0.5))
    with cytape.GradientTape() as outer:
        outer.watch(x)
        with cytape.GradientTape() as inner:
            inner.watch(x)
            y = cnp.sum(cnp.sin(x) + cnp.exp(x) + x * x * x)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    np.testing.assert_allclose(second.numpy(), -np.sin(0.5) + np.exp(0.5) + 3.0, rtol=1e-14)


@pytest.mark.threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_has_workers_of_its_own():
    script = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import cytape, test_workers
        cytape.set_num_threads(2)
        test_workers.gradients()
        child = os.fork()
        if child == 0:
            test_workers.gradients()
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True,
                         text=True, timeout=60)
    assert run.stdout == "7\n", run.stderr


@pytest.mark.threads
def test_rules_in_python_stay_on_the_calling_thread():
    """They may ask for what belongs to it, such as NumPy's error state."""
    cytape.set_num_threads(2)  # workers that are yet to start
    x = cytape.constant(np.ones((4, N, N)))
    order = np.arange(4)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = sum((cnp.sum((x * k)[order] @ cnp.sin(x * k)) for k in (1.0, 2.0)), cnp.sum(x * x))
    called = set()
    threading.setprofile(lambda frame, *_: called.add(Path(frame.f_code.co_filename).name))
    try:
        tape.gradient(y, x)
    finally:
        threading.setprofile(None)
        cytape.set_num_threads(1)
    assert "thread.py" in called  # of concurrent.futures: there were workers
    assert not called & {"linalg.py", "indexing.py", "einsum.py"}


@pytest.mark.threads
def test_without_threads_to_be_had_the_work_is_done_all_the_same(monkeypatch):
    """`submit` puts the work in the queue first: it must not be done twice."""
    expected = gradients()
    start, started = threading.Thread.start, []

    def refuse_the_second(thread):
        started.append(thread)
        if len(started) > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_second)
    cytape.set_num_threads(4)
    try:
        found = gradients()
    finally:
        cytape.set_num_threads(1)
    assert len(started) > 1
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
