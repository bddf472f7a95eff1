"""Attacks on a tape's memory: programs that loop on one tape, and leave holes in its arrays.

What a gradient goes through beyond the ops that it needs is what stands in the arrays, so their
size bounds its work, too: nothing here is timed.
"""

import random

import pytest

import cytape
from cytape.core import Tape, reference
from cytape.tensor.recording.state import Recorder
from tests.cases import each
from tests.outside import compiled
from tests.tables import table

from .conftest import Numbers

ROUNDS = 2000


def same(dy):
    return [dy]


def fan(n):
    """The getter of a backward function that hands its gradient to n inputs."""
    return lambda: lambda dy: [dy] * n


def forward(tape, first, length, start=0):
    """Record a chain on tensor `start`; its outputs have the ids from `first` on."""
    for i in range(length):
        tape.record("Same", [first + i], [first + i - 1 if i else start], ["float64"], lambda: same)
    return first + length - 1


class LoopingHost:
    """Gradients are ids; a backward pass records what it does, and hands all of it back."""

    def __init__(self, core, tape):
        self.tape = tape
        self.last = 0
        host = self

        class Space(core.VSpace):
            def num_elements(self, gradient):
                return 1

            def ones_like(self, info):
                host.last += 1
                return host.last

            def aggregate_gradients(self, gradients):
                raise AssertionError("chains need no sums")

            def call_backward_function(self, op_type, backward, unneeded, gradients):
                host.last += 1
                tape.record("Backward", [host.last], [gradients[0], 0], ["float64"] * 2,
                            lambda: same)
                made.append(gradients[0])
                return [host.last]

        self.space = Space()
        made = self.made = []

    def step(self, length):
        """One forward pass, its gradient inside the block, and the end of all handles."""
        first = self.last + 1
        self.last = forward(self.tape, first, length)
        target = self.last
        gradient, = self.tape.compute_gradient(self.space, [target], [0])
        for id in [*range(first, target + 1), *self.made, gradient]:
            self.tape.delete_trace(id)
        self.made.clear()


def test_a_loop_with_gradients_inside_the_block_does_not_grow(core):
    tape = core.Tape(persistent=True)
    tape.watch(0)
    host = LoopingHost(core, tape)
    sizes = []
    for _ in range(ROUNDS):
        host.step(10)
        sizes.append(tape.nbytes)
        assert tape.num_ops == 0
    assert tape.num_known == 1
    assert max(sizes) < 40_000


def test_a_loop_of_tensors_does_not_grow():
    x = cytape.constant([1.0, 2.0, 3.0])
    sizes = set()
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        for i in range(ROUNDS):
            y = (x * x * x).sum()
            gradient = tape.gradient(y, x)
            del y, gradient
            if i >= 200:
                sizes.add(tape._recorder.nbytes)
            assert (tape._recorder.num_ops, tape._recorder.num_known) == (0, 1)
    assert max(sizes) < 40_000


@each("kept", [1, 5])
def test_holes_before_what_is_alive_are_closed(kept):
    """The latest results are held until the next ones are there: holes are never at the end."""
    x = cytape.constant(3.0)
    held = []
    sizes = set()
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        for i in range(ROUNDS):
            y = x * x * x
            held.append((y, tape.gradient(y, x)))
            del held[:-kept]
            del y
            if i >= 200:
                sizes.add(tape._recorder.nbytes)
            assert tape._recorder.num_ops < 20 * (kept + 1)
        assert [tape.gradient(y, x).item() for y, _ in held] == [27.0] * kept
        assert [tape.gradient(dy, x).item() for _, dy in held] == [18.0] * kept
    assert max(sizes) < 60_000


def test_one_huge_step_does_not_stay(cython_core):
    numbers = type("Numbers", (Numbers, cython_core.VSpace), {})()
    tape = cython_core.Tape(persistent=True)
    tape.watch(0)
    last = forward(tape, 1, 200_000)
    assert tape.compute_gradient(numbers, [last], [0]) == [1]
    for id in range(1, last + 1):
        tape.delete_trace(id)
    numbers.calls.clear()
    for _ in range(3):
        last = forward(tape, last + 1, 10)
        assert tape.compute_gradient(numbers, [last], [0]) == [1]
        for id in range(last - 9, last + 1):
            tape.delete_trace(id)
    assert numbers.calls == 30 * ["Same"]
    assert tape.nbytes < 100_000
    assert (tape.num_ops, tape.num_known) == (0, 1)


def test_living_ids_are_found_after_a_huge_step(core, numbers):
    """Ids and positions move; every op still finds its inputs."""
    tape = core.Tape(persistent=True)
    tape.watch(0)
    survivors = []
    last = 0
    for _ in range(50):
        survivors.append(forward(tape, last + 1, 3))
        last = forward(tape, last + 4, 2000)
        for id in range(last - 1999, last + 1):
            tape.delete_trace(id)
        assert tape.compute_gradient(numbers, survivors, [0]) == [len(survivors)]
    assert tape.num_ops == 150
    assert tape.nbytes < 400_000


