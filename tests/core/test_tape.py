"""A tape's whole life: using it while it computes, memory, very long programs."""

import gc
import resource
import sys
import weakref

import pytest

from cytape.errors import TapeStateError
from tests.tables import table

# ---- using a tape while it computes


class Number:
    """A float on the active tape; enough of a tensor for higher derivatives."""

    tape = None
    count = 0

    def __init__(self, value):
        self.value = value
        Number.count += 1
        self.id = Number.count

    def __mul__(self, other):
        product = Number(self.value * other.value)
        Number.tape.record("Multiply", [product], [self.id, other.id], ["float64"] * 2,
                           lambda: lambda dy: [dy * other, dy * self])
        return product

    def __add__(self, other):
        total = Number(self.value + other.value)
        Number.tape.record("Add", [total], [self.id, other.id], ["float64"] * 2,
                           lambda: lambda dy: [dy, dy])
        return total


@pytest.fixture
def number_space(core, numbers_type):
    class NumberSpace(numbers_type):
        def aggregate_gradients(self, gradients):
            total = gradients[0]
            for gradient in gradients[1:]:
                total = total + gradient
            return total

        def ones_like(self, info):
            return Number(1.0)

    yield NumberSpace()
    Number.tape = None


def test_recorded_ops_are_listed_in_order(tape, number_space):
    assert tape.recorded_ops() == []
    tape.watch(0)
    for name, outputs, inputs in (("A", [1, 2], [0, 0]), ("B", [3], [2, 0]), ("C", [4], [0])):
        assert tape.record(name, outputs, inputs, ["float64"] * len(inputs), lambda: lambda *dy: dy)
    assert tape.recorded_ops() == [("A", [0, 0], [1, 2]), ("B", [2, 0], [3]), ("C", [0], [4])]
    tape.delete_trace(4)
    tape.delete_trace(1)
    tape.delete_trace(2)  # B uses it
    assert tape.recorded_ops() == [("A", [0, 0], [1, 2]), ("B", [2, 0], [3])]
    tape.delete_trace(3)
    assert tape.recorded_ops() == []


def test_a_persistent_tape_records_its_own_gradients(core, number_space):
    tape = Number.tape = core.Tape(persistent=True)
    x = Number(3.0)
    tape.watch(x.id)
    y = x * x * x * x
    values = []
    while y is not None:
        values.append(y.value)
        y, = tape.compute_gradient(number_space, [y.id], [x.id])
    assert values == [81, 108, 108, 72, 24]


def test_nested_tapes_differentiate_each_other(core, number_space):
    outer, inner = core.Tape(), core.Tape()

    class Both:
        def record(self, *arguments):
            outer.record(*arguments)
            inner.record(*arguments)

    Number.tape = Both()
    x = Number(3.0)
    outer.watch(x.id)
    inner.watch(x.id)
    y = x * x * x
    dy, = inner.compute_gradient(number_space, [y.id], [x.id])
    d2y, = outer.compute_gradient(number_space, [dy.id], [x.id])
    assert (dy.value, d2y.value) == (27, 18)


def test_a_backward_function_may_differentiate_the_same_persistent_tape(core, numbers, record):
    tape = core.Tape(persistent=True)
    tape.watch(0)
    record(tape, "Triple", [0], [1], lambda dy: [3 * dy])

    def backward(dy):
        inner, = tape.compute_gradient(numbers, [1], [0])
        record(tape, f"Late {tape.num_ops}", [0], [100 + tape.num_ops], lambda dy: [dy])
        return [inner * dy]

    record(tape, "Op", [1], [2], backward)
    record(tape, "Op", [2], [3], backward)
    assert tape.compute_gradient(numbers, [3], [0]) == [27]
    assert numbers.calls == ["Op", "Triple", "Op", "Triple", "Triple"]
    assert tape.num_ops == 5


def test_a_tape_that_is_being_consumed_cannot_be_differentiated(tape, numbers, record, chain):
    chain(tape, 3)
    errors = []

    def backward(dy):
        for target in (3, 4):
            with pytest.raises(TapeStateError) as caught:
                tape.compute_gradient(numbers, [target], [0])
            errors.append(caught.type)
        return [dy]

    record(tape, "Op", [3], [4], backward)
    assert tape.compute_gradient(numbers, [4], [0]) == [8]
    assert errors == [TapeStateError] * 2
    assert record.counts == {"op0": 1, "op1": 1, "op2": 1, "Op": 1}


