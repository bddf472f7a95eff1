"""Forward mode: the statements of behaviours.md on the accumulator, and nested ones."""

import pytest

from cytape.errors import InvalidIdError, NotDifferentiableError, TapeStateError
from tests.core.accumulating import accumulate, double, number_of

# ---- the statements of behaviours.md


def test_D_1B_01_tangents_of_one_id_are_summed(accumulator, numbers):
    accumulator.watch(1, 3)
    assert accumulator.fetch_jvp(1) == 3
    accumulator.watch(1, 10)
    accumulator.watch(1, 11)
    assert accumulator.fetch_jvp(1) == 24
    # The sums took 3 and 13, which were kept besides in case that they failed.
    assert (numbers.aggregated, numbers.marked) == ([2, 2], [3, 10, 3, 11, 13])
    assert numbers.deleted == [3, 13]
    accumulator.delete_gradient(1)
    assert accumulator.fetch_jvp(1) is None
    assert numbers.deleted == [3, 13, 24]


def test_D_1B_01_the_latest_tangent_comes_first_in_a_sum(accumulator, numbers):
    terms = []
    numbers.aggregate_gradients = lambda gradients: terms.append(gradients) or sum(gradients)
    for tangent in (3, 10, 11):
        accumulator.watch(1, tangent)
    assert terms == [[10, 3], [11, 13]]


def test_D_1B_02_records_if_one_position_has_both_a_tangent_and_a_trainable_dtype(accumulator):
    for id in (1, 2):
        accumulator.watch(id, 5)
    assert accumulator.should_record([1], ["float64"])
    assert accumulator.should_record([9, 2], ["int64", "complex64"])
    assert not accumulator.should_record([1, 9], ["int64", "float64"])
    assert not accumulator.should_record([], [])
    accumulator.delete_gradient(1)
    assert not accumulator.should_record([1], ["float64"])


@pytest.mark.parametrize("n_ids, n_dtypes", [(1, 0), (1, 2), (0, 1)])
def test_D_1B_02_lists_of_different_length_are_an_error(accumulator, n_ids, n_dtypes):
    accumulator.watch(1, 5)
    with pytest.raises(ValueError):
        accumulator.should_record([1] * n_ids, ["float64"] * n_dtypes)
    with pytest.raises(ValueError):
        accumulator.accumulate("Op", [1] * n_ids, [2], [1] * n_ids, ["float64"] * n_dtypes, double)
    assert accumulator.fetch_jvp(2) is None


def test_D_1B_02_an_op_that_counts_for_nothing_runs_nothing(accumulator):
    accumulator.watch(1, 5)

    def fail(*_):
        raise AssertionError

    assert not accumulator.accumulate("Op", [2], [3], [2], ["float64"], fail, fail, fail)
    assert not accumulator.accumulate("Op", [1], [3], [1], ["int64"], fail, fail, fail)
    assert not accumulator.accumulate("Op", [2], [3], [2], ["float64"])
    assert accumulator.fetch_jvp(3) is None


def test_D_1B_02_ops_of_a_forward_function_do_not_count(accumulator):
    accumulator.watch(1, 5)

    def forward(tangents, use_batch):
        seen.append((accumulator.busy_accumulating, accumulator.should_record([1], ["float64"]),
                     accumulate(accumulator, [1], [3], double)))
        return [7]

    seen = []
    assert not accumulator.busy_accumulating
    assert accumulate(accumulator, [1], [2], forward)
    assert not accumulator.busy_accumulating
    assert seen == [(True, False, False)]
    assert (accumulator.fetch_jvp(2), accumulator.fetch_jvp(3)) == (7, None)


