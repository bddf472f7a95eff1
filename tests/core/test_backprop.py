"""Gradients: the statements of behaviours.md about `compute_gradient`, then misuse and errors."""

import pytest

from cytape.errors import InvalidGradientError, InvalidIdError, TapeStateError


def square(x):
    return lambda dy: [dy * x, dy * x]


# ---- the statements of behaviours.md


def test_D_1A_06_a_gradient_empties_the_tape(core, numbers, record):
    tape = core.Tape()
    tape.watch(0)

    def backward(dy):
        seen.append(list(record.released))
        return [dy]

    seen = []
    record(tape, "needed 1", [0], [1], backward)
    record(tape, "unneeded 1", [1], [2])
    record(tape, "needed 2", [1], [3], backward)
    record(tape, "unneeded 2", [3], [4])
    assert tape.compute_gradient(numbers, [3], [0]) == [1]
    unneeded = ["unneeded 1", "unneeded 2"]
    assert [sorted(released) for released in seen] == [unneeded, ["needed 2", *unneeded]]
    assert record.released[2:] == ["needed 2", "needed 1"]
    assert (tape.num_ops, tape.usages(), numbers.calls) == (0, {}, ["needed 2", "needed 1"])
    del tape
    assert len(record.released) == 4


def test_D_1A_06_a_persistent_tape_releases_nothing_until_its_end(core, numbers, record, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 3)
    for _ in range(2):
        assert tape.compute_gradient(numbers, [2], [0]) == [4]
    assert (record.released, tape.num_ops) == ([], 3)
    del tape
    assert record.counts == {"op0": 1, "op1": 1, "op2": 1}


def test_D_1A_07_a_consumed_tape_has_no_second_gradient(tape, numbers, chain):
    chain(tape, 3)
    tape.compute_gradient(numbers, [3], [0])
    for target in (3, 2, 1):
        with pytest.raises(TapeStateError, match=f"find the op that produced target {target}"):
            tape.compute_gradient(numbers, [target], [0])
    assert tape.compute_gradient(numbers, [3], [0, 3], output_gradients=[5]) == [None, 5]
    assert tape.compute_gradient(numbers, [0], [0], {0: 0}) == [1]


def test_D_1A_08_every_backward_function_runs_once(tape, numbers, record):
    tape.watch(0)
    for i in range(30):
        record(tape, f"op{i}", [i, i], [i + 1], lambda dy: [dy, dy])
    assert tape.compute_gradient(numbers, [30], [0]) == [2 ** 30]
    assert numbers.calls == [f"op{i}" for i in reversed(range(30))]


def test_D_1A_09_missing_gradients_are_zeros_if_the_op_is_called(tape, numbers, record):
    tape.watch(0)
    record(tape, "three outputs", [0], [1, 2, 3], lambda *dys: [sum(dys)])
    record(tape, "gives None", [2], [4], lambda dy: [None])
    assert tape.compute_gradient(numbers, [1, 4], [0]) == [1]
    assert numbers.output_gradients == [[1], [1, 0, 0]]
    assert numbers.zeros == [2, 3]


def test_D_1A_09_no_zeros_for_an_op_that_is_not_called(tape, numbers, record):
    tape.watch(0)
    record(tape, "three outputs", [0], [1, 2, 3], lambda *dys: [sum(dys)])
    record(tape, "gives None", [2], [4], lambda dy: [None])
    assert tape.compute_gradient(numbers, [4], [0]) == [None]
    assert (numbers.calls, numbers.zeros) == (["gives None"], [])