def test_ops_recorded_while_a_tape_is_consumed_stay(tape, numbers, record):
    tape.watch(0)

    def backward(dy):
        for i in range(100, 2000):
            record(tape, f"late{i}", [i - 1 if i > 100 else 0], [i], lambda dy: [2 * dy])
        assert tape.compute_gradient(numbers, [103], [0]) == [16]
        record(tape, "later", [0], [99], lambda dy: [5 * dy])
        return [3 * dy]

    record(tape, "Below", [0], [1], lambda dy: [7 * dy])
    record(tape, "Op", [1], [2], backward)
    assert tape.compute_gradient(numbers, [2], [0]) == [21]
    assert (tape.num_ops, tape.usages()) == (1, {0: 1, 99: 1})
    assert tape.compute_gradient(numbers, [99], [0]) == [5]
    assert set(record.counts.values()) == {1}


@pytest.fixture
def cython_numbers(cython_core):
    class Numbers(cython_core.VSpace):
        def ones_like(self, info):
            return 1

        def call_backward_function(self, op_type, backward, unneeded, output_gradients):
            return backward(*output_gradients)

    return Numbers()


def test_a_tape_may_be_spared(cython_core, cython_numbers, record, chain):
    tape = cython_core.Tape()
    chain(tape, 3)
    for _ in range(2):
        assert tape.compute_gradient(cython_numbers, [3], [0], keep=True) == [8]
        assert (tape.num_ops, record.released) == (3, [])
    assert tape.compute_gradient(cython_numbers, [3], [0]) == [8]
    assert (tape.num_ops, len(record.released)) == (0, 3)


def test_a_spared_tape_cannot_be_consumed_meanwhile(cython_core, cython_numbers, record, chain):
    tape = cython_core.Tape()
    chain(tape, 3)

    def backward(dy):
        with pytest.raises(TapeStateError, match="keep=True"):
            tape.compute_gradient(cython_numbers, [3], [0])
        assert tape.compute_gradient(cython_numbers, [3], [0], keep=True) == [8]
        return [dy]

    record(tape, "Op", [3], [4], backward)
    assert tape.compute_gradient(cython_numbers, [4], [0], keep=True) == [8]
    assert (tape.num_ops, record.released) == (4, [])


@pytest.mark.parametrize("persistent", [False, True])
def test_traces_deleted_by_a_backward_function_go_after_the_gradient(
        core, numbers, record, chain, persistent):
    tape = core.Tape(persistent)
    chain(tape, 3)
    for id in (1, 2):
        tape.delete_trace(id)

    def backward(dy):
        tape.delete_trace(4)
        tape.delete_trace(3)
        tape.delete_trace(77)
        seen.append((tape.is_known(4), len(record.released)))
        return [dy]

    seen = []
    record(tape, "Op", [3], [4], backward)
    assert tape.compute_gradient(numbers, [4], [0]) == [8]
    assert seen == [(True, 0)]
    assert (tape.num_ops, tape.num_known) == (0, 1)
    assert record.counts == {"op0": 1, "op1": 1, "op2": 1, "Op": 1}


def test_an_output_taken_over_during_a_gradient_breaks_nothing(core, numbers, record, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 3)

    def backward(dy):
        record(tape, "New", [0], [2], lambda dy: [7 * dy])
        seen.append(list(record.released))
        return [dy]

    seen = []
    record(tape, "Op", [3], [4], backward)
    tape.compute_gradient(numbers, [4], [0])
    assert seen == [[]]
    assert record.released == ["op1"]
    assert tape.compute_gradient(numbers, [3], [0]) == [14]


# ---- memory


def test_a_tape_and_a_closure_that_refer_to_each_other_are_collected(core, record):
    gc.collect()
    tape = core.Tape()
    tape.watch(0)
    record(tape, "Op", [0], [1], lambda dy, tape=tape: tape.num_ops)
    del tape
    assert record.released == []
    gc.collect()
    assert record.released == ["Op"]


@pytest.mark.parametrize("holder", ["deleter", "info"])
def test_cycles_through_deleters_and_infos_are_collected(core, holder):
    class Info:
        id = 1

    tape = core.Tape()
    tape.watch(0)
    info, deleted = Info(), []
    tape.record("Op", [info], [0], ["float64"], lambda: None,
                lambda _, holds=tape if holder == "deleter" else None: deleted.append(1))
    if holder == "info":
        info.tape = tape
    gone = weakref.ref(info)
    del tape, info
    gc.collect()
    assert deleted == [1]
    assert gone() is None


def test_a_collected_tape_may_still_be_used_by_its_deleters(core):
    """The collector runs them when it has begun to take the cycle apart."""
    tape = core.Tape()
    tape.watch(0)
    seen = []

    def deleter(_, tape=tape):
        tape.delete_trace(1)
        tape.watch(5)
        tape.record("Late", [6], [5], ["float64"], lambda: tape, seen.append)
        seen.append(tape.is_known(6))

    for i in range(3):
        tape.record("Op", [i + 1], [i], ["float64"], lambda tape=tape: tape, deleter)
    del tape, deleter
    gc.collect()
    gc.collect()
    assert seen.count(True) == 3