def test_D_1B_02_a_transposition_asks_and_tells_its_tape(host, watched):
    accumulator, x = watched()

    def backward(dy):
        def about(value, dtype="float64"):
            return accumulator.should_record([value.id], [dtype])

        assert accumulator.busy_accumulating
        unrelated = host.value(1)
        product = host.multiply(dy, x)
        seen.append([about(dy), about(dy, "int64"), about(x), about(product), about(unrelated),
                     accumulator.accumulate("Op", [dy], [unrelated], [dy.id], ["float64"],
                                            None, lambda: None),
                     accumulator.accumulate("Op", [x], [unrelated], [x.id], ["float64"])])
        return [product]

    seen = []
    y, = host.run("Op", [9], [x], backward)
    assert seen == [[True, False, False, True, False, True, False]]
    assert accumulator.fetch_jvp(y.id).number == 6
    assert accumulator.should_record([x.id], ["float64"])


def test_D_1B_02_ops_that_differentiate_a_transposed_function_do_not_count(host, watched):
    accumulator, x = watched()
    seen = []

    def backward_of_cube(dz):
        seen.append((accumulator.busy_accumulating, accumulator.should_record([x.id], ["float64"])))
        return [host.scale(3, dz)]

    def backward(dy):
        return host.run("Inner", [dy.number ** 3], [dy], backward_of_cube)

    y, = host.run("Op", [9], [x], backward)
    assert seen == [(True, False)]
    assert accumulator.fetch_jvp(y.id).number == 6


def test_D_1B_03_missing_tangents_are_zeros_if_trainable(accumulator, numbers):
    accumulator.watch(1, 5)
    seen = []
    accumulate(accumulator, [1, 7, 8, 1, 9], [2], lambda *arguments: seen.append(arguments) or [0],
               ["float64", "float32", "int64", "bool", "complex64"])
    assert seen == [([5, 0, None, 5, 0], False)]
    assert numbers.zeros == [7, 9]
    assert numbers.deleted.count(0) == 2


def test_D_1B_03_zeros_are_made_of_infos(accumulator, numbers):
    class Info:
        def __init__(self, id):
            self.id = id

    infos = [Info(7), Info(1)]
    accumulator.watch(1, 5)
    accumulator.accumulate("Op", infos, [Info(2)], [7, 1], ["float64"] * 2,
                           lambda tangents, use_batch: [sum(tangents)])
    assert numbers.zeros == infos[:1]
    assert accumulator.fetch_jvp(2) == 5


def test_D_1B_03_a_transposition_has_zeros_too(host, watched):
    host.forward = False
    accumulator, x = watched()
    w = host.value(5)
    y = host.multiply(x, w)
    assert accumulator.fetch_jvp(y.id).number == 10
    assert ("zeros_like", w.id) in host.log


def test_D_1B_04_a_forward_function_gives_the_tangents(accumulator):
    accumulator.watch(1, 5)
    assert accumulate(accumulator, [1], [2, 3], lambda tangents, use_batch: (tangents[0] * 2, None))
    assert [accumulator.fetch_jvp(id) for id in (1, 2, 3)] == [5, 10, None]
    assert not accumulator.should_record([3], ["float64"])


@pytest.mark.parametrize("use_batch", [False, True])
def test_D_1B_04_a_forward_function_is_told_about_batches(forward_accumulator, numbers, use_batch):
    accumulator = forward_accumulator(numbers, use_batch=use_batch)
    accumulator.watch(1, 5)
    seen = []
    accumulate(accumulator, [1], [2], lambda *arguments: seen.append(arguments) or [0])
    assert seen == [([5], use_batch)]
    assert accumulator.use_batch is use_batch
    with pytest.raises(AttributeError):
        accumulator.use_batch = True


def test_D_1B_04_a_forward_function_comes_before_a_backward_one(accumulator):
    accumulator.watch(1, 5)
    calls = []
    accumulator.accumulate("Op", [1], [2], [1], ["float64"], double, calls.append, calls.append)
    assert (accumulator.fetch_jvp(2), calls) == (10, [])


