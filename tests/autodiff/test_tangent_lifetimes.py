"""Lifetime of tangents: no accumulator keeps tangents of released values."""

import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

import cytape
from cytape.tensor.recording.state import is_recorded
from tests import ways
from tests.autodiff.test_forward_nesting import collected_live_tensors
from tests.tables import table


def test_a_tangent_dies_with_its_primal():
    x = cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        y = np.sin(x)
        tangent = weakref.ref(accumulator.jvp(y).numpy().base)
        assert tangent() is not None
        z = y * y
        del y
        assert tangent() is None
        assert accumulator.jvp(z) is not None


def test_a_tangent_of_what_a_tape_saved_lives_as_long_as_that():
    x = cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        with ways.watching(x) as tape:
            y = np.exp(x)
            tangent = weakref.ref(accumulator.jvp(y).numpy().base)
            z = y * y
            del y
        assert tangent() is not None
        tape.gradient(z, x)
        assert tangent() is None


def test_the_tangent_of_a_variable_goes_with_it():
    v, x = cytape.Variable(np.ones(3)), cytape.constant(np.ones(3))
    accumulator = cytape.ForwardAccumulator([v, x], [np.ones(3), np.ones(3)])
    tangent = weakref.ref(accumulator.jvp(v).numpy().base)
    with accumulator:
        y = v * x
    assert tangent() is not None
    del v
    assert tangent() is None
    assert accumulator.jvp(y).numpy().tolist() == [2.0, 2.0, 2.0]


def test_no_tangent_outlives_its_accumulator():
    x = cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        y = np.sin(x)
        z = y * y
        tangents = [weakref.ref(t.numpy().base) for t in accumulator.jvp([x, y, z])]
    kept = accumulator.jvp(z)
    del accumulator
    assert [tangent() is None for tangent in tangents] == [True, True, False]
    del kept
    assert tangents[2]() is None


def test_a_tape_inside_does_not_keep_tangents_alive():
    x = cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        with ways.watching(x, persistent=True) as tape:
            y = x * 2.0
            tangent = weakref.ref(accumulator.jvp(y).numpy().base)
            z = y * 5.0  # saves no operand that has a tangent
            del y
            assert tangent() is None
    assert tape.gradient(z, x).numpy().tolist() == [10.0, 10.0, 10.0]


def test_a_long_program_keeps_two_layers():
    x = cytape.constant(np.ones(3))
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        y, tangents = x, []
        for _ in range(1000):
            y = np.tanh(y) * 1.5
            tangents.append(weakref.ref(accumulator.jvp(y).numpy().base))
        assert [tangent() is None for tangent in tangents] == 999 * [True] + [False]
    assert accumulator.jvp(y) is not None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("use_batch", table([True], [False]))
def test_the_memory_of_a_deep_network_is_flat(use_batch):
    """Of 1000 layers of 100 000 numbers (800 MB) a handful are there at any time."""
    script = textwrap.dedent(f"""
        import numpy as np, cytape, cytape.numpy as cnp

        def status(key):
            with open("/proc/self/status") as lines:
                return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

        def layers(x, n):
            for _ in range(n):
                x = cnp.tanh(x * k + 0.5) * cnp.exp(-x)
            return x

        n = 100_000
        x, k = cytape.constant(np.full(n, 0.5)), cytape.constant(np.full(n, 0.25))
        tangent = np.ones((2, n) if {use_batch} else n)
        with cytape.ForwardAccumulator(x, tangent, use_batch={use_batch}) as accumulator:
            layers(x, 3)
            before = status("VmRSS")
            y = layers(x, 250)
        assert accumulator.jvp(y) is not None
        print((status("VmHWM") - before) / (8 * n))
    """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert float(run.stdout) <= 40, run.stderr  # in layers


def test_a_million_links_of_tangents_end_without_recursion():
    x = cytape.constant(1.0)
    with cytape.GradientTape() as tape:  # it keeps the program that computes the tangents
        tape.watch(x)
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            y = x
            for _ in range(50_000):
                y = y * 1.0
        jvp = accumulator.jvp(y)
    assert float(jvp) == 1.0
    del y, jvp, accumulator, tape


def test_a_block_that_ends_with_an_error_keeps_nothing():
    x = cytape.constant(np.ones(3))
    alive = collected_live_tensors()
    for _ in range(3):
        with pytest.raises(ArithmeticError):
            with cytape.GradientTape() as outer, cytape.ForwardAccumulator(x, np.ones(3)):
                with cytape.GradientTape() as inner:
                    outer.watch(x)
                    inner.watch(x)
                    y = np.tanh(x) * x
                    inner.gradient(y, x)
                    raise ArithmeticError
        del y, outer, inner
    assert collected_live_tensors() == alive


def test_an_abandoned_accumulator_is_left_with_its_generator():
    x = cytape.constant(np.ones(3))
    alive = collected_live_tensors()

    def generator():
        with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
            y = x * x
            yield accumulator, y

    suspended = generator()
    next(suspended)
    assert is_recorded(x.id)
    suspended.close()
    del suspended
    assert not is_recorded(x.id)
    assert collected_live_tensors() == alive


def test_a_cycle_through_a_tape_that_holds_an_accumulator_is_collected():
    """A backward function may hold what records it."""
    x = cytape.constant(np.ones(3))
    alive = collected_live_tensors()

    def work():
        accumulator = cytape.ForwardAccumulator(x, np.ones(3))
        tape = cytape.GradientTape(persistent=True)

        @cytape.custom_gradient
        def holding(x):
            return x * 1.0, lambda dy: dy if tape and accumulator else None

        with accumulator, tape:
            tape.watch(x)
            y = holding(x)
        tape.kept = accumulator.kept = y, tape, accumulator

    for _ in range(3):
        work()
    assert collected_live_tensors() == alive
