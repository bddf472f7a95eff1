"""Entries of tapes and their release, on the Cython tape and on the plain-Python one."""

import gc
import weakref

import pytest

from cytape.errors import CytapeError, InvalidIdError

TRAINABLE = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "resource",
             "variant"]
NOT_TRAINABLE = ["bool", "int8", "int32", "int64", "uint8", "uint64", "str", "object", "float"]


# ---- the statements of behaviours.md


def test_D_1A_01_records_if_one_position_is_both_known_and_trainable(tape):
    tape.watch(1)
    for dtype in TRAINABLE:
        assert tape.should_record([1], [dtype])
        assert tape.should_record([7, 1], ["int32", dtype])
        assert not tape.should_record([7], [dtype])
    for dtype in NOT_TRAINABLE:
        assert not tape.should_record([1], [dtype])
    assert not tape.should_record([1, 7], ["int32", "float32"])
    assert not tape.should_record([], [])


@pytest.mark.parametrize("n_ids, n_dtypes", [(1, 0), (0, 1), (2, 1)])
def test_D_1A_01_lists_of_different_length_are_an_error(tape, record, n_ids, n_dtypes):
    tape.watch(1)
    with pytest.raises(ValueError, match=f"got {n_ids} ids and {n_dtypes} dtypes"):
        tape.should_record([1] * n_ids, ["float64"] * n_dtypes)
    with pytest.raises(ValueError, match=f"got {n_ids} ids and {n_dtypes} dtypes"):
        tape.record("Op", [2], [1] * n_ids, ["float64"] * n_dtypes, lambda: None)


def test_D_1A_02_an_op_that_is_not_recorded_leaves_no_trace(tape):
    tape.watch(1)
    made = []
    for input_ids, dtypes in ([[1, 7], ["int32", "float32"]], [[], []]):
        assert not tape.record("Op", [2], input_ids, dtypes, lambda: made.append(1), made.append)
    assert not tape.is_known(2)
    assert not tape.is_known(7)
    assert (made, tape.num_ops, tape.usages()) == ([], 0, {})
    assert tape.record("Op", [2], [1], ["float32"], lambda: made.append(1))
    assert made == [1]


def test_D_1A_03_watching_changes_nothing_for_an_output(tape, numbers, record):
    for _ in range(2):
        tape.watch(1)
    record(tape, "Multiply", [1, 1], [2], lambda dy: [3 * dy, 3 * dy])
    tape.watch(2)
    record(tape, "Double", [2], [3], lambda dy: [2 * dy])
    assert tape.compute_gradient(numbers, [3], [1]) == [12]


def test_D_1A_03_recording_takes_over_an_id_that_was_only_watched(tape, numbers, record):
    tape.watch(1)
    tape.watch(2)
    record(tape, "Triple", [1], [2], lambda dy: [3 * dy])
    assert tape.compute_gradient(numbers, [2], [1]) == [3]


def test_D_1A_04_uses_are_inputs_by_occurrence_and_one_per_output(tape, record):
    tape.watch(1)
    record(tape, "Multiply", [1, 1], [2])
    assert tape.usages() == {1: 2, 2: 1}
    record(tape, "Split", [2, 8], [3, 4])
    assert tape.usages() == {1: 2, 2: 2, 8: 1, 3: 1, 4: 1}


def test_D_1A_05_a_chain_goes_with_its_end_producers_first(core, record):
    tape = core.Tape()
    tape.watch(1)
    for name, input_id in (("A", 1), ("B", 2), ("C", 3)):
        record(tape, name, [input_id], [input_id + 1])
    tape.delete_trace(2)
    tape.delete_trace(3)
    assert (record.released, tape.num_ops) == ([], 3)
    tape.delete_trace(4)
    assert (record.released, tape.num_ops) == (["A", "B", "C"], 0)
    assert tape.usages() == {}
    assert [tape.is_known(i) for i in (1, 2, 3, 4)] == [True, False, False, False]
    del tape
    assert record.released == ["A", "B", "C"]


def test_D_1A_05_an_op_goes_after_all_of_its_outputs(tape, record):
    tape.watch(1)
    record(tape, "Split", [1], [2, 3])
    tape.delete_trace(2)
    assert record.released == []
    assert tape.usages() == {1: 1, 2: 0, 3: 1}
    tape.delete_trace(3)
    assert (record.released, tape.usages()) == (["Split"], {})
    assert not tape.is_known(2)