@pytest.mark.parametrize("step", [1, 10 ** 6])
def test_few_wide_ops_leave_holes_too(cython_core, step):
    """There are fewer ops than holes: what counts is the room that they take."""
    tape = cython_core.Tape()
    for id in range(100):
        tape.watch(id)
    forward(tape, 100, 300)
    last = 400
    for _ in range(300):
        last += step
        tape.record("Wide", [last], list(range(100)) * 10, ["float64"] * 1000, lambda: None)
        tape.record("Narrow", [last + 1], [0], ["float64"], lambda: None)
        tape.delete_trace(last)
        last += 1
    assert tape.num_ops == 600
    assert tape.nbytes < 300_000


@each("seed", range(20))
def test_random_loops_on_a_tape_follow_the_plain_python_one(seed):
    rng = random.Random(seed)
    tapes = Tape(persistent=True), reference.Tape(persistent=True)
    spaces = [type("Numbers", (Numbers, core.VSpace), {})() for core in (cytape.core, reference)]
    for tape in tapes:
        tape.watch(0)
    alive, last = [0], 0
    for _ in range(rng.choice([300, 3000])):
        choice = rng.random()
        if choice < 0.55:
            last += rng.choice([1, 1, 1, 50, 10 ** 6])
            n = rng.choice([1, 2, 2, 7])
            inputs = rng.choices(alive[-20:], k=n)
            for tape in tapes:
                tape.record("Sum", [last], inputs, ["float64"] * n, fan(n))
            alive.append(last)
        elif choice < 0.95:
            for _ in range(rng.choice([1, 1, 2, 30])):
                if len(alive) > 1:
                    id = alive.pop(rng.randrange(1, len(alive)))
                    for tape in tapes:
                        tape.delete_trace(id)
        else:
            target = rng.choice(alive)
            results = [tape.compute_gradient(space, [target], [0, alive[-1]])
                       for tape, space in zip(tapes, spaces, strict=True)]
            assert results[0] == results[1]
        assert tapes[0].num_ops == tapes[1].num_ops
    assert tapes[0].usages() == tapes[1].usages()
    assert tapes[0].num_known == tapes[1].num_known


def test_ids_far_apart_do_not_pay_for_a_crowd_that_is_gone():
    """A window over a million ids is not gone through for each id that comes later."""
    tape = Tape()
    tape.watch(0)
    for id in range(1, 200_000):
        tape.record("Op", [id], [0], ["float64"], object)
    for id in range(1, 200_000):
        tape.delete_trace(id)
    for step in range(1, 20_000):
        tape.watch(10 ** 9 * step)
    assert tape.num_known == 20_000
    assert all(tape.is_known(10 ** 9 * step) for step in range(1, 20_000))
    ids = tape.nbytes
    tape.compute_gradient(cytape.core.VSpace(), [1], [])
    assert tape.nbytes <= ids


def test_releasing_on_one_tape_may_record_on_another_that_waits():
    """Handles die on both; while the first releases, the other's arrays are not to move."""
    x = cytape.constant(2.0)
    first, second = Recorder(), Recorder()
    for recorder in (first, second):
        recorder.watch(x.id)
        recorder.push()
    made = []

    class Busy:
        def __del__(self):
            for _ in range(500):
                made.append(x * x)

    @cytape.custom_gradient
    def f(x):
        busy = Busy()
        return x * 3.0, lambda dy: (dy * 3.0, busy)[0]

    keep = [x * x for _ in range(3)]
    for _ in range(20):
        doomed = [x * x for _ in range(300)]
        y = f(x)
        for _ in range(299):
            y = y * 1.5
        del doomed, y
    for recorder in (first, second):
        recorder.pop()
    assert len(made) >= 20 * 500
    assert first.num_ops == second.num_ops
    made.clear()
    assert (first.num_ops, second.num_ops) == (3, 3)
    del keep
    assert (first.num_ops, second.num_ops) == (0, 0)


# ---- the blocks that arrays lie in

BLOCKS = """
from cytape.core.memory cimport release, resize

cdef class Block:
    cdef unsigned char* data
    cdef readonly size_t size

    def __dealloc__(self):
        release(self.data)

    def resize(self, size_t size):
        cdef size_t i, both = min(size, self.size)
        for i in range(self.size):
            self.data[i] = <unsigned char>(i * 31 + (i >> 12))
        resize(<void**>&self.data, size, 1)
        self.size = size
        for i in range(both):
            if self.data[i] != <unsigned char>(i * 31 + (i >> 12)):
                return False
        return True
"""


@pytest.fixture(scope="module")
def block_type(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "blocks.pyx").write_text(BLOCKS)
    return compiled(folder, "blocks").Block


@pytest.mark.parametrize("sizes", [
    (3 << 20, 1 << 20), (3 << 20, 100), (3 << 20, 1), (5 << 20, 3 << 20, 1 << 16, 3 << 20),
    (1 << 16, 100, 1 << 16), (2 << 20, (2 << 20) - 1, 2 << 20)])
def test_blocks_shrink_and_grow_wherever_they_lie(block_type, sizes):
    block = block_type()
    assert all(block.resize(size) for size in sizes)


@pytest.mark.parametrize("seed", table([0], range(1, 5)))
def test_more_blocks_than_there_are_places_for_shrink_and_grow(block_type, seed):
    rng = random.Random(seed)
    blocks = [block_type() for _ in range(60)]
    sizes = [1, 1000, 1 << 15, 1 << 17, (1 << 21) - 1, 1 << 21, (1 << 21) + 1, 5 << 19]
    for block in blocks:
        assert block.resize(5 << 19)
    for _ in range(100):
        assert rng.choice(blocks).resize(rng.choice(sizes))