@pytest.mark.parametrize("name, n_outputs, optional", [
    ("SoftmaxCrossEntropyWithLogits", 2, (1,)), ("SparseSoftmaxCrossEntropyWithLogits", 2, (1,)),
    ("FusedBatchNorm", 5, (1, 2, 3, 4)), ("Any", 70, (1, 63)),
    ("Any", 70, range(64)),  # and so all others
    ("Any", 3, ()),
])
def test_D_1A_10_gradients_that_an_op_declares_optional_stay_none(
        core, numbers, record, name, n_outputs, optional):
    outputs = list(range(1, n_outputs + 1))
    for build_zeros in (True, False):
        tape = core.Tape()
        tape.watch(0)
        record(tape, core.OpType(name, optional_gradients=optional), [0], outputs, lambda *dys: [7])
        assert tape.compute_gradient(numbers, [1], [0], None, None, build_zeros) == [7]
        assert numbers.calls[-1] == name
        assert numbers.output_gradients[-1] == [1] + [
            0 if build_zeros and i not in optional and len(optional) < 64 else None
            for i in range(1, n_outputs)]


def test_D_1A_10_a_plain_name_gets_zeros_whatever_it_is(tape, numbers, record):
    tape.watch(0)
    record(tape, "SoftmaxCrossEntropyWithLogits", [0], [1, 2], lambda dy, dz: [dy])
    tape.compute_gradient(numbers, [1], [0])
    assert numbers.output_gradients == [[1, 0]]


def test_D_1A_11_an_op_that_no_gradient_reaches_is_released_uncalled(tape, numbers, record):
    tape.watch(0)
    record(tape, "A", [0], [1], lambda dy: [2 * dy])
    record(tape, "B", [1], [2], lambda dy: [2 * dy])
    record(tape, "gives None", [2], [3], lambda dy: [None])
    record(tape, "D", [0], [4], lambda dy: [2 * dy])
    assert tape.compute_gradient(numbers, [3, 4], [0, 1]) == [2, None]
    assert numbers.calls == ["D", "gives None"]
    assert record.counts == {"A": 1, "B": 1, "gives None": 1, "D": 1}


def test_D_1A_12_positions_that_need_no_gradient_are_announced(tape, numbers, record):
    tape.watch(1)
    record(tape, "Op", [7, 1, 8], [2], lambda dy: [dy, dy, dy])
    tape.compute_gradient(numbers, [2], [1])
    assert numbers.unneeded == [[0, 2]]


def test_D_1A_12_sources_are_needed_known_or_not(tape, numbers, record):
    tape.watch(1)
    record(tape, "Op", [7, 1, 8], [2], lambda dy: [dy, dy, dy])
    tape.compute_gradient(numbers, [2], [8])
    assert numbers.unneeded == [[0]]


def test_D_1A_13_an_unknown_source_has_no_gradient(tape, numbers, record):
    tape.watch(1)
    record(tape, "Multiply", [1, 2], [3], lambda dy: [5 * dy, 3 * dy])
    assert tape.compute_gradient(numbers, [3], [1, 2]) == [5, None]


def test_D_1A_14_a_target_listed_twice_counts_twice(core, numbers, record, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 1)
    assert tape.compute_gradient(numbers, [1, 1], [0]) == [4]
    assert tape.compute_gradient(numbers, [1, 1], [0], output_gradients=[10, None]) == [22]


def test_D_1A_14_a_target_without_producer_contributes_nothing(core, numbers, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 1)
    tape.watch(5)
    assert tape.compute_gradient(numbers, [99, 5, 1], [0]) == [2]
    assert tape.compute_gradient(numbers, [99, 5], [0, 5, 99]) == [None, None, None]
    assert tape.compute_gradient(numbers, [], [0]) == [None]


def test_D_1A_14_a_target_without_producer_that_is_a_source_gives_ones(core, numbers, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 1)
    tape.watch(5)
    assert tape.compute_gradient(numbers, [5], [5, 0], {5: 5}) == [1, None]
    assert tape.compute_gradient(numbers, [5, 5, 1, 0], [0, 5], {0: 0, 5: 5}) == [3, 2]
    assert tape.compute_gradient(numbers, [99], [99], {99: 99}) == [1]