def test_D_1A_05_unknown_and_watched_ids_are_left_alone(tape, record):
    tape.watch(1)
    record(tape, "Op", [1, 7], [2])
    for id in (1, 7, 99, -1):
        tape.delete_trace(id)
    assert (tape.is_known(1), tape.num_known, tape.num_ops) == (True, 2, 1)
    assert tape.usages() == {1: 1, 7: 1, 2: 1}


# ---- the bookkeeping beyond them


@pytest.mark.parametrize("op_type", [None, 3])
def test_an_op_has_a_type(tape, op_type):
    tape.watch(1)
    with pytest.raises((AttributeError, TypeError)):
        tape.record(op_type, [1], [1], ["float64"], lambda: None)
    assert (tape.num_ops, tape.usages()) == (0, {})


def test_a_new_tape_is_empty(core, tape):
    assert (tape.persistent, tape.num_ops, tape.num_known) == (False, 0, 0)
    assert tape.usages() == {}
    assert not tape.is_known(0)
    assert core.Tape(persistent=True).persistent


def test_infos_may_be_objects_with_an_id(tape):
    class Info:
        id = 5

    tape.watch(1)
    tape.record("Op", [Info()], (1,), ("float64",), lambda: None)
    assert tape.is_known(5)


def test_an_op_may_have_no_outputs_left_but_stays_while_they_are_used(tape, record):
    tape.watch(0)
    record(tape, "A", [0], [1])
    record(tape, "B", [1], [2])
    record(tape, "C", [1], [3])
    for id, released in ((1, []), (2, ["B"]), (3, ["B", "A", "C"])):
        tape.delete_trace(id)
        assert record.released == released
    assert tape.num_known == 1


def test_producers_go_first_in_a_program_that_branches(tape, record):
    tape.watch(0)
    inputs = {1: [0], 2: [1], 3: [1], 4: [2, 3], 5: [4, 2], 6: [5, 3, 1]}
    for output, input_ids in inputs.items():
        record(tape, str(output), input_ids, [output])
    for id in range(1, 6):
        tape.delete_trace(id)
    assert record.released == []
    tape.delete_trace(6)
    order = [int(name) for name in record.released]
    assert sorted(order) == [1, 2, 3, 4, 5, 6]
    for output, input_ids in inputs.items():
        assert all(order.index(i) < order.index(output) for i in input_ids if i)


def test_a_tensor_of_a_live_op_is_followed_once_it_is_watched(tape, record, numbers):
    tape.watch(1)
    record(tape, "Add", [1, 2], [3], lambda dy: [dy, dy])
    assert not tape.is_known(2)
    tape.watch(2)
    assert tape.is_known(2)
    assert tape.compute_gradient(numbers, [3], [2]) == [1]


def test_an_op_without_outputs_goes_with_the_tape(core, record):
    tape = core.Tape()
    tape.watch(1)
    assert record(tape, "Op", [1], [])
    assert (tape.num_ops, tape.usages(), record.released) == (1, {1: 1}, [])
    del tape
    assert record.released == ["Op"]


def test_usages_are_a_copy(tape, record):
    tape.watch(1)
    record(tape, "Op", [1], [2])
    tape.usages().clear()
    assert tape.usages() == {1: 1, 2: 1}