@pytest.mark.parametrize(
    "backward, tangent",
    [
        (lambda host, dy: host.scale(7, dy), 14), (lambda host, dy: host.multiply(dy, dy), 4),
        (lambda host, dy: host.value(5), None), (lambda host, dy: None, None),
        (lambda host, dy: dy, 2), (lambda host, dy: host.add(dy, host.scale(7, dy)), 16),
        (lambda host, dy: host.multiply(dy, host.multiply(dy, dy)), 6)],
    ids=["7 dy", "dy ** 2", "constant", "None", "dy", "8 dy", "dy ** 3"])
def test_D_1B_05_a_backward_function_is_transposed(host, watched, backward, tangent):
    accumulator, x = watched()
    y, = host.run("Op", [0], [x], lambda dy: [backward(host, dy)])
    assert number_of(accumulator.fetch_jvp(y.id)) == tangent
    assert (host.backwards, accumulator.busy_accumulating) == (0, False)


def test_D_1B_05_a_gradient_passed_on_gives_the_tangent_itself(host, new_accumulator):
    accumulator = new_accumulator()
    x, tangent = host.value(3), host.value(2)
    accumulator.watch(x.id, tangent)
    y, = host.run("Op", [0], [x], lambda dy: [dy])
    assert accumulator.fetch_jvp(y.id) is tangent


def test_D_1B_05_inputs_that_share_a_gradient_add_their_tangents(host, watched):
    accumulator, x = watched()
    y = host.value(4)
    accumulator.watch(y.id, host.value(5))

    def backward(dz):
        shared = host.scale(7, dz)
        return [dz, shared, shared, dz]

    z, = host.run("Op", [0], [x, x, y, y], backward)
    assert accumulator.fetch_jvp(z.id).number == 2 + 7 * 2 + 7 * 5 + 5


def test_D_1B_05_every_output_has_a_seed(host, watched):
    accumulator, x = watched()

    def backward(*seeds):
        seen.append([seed.number for seed in seeds])
        return [host.add(host.scale(5, seeds[0]), host.multiply(seeds[2], seeds[2]))]

    seen = []
    outputs = host.run("Op", [0, 0, 0], [x], backward)
    assert [number_of(accumulator.fetch_jvp(y.id)) for y in outputs] == [10, None, 4]
    assert seen == [[1, 1, 1]]


def test_D_1B_06_an_output_keeps_the_tangent_it_has(accumulator, numbers):
    accumulator.watch(1, 5)
    accumulator.watch(2, 7)
    accumulate(accumulator, [1], [2, 3], lambda tangents, use_batch: [11, 13])
    accumulate(accumulator, [1], [3], lambda tangents, use_batch: [17])
    assert [accumulator.fetch_jvp(id) for id in (1, 2, 3)] == [5, 7, 13]
    assert [tangent for tangent in numbers.deleted if tangent > 5] == [11, 17]


def test_D_1B_06_also_one_that_the_function_itself_brought_about(accumulator, numbers):
    accumulator.watch(1, 5)

    def forward(tangents, use_batch):
        accumulator.watch(2, 7)
        return [11]

    accumulate(accumulator, [1], [2], forward)
    assert accumulator.fetch_jvp(2) == 7
    assert numbers.deleted.count(11) == 1


def test_D_1B_07_a_tangent_goes_with_its_primal(host, new_accumulator, both_ways):
    accumulator = new_accumulator()
    x, tangent = host.value(3), host.value(2)
    accumulator.watch(x.id, tangent)
    assert tangent.holders == 2
    y = host.multiply(x, x)
    of_y = accumulator.fetch_jvp(y.id)
    assert (of_y.number, of_y.holders) == (12, 1)
    host.forget(x)
    assert (accumulator.fetch_jvp(x.id), tangent.holders) == (None, 1)
    host.forget(y)
    assert (accumulator.fetch_jvp(y.id), of_y.holders) == (None, 0)


def test_D_1B_07_a_long_program_keeps_the_tangents_of_what_lives(host, new_accumulator, both_ways):
    accumulator = new_accumulator()
    x = host.value(1)
    accumulator.watch(x.id, host.value(1))
    for _ in range(50):
        x, former = host.add(x, x), x
        host.forget(former)
        assert len(host.held()) == 3  # the first tangent is the program's
    assert accumulator.fetch_jvp(x.id).number == x.number