def test_D_1A_14_an_output_gradient_replaces_ones_and_none_means_ones(core, numbers, chain):
    tape = core.Tape(persistent=True)
    chain(tape, 3)
    assert tape.compute_gradient(numbers, [3], [0], output_gradients=[10]) == [80]
    assert tape.compute_gradient(numbers, [3], [0], output_gradients=[None]) == [8]
    assert tape.compute_gradient(numbers, [1, 3], [0], output_gradients=[10, None]) == [28]
    assert tape.compute_gradient(numbers, [0], [0], {0: 0}, [7]) == [7]


def test_D_1A_15_a_source_on_the_way_passes_its_gradient_on(tape, numbers, record):
    x, y = 3, 9
    tape.watch(1)
    record(tape, "Square", [1, 1], [2], square(x))
    record(tape, "Square", [2, 2], [3], square(y))
    assert tape.compute_gradient(numbers, [3], [1, 2]) == [108, 18]
    assert 18 in numbers.marked


@pytest.mark.parametrize("size, aggregated", [
    (10_000_000, [5, 5, 2]), (100, [10]),
    (6_710_887, [5, 5, 2]),  # 5 * 4 * 6_710_886 is 8 bytes less than the threshold
    (6_710_886, [6, 5]),
    (5_592_405, [7, 4]),     # 6 * 4 * 5_592_405 is 8 bytes less than it
])
def test_D_1A_16_many_large_gradients_are_summed_early(
        core, numbers_type, record, size, aggregated):
    numbers = numbers_type()
    numbers.num_elements = lambda gradient: size
    tape = core.Tape()
    tape.watch(0)
    for i in range(10):
        record(tape, "Double", [0], [i + 1], lambda dy: [2 * dy])
    assert tape.compute_gradient(numbers, list(range(1, 11)), [0]) == [20]
    assert numbers.aggregated == aggregated