def test_the_room_of_forgotten_ops_is_used_again(tape, record):
    tape.watch(0)
    record(tape, "kept", [0], [1])
    sizes = []
    for start in range(2, 20000, 200):
        for id in range(start, start + 200):
            record(tape, "passing", [id - 1 if id > start else 0], [id])
        for id in range(start, start + 200):
            tape.delete_trace(id)
        sizes.append(tape.nbytes)
    assert (tape.num_ops, tape.num_known) == (1, 2)
    assert max(sizes[len(sizes) // 2:]) <= max(sizes[:len(sizes) // 2])


def test_an_output_stays_while_its_op_does(core, numbers, record):
    """Its handle is gone, but what saved the value may still lead to it."""
    tape = core.Tape(persistent=True)
    tape.watch(0)
    record(tape, "Split", [0], [1, 2], lambda dy, dz: [10 * dy + dz])
    tape.delete_trace(1)
    assert tape.is_known(1)
    record(tape, "Double", [1], [3], lambda dy: [2 * dy])
    tape.delete_trace(2)
    assert record.released == []
    assert tape.compute_gradient(numbers, [3], [0]) == [20]
    tape.delete_trace(3)
    assert record.released == ["Split", "Double"]


# ---- an id that is recorded twice


def test_a_later_op_takes_over_an_output(tape, numbers, record):
    tape.watch(1)
    tape.watch(2)
    record(tape, "Old", [1], [3], lambda dy: [5 * dy])
    record(tape, "New", [2], [3], lambda dy: [7 * dy])
    assert record.released == ["Old"]
    assert tape.usages() == {2: 1, 3: 1}
    assert tape.compute_gradient(numbers, [3], [1, 2]) == [None, 7]


def test_the_older_op_stays_for_its_other_output(tape, numbers, record):
    tape.watch(1)
    record(tape, "Old", [1], [2, 3], lambda dy, dz: [10 * dy + 100 * dz])
    record(tape, "New", [1], [2], lambda dy: [7 * dy])
    assert (record.released, tape.usages()) == ([], {1: 2, 2: 1, 3: 1})
    assert tape.compute_gradient(numbers, [2, 3], [1]) == [107]
    assert numbers.output_gradients == [[1], [0, 1]]


def test_a_taken_over_output_goes_with_its_one_handle(tape, record):
    tape.watch(1)
    record(tape, "Old", [1], [2])
    record(tape, "Consumer", [2], [4])
    record(tape, "New", [1], [2])
    assert (record.released, tape.usages()) == (["Old"], {1: 1, 2: 2, 4: 1})
    tape.delete_trace(2)
    tape.delete_trace(4)
    assert (record.counts, tape.num_ops) == ({"Old": 1, "Consumer": 1, "New": 1}, 0)


def test_an_op_may_take_over_beside_its_own_input(tape, numbers, record):
    """Its inputs are in use, even if no other op uses them any more."""
    tape.watch(0)
    record(tape, "Old", [0], [1, 2], lambda dy, dz: [10 * dy + dz])
    tape.delete_trace(1)
    record(tape, "New", [1], [2], lambda dy: [3 * dy])
    assert (record.released, tape.usages()) == ([], {0: 1, 1: 1, 2: 1})
    assert tape.compute_gradient(numbers, [2], [0]) == [30]


def test_taking_over_releases_the_producers_of_the_older_op(tape, record):
    tape.watch(0)
    record(tape, "A", [0], [1])
    record(tape, "B", [1], [2])
    tape.delete_trace(1)
    record(tape, "New", [0], [2])
    assert (record.released, tape.usages()) == (["A", "B"], {0: 1, 2: 1})


def test_a_handle_dies_once(tape, numbers, record):
    """A second deletion must not take the use that is a consumer's."""
    for id in (1, 50):
        tape.watch(id)
    record(tape, "A", [1], [2], lambda dy: [2 * dy])
    record(tape, "B", [2], [3], lambda dy: [3 * dy])
    for _ in range(3):
        tape.delete_trace(2)
    record(tape, "C", [50], [60], lambda dy: [5 * dy])
    assert (record.released, tape.usages()) == ([], {1: 1, 2: 1, 3: 1, 50: 1, 60: 1})
    assert tape.compute_gradient(numbers, [3], [1, 50, 60]) == [6, None, None]


# ---- invalid use


@pytest.mark.parametrize("inputs, outputs", [
    ([1], [-1]), ([1, -3], [2]), ([1], [1]), ([1, 2], [3, 2]), ([1], [2, 2])])
def test_ids_that_cannot_be_are_refused(tape, record, inputs, outputs):
    tape.watch(1)
    with pytest.raises(InvalidIdError):
        record(tape, "Op", inputs, outputs)
    assert (tape.num_ops, tape.num_known, tape.usages()) == (0, 1, {})
    assert record.released == []


def test_a_negative_id_cannot_be_watched(core):
    with pytest.raises(InvalidIdError, match="at least 0, got -5") as caught:
        core.Tape().watch(-5)
    assert isinstance(caught.value, CytapeError)
    assert isinstance(caught.value, ValueError)


def test_a_failing_getter_leaves_the_tape_as_it_was(tape, record):
    tape.watch(1)
    deleted = []
    with pytest.raises(ZeroDivisionError):
        tape.record("Op", [2], [1], ["float64"], lambda: 1 / 0, deleted.append)
    assert (tape.num_ops, tape.num_known, tape.usages(), deleted) == (0, 1, {}, [])


@pytest.mark.parametrize("outputs", [[object()], ["2"], [None], 3])
def test_outputs_without_an_id_are_refused(tape, outputs):
    tape.watch(1)
    with pytest.raises((AttributeError, TypeError)):
        tape.record("Op", outputs, [1], ["float64"], lambda: None)
    assert (tape.num_ops, tape.num_known, tape.usages()) == (0, 1, {})


# ---- letting go


def test_the_deleter_gets_the_backward_object(tape):
    tape.watch(1)
    made, deleted = [], []

    def getter():
        made.append(object())
        return made[0]

    tape.record("Op", [2], [1], ["float64"], getter, deleted.append)
    assert deleted == []
    tape.delete_trace(2)
    assert deleted == made


@pytest.mark.parametrize("persistent", [False, True])
def test_a_dropped_tape_releases_everything_once(core, record, chain, persistent):
    tape = core.Tape(persistent)
    chain(tape, 50)
    tape.delete_trace(50)
    del tape
    assert record.counts == {f"op{i}": 1 for i in range(50)}


def test_references_of_an_op_are_released_with_it(core):
    class Saved:
        pass

    tape = core.Tape()
    tape.watch(1)
    held = [weakref.ref(saved) for saved in (Saved(), Saved()) if (
        tape.record("Op", [2], [1], ["float64"], lambda saved=saved: saved) or True)]
    gc.collect()
    assert held[0]() is None  # the second op took over its output
    del tape
    assert held[1]() is None


def test_a_deleter_may_use_the_tape(tape, record):
    tape.watch(0)
    seen = []

    def deleter(_):
        seen.append((tape.num_ops, tape.is_known(1), tape.usages()))
        tape.watch(50)
        record(tape, "from the deleter", [50], [51])
        tape.delete_trace(3)

    record(tape, "other", [0], [2])
    record(tape, "another", [2], [3])
    tape.record("Op", [1], [0], ["float64"], lambda: None, deleter)
    tape.delete_trace(2)
    tape.delete_trace(1)
    assert seen == [(2, False, {0: 1, 2: 1, 3: 1})]
    assert record.released == ["other", "another"]
    assert tape.usages() == {50: 1, 51: 1}


def test_ops_that_a_deleter_drops_go_before_their_consumers(tape, record):
    tape.watch(0)

    def deleter(_):
        record.released.append("A")
        tape.delete_trace(3)

    tape.record("A", [1], [0], ["float64"], lambda: None, deleter)
    record(tape, "B", [0], [3])
    record(tape, "C", [1, 3], [2])
    tape.delete_trace(1)
    tape.delete_trace(2)
    assert record.released == ["A", "B", "C"]


def test_a_deleter_may_record_enough_to_move_everything(tape, record):
    tape.watch(0)
    deleted = []

    def deleter(name):
        deleted.append(name)
        for id in range(1000, 3000):
            record(tape, "late", [id - 1 if id > 1000 else 0], [id])

    for id in (1, 2, 3):
        tape.record("Op", [id], [id - 1], ["float64"], lambda id=id: id, deleter)
    for id in (1, 2, 3):
        tape.delete_trace(id)
    assert deleted == [1, 2, 3]
    assert tape.num_ops == 2000


def test_a_failing_deleter_is_reported_and_stops_nothing(tape, unraisable):
    tape.watch(0)
    errors = [ValueError("a deleter"), GeneratorExit(), SystemExit()]

    def deleter(error):
        raise error

    for i, error in enumerate(errors):
        tape.record("Op", [i + 1], [i], ["float64"], lambda error=error: error, deleter)
    for i in range(3):
        tape.delete_trace(i + 1)
    assert unraisable == errors
    assert (tape.num_ops, tape.usages()) == (0, {})


def test_saved_handles_go_one_after_the_other_not_one_inside_the_other(tape):
    """Each saved value holds the handle before it: letting go of one deletes the next trace."""

    class Handle:
        def __init__(self, id):
            self.id = id

        def __del__(self):
            tape.delete_trace(self.id)

    n = 20000
    handle = Handle(0)
    tape.watch(0)
    for id in range(1, n):
        tape.record("Op", [id], [id - 1], ["float64"], lambda handle=handle: handle)
        handle = Handle(id)
    assert tape.num_ops == n - 1
    del handle
    assert (tape.num_ops, tape.num_known) == (0, 1)