# ---- other queries


@pytest.mark.parametrize("id", [-1, -(2 ** 40)])
def test_negative_ids_are_refused(accumulator, numbers, id):
    with pytest.raises(InvalidIdError):
        accumulator.watch(id, 5)
    assert (accumulator.fetch_jvp(id), numbers.marked) == (None, [])
    accumulator.delete_gradient(id)
    accumulator.watch(1, 5)
    with pytest.raises(InvalidIdError):
        accumulate(accumulator, [1], [2, id], lambda tangents, use_batch: [7, 8])
    assert (accumulator.fetch_jvp(id), accumulator.busy_accumulating) == (None, False)
    for id in range(2, 100):
        accumulate(accumulator, [id - 1], [id], lambda tangents, use_batch: [tangents[0] + 1])
    assert accumulator.fetch_jvp(99) == 5 + 98


def test_a_negative_input_has_no_tangent(accumulator):
    accumulator.watch(1, 5)
    assert not accumulator.should_record([-1], ["float64"])
    assert accumulate(accumulator, [1, -1], [2], lambda tangents, use_batch: [sum(tangents)])
    assert accumulator.fetch_jvp(2) == 5


@pytest.mark.parametrize("step", [1, -1, 10 ** 6])
def test_many_tangents_come_and_go(accumulator, step):
    ids = [2 * 10 ** 9 + step * i for i in range(1000)]
    for id in ids:
        accumulator.watch(id, id)
    for id in ids[::2]:
        accumulator.delete_gradient(id)
        accumulator.delete_gradient(id)
    for id in ids[::4]:
        accumulator.watch(id, -id)
    expected = [(-id, id, None, id)[i % 4] for i, id in enumerate(ids)]
    assert [accumulator.fetch_jvp(id) for id in ids] == expected


def test_unknown_ids_are_nothing_to_delete(accumulator, numbers):
    accumulator.delete_gradient(7)
    accumulator.watch(7, 5)
    accumulator.delete_gradient(7)
    accumulator.delete_gradient(7)
    assert numbers.deleted == [5]
    accumulator.watch(7, 6)
    assert accumulator.fetch_jvp(7) == 6


def test_an_op_type_will_do_for_a_name(core, accumulator, numbers):
    accumulator.watch(1, 5)
    op_type = core.OpType("Named")
    assert accumulator.accumulate(op_type, [1], [2], [1], ["float64"], double)
    with pytest.raises(TapeStateError, match="'Named'"):
        accumulator.accumulate(op_type, [1], [3], [1], ["float64"], lambda *_: [])


def test_the_backward_function_is_called_by_name(core, host, watched):
    accumulator, x = watched()
    y = host.value(3)
    accumulator.accumulate(core.OpType("Named"), [x], [y], [x.id], ["float64"], None,
                           lambda: lambda dy: [dy])
    assert ("call_backward_function", "Named", [], [1]) in host.log


def test_a_function_is_needed(accumulator):
    accumulator.watch(1, 5)
    with pytest.raises(NotDifferentiableError, match="'Op'"):
        accumulate(accumulator, [1], [2], None)
    assert not accumulator.busy_accumulating
    assert accumulate(accumulator, [1], [2], double)


def test_an_op_may_have_no_outputs(host, watched, both_ways):
    accumulator, x = watched()
    assert host.run("Op", [], [x], lambda: [None], lambda dx: []) == []
    assert not accumulator.busy_accumulating


@pytest.mark.parametrize("inputs", [[], [1, 1]])
def test_every_input_has_an_info_and_an_id(accumulator, inputs):
    accumulator.watch(1, 5)
    for functions in ((double,), (None, lambda: None)):
        with pytest.raises(ValueError):
            accumulator.accumulate("Op", inputs, [2], [1], ["float64"], *functions)
    assert (accumulator.fetch_jvp(2), accumulator.busy_accumulating) == (None, False)


