"""Growth of the tape's arrays: nothing is lost on the way, and memory goes back in the end."""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cytape
from cytape.tensor.values.buffer import release_kept
from tests.resident import needs_rollup, resident_bytes
from tests.tables import table

MEGABYTE = 1 << 20


def chain(core, n_ops, n_inputs=1):
    """A tape with a chain of ops, of each of which the gradient is 1 (for the first input)."""
    tape = core.Tape()
    tape.watch(0)

    def backward(dy):
        return [dy] + [None] * (n_inputs - 1)

    dtypes, getter = ["float64"] * n_inputs, lambda: backward
    for i in range(n_ops):
        tape.record("Op", [i + 1], [i] * n_inputs, dtypes, getter)
    return tape


@pytest.mark.parametrize("n_inputs", [1, 5])
@pytest.mark.parametrize("n_ops", [63, 64, 65, 1000, 4097, 20_000, 150_000])
def test_every_entry_survives_the_growth_of_the_arrays(cython_core, n_ops, n_inputs):
    """Sizes on both sides of where arrays are copied, taken over from a dead tape, or mapped."""
    numbers = type("Ones", (cython_core.VSpace,), {
        "ones_like": lambda self, info: 1,
        "call_backward_function": lambda self, op_type, backward, unneeded, gradients:
            backward(*gradients),
        "aggregate_gradients": lambda self, gradients: sum(gradients),
        "num_elements": lambda self, gradient: 1,
    })()
    tape = chain(cython_core, n_ops, n_inputs)
    assert (tape.num_ops, tape.num_known) == (n_ops, n_ops + 1)
    assert tape.compute_gradient(numbers, [n_ops], [0]) == [1]
    assert tape.num_ops == 0


def test_many_large_tapes_at_once(cython_core):
    """More of them than there are places for large arrays."""
    tapes = [chain(cython_core, 20_000 + i) for i in range(20)]
    for i, tape in enumerate(tapes):
        assert tape.num_ops == 20_000 + i
        assert tape.is_known(20_000 + i) and not tape.is_known(20_001 + i)
    for tape in tapes[::2]:
        tape.delete_trace(10_000)
    del tapes[::2]
    assert [tape.num_ops for tape in tapes] == [20_001 + 2 * i for i in range(10)]


def test_a_tape_that_takes_over_memory_finds_nothing_of_the_old_one(cython_core):
    for n_ops in (5000, 5000, 3000, 9000):
        tape = chain(cython_core, n_ops)
        assert tape.num_ops == n_ops
        assert tape.usages() == {0: 1, **{i: 2 for i in range(1, n_ops)}, n_ops: 1}
        assert not tape.is_known(n_ops + 1)


# -- memory kept for later ------------------------------------------------------------------------

needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere tapes keep nothing")


@pytest.fixture
def nothing_kept():
    gc.collect()
    release_kept()
    yield
    release_kept()


@needs_linux
def test_memory_of_dead_tapes_and_arrays_is_released_in_one_call(cython_core, nothing_kept):
    tape = chain(cython_core, 10_000)
    release_kept()  # the smaller arrays that it has outgrown
    held = tape.nbytes
    del tape
    of_tape = release_kept()
    assert held / 2 < of_tape < 2 * held
    x, tape = cytape.constant(np.ones(100_000)) * 2.0, chain(cython_core, 10_000)
    release_kept()
    held = tape.nbytes
    del x, tape
    assert release_kept() > held / 2 + 800_000
    assert release_kept() == 0


@needs_linux
def test_a_tape_takes_what_the_last_one_left(cython_core, nothing_kept):
    chain(cython_core, 10_000)
    once = release_kept()
    for _ in range(8):
        chain(cython_core, 10_000)
    assert release_kept() <= 1.5 * once


@needs_linux
def test_arrays_and_tapes_take_memory_from_each_other(cython_core, nothing_kept):
    """There is one limit for both: the arrays that died last have driven out what a tape left."""
    chain(cython_core, 10_000)
    alive = [cytape.constant(np.ones(10_000)) * 2.0 for _ in range(64)]
    while alive:
        del alive[0]
    assert release_kept() == 64 * 80_000