@pytest.mark.parametrize("persistent", [False, True])
def test_nothing_is_left_after_many_tapes(core, numbers_type, persistent):
    numbers = numbers_type()
    op_type = core.OpType("Op")
    info, deleter = 10 ** 9, [].append  # an int of its own

    def use_tapes(count):
        for number in range(count):
            tape = core.Tape(persistent)
            tape.watch(0)
            for i in range(8):
                tape.record(op_type, [info + i + 1], [info + i if i else 0], ["float64"],
                            lambda: numbers, lambda _: None)
            if number % 3 == 0:
                tape.delete_trace(info + 8)
            elif number % 3 == 1:
                numbers.call_backward_function = lambda *_: [1]
                tape.compute_gradient(numbers, [info + 6], [0])
            numbers.marked.clear()
            numbers.deleted.clear()

    use_tapes(300)
    gc.collect()
    references = [sys.getrefcount(thing) for thing in (op_type, numbers, info, deleter)]
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    use_tapes(3000)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (op_type, numbers, info, deleter)] == references
    assert len(gc.get_objects()) <= objects
    assert sys.getallocatedblocks() < blocks + 100


def test_questions_about_unknown_ids_leave_nothing_behind(core, numbers, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 3)
    n_bytes = tape.nbytes
    for id in range(1000, 2000):
        assert tape.compute_gradient(numbers, [3, id], [0, id + 1]) == [8, None]
        tape.delete_trace(id)
    assert (tape.num_known, tape.num_ops) == (4, 3)
    assert tape.nbytes <= n_bytes + 10_000


def test_the_process_does_not_grow(cython_core):
    """The C arrays are freed, too."""
    vspace = type("Units", (Unit, cython_core.VSpace), {})()
    op_type = cython_core.OpType("Op")

    def use_tapes(count):
        for number in range(count):
            tape = cython_core.Tape(number % 2)
            tape.watch(0)
            for i in range(100):
                tape.record(op_type, (i + 1,), (i,), ("float64",), object)
            tape.compute_gradient(vspace, [90], [0])
            tape.delete_trace(100)

    use_tapes(100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    use_tapes(3000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1.05 * before


# ---- very many ops, on the Cython tape

many = pytest.mark.parametrize("n", table([250_000], [1_000_000]))


class Unit:
    """Backward functions that pass the gradient on."""

    def ones_like(self, info):
        return 1

    def call_backward_function(self, op_type, backward, unneeded, output_gradients):
        return output_gradients

    def aggregate_gradients(self, gradients):
        return sum(gradients)


def record_many(tape, n, op_type, deleter=None):
    tape.watch(0)
    for i in range(n):
        tape.record(op_type, (i + 1,), (i,), ("float64",), object, deleter)


@many
def test_very_many_ops_are_differentiated_and_freed(cython_core, n):
    count = 0

    def deleter(_):
        nonlocal count
        count += 1

    vspace = type("Units", (Unit, cython_core.VSpace), {})()
    tape = cython_core.Tape(persistent=True)
    record_many(tape, n, cython_core.OpType("Op"), deleter)
    assert tape.compute_gradient(vspace, [n], [0]) == [1]
    for id in range(1, n):
        tape.delete_trace(id)
    assert (count, tape.num_ops) == (0, n)
    tape.delete_trace(n)
    assert (count, tape.num_ops, tape.num_known) == (n, 0, 1)


@many
@pytest.mark.parametrize("differentiate", [False, True])
def test_very_many_ops_are_consumed_or_dropped(cython_core, n, differentiate):
    vspace = type("Units", (Unit, cython_core.VSpace), {})()
    tape = cython_core.Tape()
    count = 0

    def deleter(_):
        nonlocal count
        count += 1

    record_many(tape, n, cython_core.OpType("Op"), deleter)
    if differentiate:
        assert tape.compute_gradient(vspace, [n], [0]) == [1]
        assert tape.num_ops == 0
    del tape
    assert count == n


@many
def test_binary_ops_take_150_bytes_each(cython_core, n):
    op_type = cython_core.OpType("Op")
    tape = cython_core.Tape()
    tape.watch(0)
    tape.watch(1)
    for i in range(2, n + 2):
        tape.record(op_type, (i,), (i - 2, i - 1), ("float64", "float64"), object)
    assert tape.num_ops == n
    assert tape.nbytes <= 150 * n