def test_an_input_that_is_not_trainable_moves_nothing(host, watched):
    """Even if the backward function has a gradient for it."""
    accumulator, x = watched()
    n = host.value(4)
    y, = host.run("Op", [0], [x, n], lambda dy: [host.scale(5, dy), host.scale(7, dy)],
                  dtypes=["float64", "int64"])
    assert accumulator.fetch_jvp(y.id).number == 10


def test_gradients_of_inputs_without_a_tangent_are_not_needed(host, watched):
    accumulator, x = watched()
    n = host.value(4)
    host.run("Op", [0], [n, x], lambda dy: [None, dy], dtypes=["int64", "float64"])
    assert ("call_backward_function", "Op", [0], [1]) in host.log


def test_a_tangent_counts_whatever_the_dtype(host, watched):
    """It is the host that watches and knows."""
    accumulator, x = watched()
    n = host.value(4)
    accumulator.watch(n.id, host.value(1))
    y, = host.run("Op", [0], [x, n], lambda dy: [host.scale(5, dy), host.scale(7, dy)],
                  dtypes=["float64", "int64"])
    assert accumulator.fetch_jvp(y.id).number == 17


def test_a_program(host, new_accumulator, both_ways):
    accumulator = new_accumulator()
    x, y = host.value(3), host.value(5)
    accumulator.watch(x.id, host.value(1))
    z = host.add(host.multiply(host.multiply(x, x), y), host.scale(4, x))
    assert accumulator.fetch_jvp(z.id).number == 2 * 3 * 5 + 4


# ---- accumulators around accumulators


def test_accumulators_nest(host, new_accumulator, both_ways):
    x = host.value(3)
    accumulators = [new_accumulator() for _ in range(3)]
    for accumulator in accumulators:
        accumulator.watch(x.id, host.value(1))
    y = host.multiply(x, host.multiply(x, host.multiply(x, x)))
    tangents = [y]
    for accumulator in reversed(accumulators):
        tangents += [accumulator.fetch_jvp(tangents[-1].id)]
    assert [tangent.number for tangent in tangents] == [81, 108, 108, 72]
    assert [accumulator.fetch_jvp(tangents[-1].id) for accumulator in accumulators] == [None] * 3


def test_an_inner_accumulator_does_not_see_what_an_outer_one_computes(
        host, new_accumulator, both_ways):
    outer, inner = new_accumulator(), new_accumulator()
    x = host.value(3)
    outer.watch(x.id, host.value(1))
    inner.watch(x.id, host.value(1))
    y = host.multiply(x, x)
    assert inner.fetch_jvp(outer.fetch_jvp(y.id).id) is None
    assert outer.fetch_jvp(inner.fetch_jvp(y.id).id).number == 2


def test_tangents_of_tangents_go_with_them(host, new_accumulator, both_ways):
    outer, inner = new_accumulator(), new_accumulator()
    x = host.value(3)
    outer.watch(x.id, host.value(1))
    inner.watch(x.id, host.value(1))
    y = host.multiply(x, x)
    tangent = inner.fetch_jvp(y.id)
    of_tangent = outer.fetch_jvp(tangent.id)
    inner.delete_gradient(y.id)
    assert (tangent.holders, of_tangent.holders) == (0, 0)
    assert outer.fetch_jvp(tangent.id) is None


def test_one_accumulator_may_look_on_while_another_watches(host, new_accumulator, both_ways):
    outer, inner = new_accumulator(), new_accumulator()
    x, y = host.value(3), host.value(5)
    outer.watch(x.id, host.value(1))
    inner.watch(y.id, host.value(1))
    z = host.multiply(x, y)
    assert (outer.fetch_jvp(z.id).number, inner.fetch_jvp(z.id).number) == (5, 3)
    assert outer.fetch_jvp(inner.fetch_jvp(z.id).id).number == 1
    assert inner.fetch_jvp(x.id) is None