def test_a_taken_block_is_large_enough_and_counts_no_more(nothing_kept):
    """A block of less or of much more is left alone."""
    small = cytape.constant(np.ones(30_000)) * 2.0
    large = cytape.constant(np.ones(40_000)) * 2.0
    del small, large
    taken = cytape.constant(np.ones(31_000)) * 2.0
    np.testing.assert_array_equal(taken.numpy(), np.full(31_000, 2.0))
    assert release_kept() == 8 * 70_000
    assert release_kept() == 0
    del taken
    assert release_kept() == 8 * 31_000


@needs_rollup
def test_memory_of_dead_tapes_goes_back(cython_core):
    def round():
        tapes = [chain(cython_core, n_ops) for n_ops in (150_000, 50_000, 10_000)]
        return sum(tape.nbytes for tape in tapes)

    assert round() > 15 * MEGABYTE
    before = resident_bytes()
    for _ in range(3):
        round()
    assert resident_bytes() - before < 12 * MEGABYTE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on memory")
@pytest.mark.parametrize("headroom", table([3, 40], [1, 10]))
def test_a_tape_that_finds_no_memory_stays_as_it_was(headroom):
    """Its ops have so many inputs that its arrays are the first to find none."""
    script = textwrap.dedent(f"""
        import resource
        from pathlib import Path
        from cytape.core import Tape, VSpace

        class Ones(VSpace):
            def ones_like(self, info): return 1
            def call_backward_function(self, op_type, backward, unneeded, gradients):
                return gradients + [None] * 2999

        tape = Tape()
        tape.watch(0)
        backward = object()
        ops = 0
        dtypes = ["float64"] * 3000
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + {headroom} * 2**20, resource.RLIM_INFINITY))
        try:
            while True:
                tape.record("Op", [ops + 1], [ops] * 3000, dtypes, lambda: backward)
                ops += 1
        except MemoryError as error:
            assert "for a tape" in str(error), error
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert tape.num_ops == ops, (tape.num_ops, ops)
        tape.record("Op", [ops + 1], [ops] * 3000, dtypes, lambda: backward)
        assert tape.compute_gradient(Ones(), [ops + 1], [0]) == [1]
        print("still a tape")
    """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "still a tape\n", run.stderr


def test_an_op_that_finds_no_memory_gives_up_nothing_twice():
    """Each Python allocation fails in turn, in a process that may crash."""
    pytest.importorskip("_testcapi")
    script = textwrap.dedent("""
        import sys
        import _testcapi
        from cytape.core import Tape

        released = []
        info, backward = 10**9, object()
        outputs, inputs, dtypes = [info], [0], ["float64"]
        getter, deleter = (lambda: backward), (lambda backward: released.append(None))

        def references():
            return [sys.getrefcount(x) for x in (info, backward, getter, deleter)]

        for failing in range(30):
            before = references()
            tape = Tape()
            tape.watch(0)
            recorded = False
            _testcapi.set_nomemory(failing, failing + 1)
            try:
                recorded = tape.record("Op", outputs, inputs, dtypes, getter, deleter)
            except MemoryError:
                pass
            finally:
                _testcapi.remove_mem_hooks()
            assert tape.num_ops == recorded
            released.clear()
            del tape
            assert len(released) == recorded, (failing, recorded, released)
            assert references() == before, (failing, before, references())
        assert recorded
        print("all the same")
    """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "all the same\n", run.stderr


def test_large_arrays_that_malloc_maps_are_taken_again():
    """A block that begins at a huge page holds up to one page more than requested."""
    program = textwrap.dedent("""
        import numpy as np
        import cytape
        from cytape.ops.declare import general
        from cytape.tensor.values.buffer import release_kept

        op = general(
            "ManyAlive", lambda x: [np.ones(x.size) for _ in range(16)][-1], vjp=lambda op, g: g)
        x = cytape.constant(np.ones(9 << 16))
        for n_calls in 1, 3:
            for _ in range(n_calls):
                op(x)
            print(release_kept())
    """)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"})  # glibc maps large blocks
    for kept in map(int, run.stdout.split()):  # however often it was called
        assert 16 * 4.5 * MEGABYTE <= kept <= 17 * (4.5 + 2) * MEGABYTE