@pytest.mark.parametrize("elements, aggregated", [(2 ** 25 // 8, [9]), (2 ** 25 // 8 + 1, [8, 2])])
def test_D_1A_16_the_threshold_itself_is_not_enough(
        core, numbers_type, record, elements, aggregated):
    numbers = numbers_type()
    numbers.num_elements = lambda gradient: elements
    tape = core.Tape()
    tape.watch(0)
    for i in range(9):
        record(tape, "Double", [0], [i + 1], lambda dy: [2 * dy])
    assert tape.compute_gradient(numbers, list(range(1, 10)), [0]) == [18]
    assert numbers.aggregated == aggregated


class BackwardError(Exception):
    pass


def failing(*_):
    raise BackwardError("in a backward function")


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("error_type", [BackwardError, KeyboardInterrupt, MemoryError])
def test_D_1A_17_an_error_comes_out_unchanged_and_all_is_released(
        core, numbers, record, chain, persistent, error_type):
    error = error_type("text")

    def backward(dy):
        raise error

    tape = core.Tape(persistent)
    chain(tape, 5)
    record(tape, "fails", [5], [6], backward)
    for i in range(6, 10):
        record(tape, f"op{i}", [i], [i + 1], lambda dy: [2 * dy])
    with pytest.raises(error_type) as caught:
        tape.compute_gradient(numbers, [9], [0])
    assert caught.value is error
    names = {"fails": 1} | {f"op{i}": 1 for i in range(10) if i != 5}
    assert record.counts == ({} if persistent else names)
    assert tape.num_ops == (10 if persistent else 0)
    if persistent:
        assert tape.compute_gradient(numbers, [5], [0]) == [32]
    error.__traceback__ = None  # its frames hold the tape
    del tape, caught
    assert record.counts == names


@pytest.mark.parametrize("returned, received", [([], 0), ([1, 2], 2), ((1, 2, 3), 3)])
def test_D_1A_18_a_wrong_number_of_gradients_is_an_error(tape, numbers, record, returned, received):
    tape.watch(0)
    record(tape, "Below", [0], [1], lambda dy: [dy])
    record(tape, "Wrong", [1], [2], lambda dy: returned)
    with pytest.raises(TapeStateError, match=f"'Wrong'.* expected 1, received {received}$"):
        tape.compute_gradient(numbers, [2], [0])
    assert record.counts == {"Below": 1, "Wrong": 1}


def test_D_1A_19_the_ready_op_recorded_last_goes_first(tape, numbers, record):
    """The one deviation from D-1A-19, which takes ready ops first-in-first-out.

    The latest first mirrors the forward pass: what was made last is let go first, so that few
    gradients and saved values are alive at a time.
    """
    tape.watch(0)
    for i in (1, 2, 3):
        record(tape, f"A{i}", [0], [i], lambda dy: [dy])
        record(tape, f"B{i}", [i], [10 + i], lambda dy: [dy])
    record(tape, "Add", [11, 12, 13], [20], lambda dy: [dy, dy, dy])
    assert tape.compute_gradient(numbers, [20, 12], [0]) == [4]
    assert numbers.calls == ["Add", "B3", "A3", "B2", "A2", "B1", "A1"]


def test_D_1A_19_zeros_are_lazy(tape, numbers, record):
    tape.watch(0)
    record(tape, "two outputs", [0], [1, 2], lambda dy, dz: [dy])
    record(tape, "gives None", [1], [3], lambda dy: [None])
    tape.compute_gradient(numbers, [3], [0])
    assert numbers.zeros == []


def test_D_1A_19_a_target_that_is_a_source_gives_ones(tape, numbers):
    tape.watch(0)
    assert tape.compute_gradient(numbers, [0], [0], {0: 0}) == [1]


def test_D_1A_19_inputs_without_need_are_announced(tape, numbers, record):
    tape.watch(1)
    record(tape, "Op", [7, 1], [2], lambda dy: [None, dy])
    assert tape.compute_gradient(numbers, [2], [1]) == [1]
    assert numbers.unneeded == [[0]]


# ---- other options of gradients


def test_sources_may_repeat_and_keep_their_order(tape, numbers, chain):
    chain(tape, 3)
    assert tape.compute_gradient(numbers, [3], [1, 0, 1, 3, 7]) == [4, 8, 4, 1, None]


def test_an_op_without_outputs_is_consumed_too(tape, numbers, record, chain):
    chain(tape, 1)
    record(tape, "no outputs", [1], [])
    assert tape.compute_gradient(numbers, [1], [0]) == [2]
    assert record.released == ["no outputs", "op0"]
    assert tape.num_ops == 0


def test_no_sources_no_gradients(tape, numbers, chain):
    chain(tape, 3)
    assert tape.compute_gradient(numbers, [3], []) == []
    assert tape.num_ops == 0


def test_ids_may_come_as_tuples(tape, numbers, chain):
    chain(tape, 3)
    assert tape.compute_gradient(numbers, (3,), (0,), None, (2,)) == [16]


def test_an_output_without_handle_is_still_on_the_way(tape, numbers, chain):
    chain(tape, 3)
    for id in (1, 2):
        tape.delete_trace(id)
    assert tape.compute_gradient(numbers, [3], [0]) == [8]


def test_a_forgotten_output_is_no_target(tape, numbers, record):
    tape.watch(0)
    record(tape, "Op", [0], [1], lambda dy: [dy])
    tape.delete_trace(1)
    assert tape.compute_gradient(numbers, [1], [0, 1]) == [None, None]


def test_a_consumed_tape_goes_on_recording(tape, numbers, chain, record):
    chain(tape, 2)
    tape.compute_gradient(numbers, [2], [0])
    record(tape, "later", [2, 0], [3], lambda dy: [5 * dy, 7 * dy])
    assert (tape.num_ops, tape.usages()) == (1, {2: 2, 0: 1, 3: 1})
    assert tape.compute_gradient(numbers, [3], [2, 0]) == [5, 7]
    assert record.counts == {"op0": 1, "op1": 1, "later": 1}


def test_outputs_of_consumed_ops_are_forgotten_with_their_handles(tape, numbers, chain):
    chain(tape, 3)
    tape.delete_trace(1)
    tape.compute_gradient(numbers, [3], [0])
    tape.delete_trace(2)
    tape.delete_trace(3)
    assert [tape.is_known(i) for i in (0, 1, 2, 3)] == [True, False, False, False]


def test_unwanted_gradients_are_deleted(tape, numbers, record):
    tape.watch(0)
    tape.watch(1)
    record(tape, "Op", [0, 1, 2], [3], lambda dy: [11, 12, 13])
    assert tape.compute_gradient(numbers, [3], [0]) == [11]
    assert {12, 13} <= set(numbers.deleted)


def test_users_gradients_and_results_are_marked(tape, numbers, chain):
    """The caller holds them, so the host must not add to them in place."""
    chain(tape, 2)
    assert tape.compute_gradient(numbers, [2], [1, 0], output_gradients=[30]) == [60, 120]
    assert {30, 60, 120} <= set(numbers.marked)


# ---- invalid use


@pytest.mark.parametrize("output_gradients", [[], [1], [1, 1, 1], [None]])
def test_a_gradient_list_of_the_wrong_length(tape, numbers, record, chain, output_gradients):
    chain(tape, 2)
    with pytest.raises(InvalidGradientError, match=f"got {len(output_gradients)}"):
        tape.compute_gradient(numbers, [1, 2], [0], output_gradients=output_gradients)
    assert (record.released, tape.num_ops) == ([], 2)
    assert tape.compute_gradient(numbers, [2], [0]) == [4]


@pytest.mark.parametrize("targets, sources", [([-1], [0]), ([2], [0, -2])])
def test_negative_ids_are_refused(tape, numbers, record, chain, targets, sources):
    chain(tape, 2)
    with pytest.raises(InvalidIdError):
        tape.compute_gradient(numbers, targets, sources)
    assert (record.released, tape.num_ops) == ([], 2)


def test_a_consumed_target_beside_a_good_one_spares_the_tape(tape, numbers, record, chain):
    chain(tape, 2)
    tape.compute_gradient(numbers, [2], [0])
    record(tape, "later", [0], [5], lambda dy: [7 * dy])
    with pytest.raises(TapeStateError):
        tape.compute_gradient(numbers, [5, 2], [0])
    assert tape.num_ops == 1
    assert tape.compute_gradient(numbers, [5], [0]) == [7]


def test_a_circle_is_an_error(tape, numbers, record):
    """Recording an output again makes a circle if it is upstream of itself."""
    tape.watch(0)
    record(tape, "A", [0], [1], lambda dy: [dy])
    record(tape, "B", [1], [2], lambda dy: [dy])
    record(tape, "C", [2], [1], lambda dy: [dy])
    record(tape, "D", [2], [3], lambda dy: [dy])
    with pytest.raises(TapeStateError, match="circle"):
        tape.compute_gradient(numbers, [3], [0])
    assert record.counts == {"A": 1, "B": 1, "C": 1, "D": 1}


@pytest.mark.parametrize("method", ["ones_like", "zeros_like", "aggregate_gradients"])
@pytest.mark.parametrize("persistent", [False, True])
def test_errors_of_the_host_come_out_unchanged(core, numbers_type, record, method, persistent):
    tape = core.Tape(persistent)
    tape.watch(0)
    record(tape, "A", [0], [1, 2], lambda dy, dz: [dy])
    record(tape, "B", [1, 1], [3], lambda dy: [dy, dy])
    record(tape, "unneeded", [1], [4])
    numbers = numbers_type()
    setattr(numbers, method, failing)
    with pytest.raises(BackwardError):
        tape.compute_gradient(numbers, [3], [0])
    names = {"A": 1, "B": 1, "unneeded": 1}
    assert record.counts == ({} if persistent else names)
    if persistent:
        assert tape.compute_gradient(numbers_type(), [3], [0]) == [2]
    del tape
    assert record.counts == names
