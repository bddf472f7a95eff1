"""Forward accumulators: states of calls, errors in ops, and ownership of tangents."""

import gc
import sys
import weakref

import pytest

from cytape.errors import NotDifferentiableError, TapeStateError
from tests.core.accumulating import InjectedError, Value, accumulate, double, number_of


@pytest.mark.parametrize("depth", [1, 2])
def test_a_pushed_state_is_a_fresh_one(host, watched, both_ways, depth):
    accumulator, x = watched()

    def in_between():
        for _ in range(depth):
            accumulator.push_state()
        states.append(accumulator.busy_accumulating)
        states.append(accumulator.should_record([x.id], ["float64"]))
        tangents.append(accumulator.fetch_jvp(host.multiply(x, x).id).number)
        for _ in range(depth):
            accumulator.pop_state()
        states.append(accumulator.busy_accumulating)
        states.append(accumulator.should_record([x.id], ["float64"]))

    def backward(dy):
        in_between()
        return [host.scale(7, dy)]

    def forward(dx):
        in_between()
        return [host.scale(7, dx)]

    states, tangents = [], []
    y, = host.run("Op", [21], [x], backward, forward)
    assert (states, tangents) == ([False, True, True, False], [12])
    assert accumulator.fetch_jvp(y.id).number == 14


def test_a_pushed_state_keeps_ops_from_the_tape(host, watched):
    accumulator, x = watched()

    def backward(dy):
        accumulator.push_state()
        unseen = host.scale(5, dy)
        accumulator.pop_state()
        return [host.add(unseen, host.scale(7, dy))]

    y, = host.run("Op", [0], [x], backward)
    assert accumulator.fetch_jvp(y.id).number == 14


def test_the_last_state_stays(accumulator):
    for _ in range(2):
        with pytest.raises(TapeStateError):
            accumulator.pop_state()
        accumulator.push_state()
        accumulator.watch(1, 5)
        accumulator.pop_state()
    assert accumulate(accumulator, [1], [2], double)


def test_an_op_leaves_the_state_it_found(host, watched, both_ways):
    """Whatever its function left behind."""
    accumulator, x = watched()

    def careless(dy):
        accumulator.push_state()
        accumulator.push_state()
        return [host.value(7)]

    host.run("Op", [0], [x], careless, careless)
    assert not accumulator.busy_accumulating
    assert accumulator.should_record([x.id], ["float64"])
    with pytest.raises(TapeStateError):
        accumulator.pop_state()


@pytest.mark.parametrize("returned", [[], [1, 2], [None] * 3, (1, None, 2), [None, 2, 3, 4]])
def test_a_wrong_number_of_tangents_is_an_error(accumulator, numbers, returned):
    accumulator.watch(1, 5)
    n_outputs = 1 if len(returned) > 1 else 2
    with pytest.raises(TapeStateError, match=f"'Op'.* expected {n_outputs}.* {len(returned)}$"):
        accumulate(accumulator, [1], [2, 3][:n_outputs], lambda *_: returned)
    assert [tangent for tangent in numbers.deleted if tangent != 5] == [
        tangent for tangent in returned if tangent is not None]
    assert [accumulator.fetch_jvp(id) for id in (1, 2, 3)] == [5, None, None]
    assert accumulate(accumulator, [1], [2], double)


@pytest.mark.parametrize("returned", [0, 1, 3])
def test_a_wrong_number_of_gradients_is_an_error(host, watched, returned):
    accumulator, x = watched()
    y, z = host.value(4), host.value(0)
    deleted = []
    with pytest.raises(TapeStateError, match=f"'Op'.* expected 2, received {returned}$"):
        accumulator.accumulate("Op", [x, y], [z], [x.id, y.id], ["float64"] * 2, None,
                               lambda: lambda dz: [None] * returned, deleted.append)
    assert len(deleted) == 1
    assert (accumulator.fetch_jvp(z.id), accumulator.busy_accumulating) == (None, False)


@pytest.mark.parametrize("returned", [None, 7])
def test_tangents_come_in_a_sequence(accumulator, returned):
    accumulator.watch(1, 5)
    with pytest.raises(TypeError):
        accumulate(accumulator, [1], [2], lambda *_: returned)
    assert (accumulator.fetch_jvp(2), accumulator.busy_accumulating) == (None, False)


@pytest.mark.parametrize("error_type", [InjectedError, KeyboardInterrupt, MemoryError])
def test_an_error_comes_out_unchanged(host, watched, both_ways, error_type):
    accumulator, x = watched()
    w = host.value(5)
    error = error_type("text")

    def fail(*tangents):
        host.multiply(*tangents, *tangents) if len(tangents) == 1 else host.add(*tangents)
        raise error

    before = host.held()
    with pytest.raises(error_type) as caught:
        host.run("Op", [0], [x, w], fail, fail)
    assert caught.value is error
    error.__traceback__ = None
    del caught
    assert sorted(host.held()) == sorted([*before, 0])  # the output is the program's
    assert not accumulator.busy_accumulating
    y = host.multiply(x, w)
    assert accumulator.fetch_jvp(y.id).number == 10


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "transposed"])
@pytest.mark.parametrize("method, nth", [
    ("zeros_like", 1), ("zeros_like", 2), ("ones_like", 1), ("ones_like", 2),
    ("aggregate_gradients", 1), ("getter", 1), ("getter", 2), ("forward", 1),
    ("call_backward_function", 1), ("call_backward_function", 2), ("tensor_id", 1),
    ("tensor_id", 2), ("tensor_id", 3), ("tensor_id", 4), ("tensor_id", 5),
    ("info_from_gradient", 1)])
def test_nothing_is_left_after_an_error(host, watched, forward, method, nth):
    host.forward = forward
    accumulator, x = watched()
    v, w = host.value(5), host.value(7)

    def op():
        return host.run(
            "Op", [1, 2], [x, v, w],
            lambda dy, dz: [dy, host.add(host.scale(2, dy), host.scale(3, dz)), dz],
            lambda dx, dv, dw: [host.add(dx, host.scale(2, dv)), host.add(dv, dw)])

    host.failing, host.countdown = method, nth
    before = host.held()
    try:
        op()
    except InjectedError:
        reached = True
    else:
        reached = False
    assert reached == (host.countdown == 0)
    assert host.backwards == 0
    if reached:
        # The two outputs are the program's.
        assert sorted(host.held()) == sorted([*before, 1, 2])
    host.failing = None
    assert not accumulator.busy_accumulating
    assert [number_of(accumulator.fetch_jvp(y.id)) for y in op()] == [2, 0]


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "transposed"])
def test_all_those_errors_are_met(host, watched, forward):
    """So the test above tests something."""
    test = test_nothing_is_left_after_an_error
    marks = [mark for mark in test.pytestmark if mark.args[0] == "method, nth"]
    host.forward = forward
    accumulator, x = watched()
    v, w = host.value(5), host.value(7)
    host.run("Op", [1, 2], [x, v, w],
             lambda dy, dz: [dy, host.add(host.scale(2, dy), host.scale(3, dz)), dz],
             lambda dx, dv, dw: [host.add(dx, host.scale(2, dv)), host.add(dv, dw)])
    entered = {entry[0] for entry in host.log}
    wanted = {method for mark in marks for method, _ in mark.args[1]}
    if forward:
        assert entered == {"forward", "zeros_like"}
    else:
        assert entered == wanted - {"forward"}


def test_an_error_in_a_sum_of_tangents_leaves_what_was_there(host, new_accumulator):
    accumulator = new_accumulator()
    x, tangents = host.value(3), [host.value(2), host.value(4)]
    accumulator.watch(x.id, tangents[0])
    host.failing, host.countdown = "aggregate_gradients", 1
    with pytest.raises(InjectedError):
        accumulator.watch(x.id, tangents[1])
    assert accumulator.fetch_jvp(x.id) is tangents[0]
    assert [tangent.holders for tangent in tangents] == [2, 1]
    accumulator.watch(x.id, tangents[1])
    assert accumulator.fetch_jvp(x.id).number == 6


def test_outputs_need_an_id(host, watched, both_ways):
    accumulator, x = watched()
    y = host.value(4)
    before = host.held()
    functions = [None, lambda: lambda *dys: [None]]
    if host.forward:
        functions = [lambda dx, use_batch: [Value(host, 7), Value(host, 8)]]
    with pytest.raises(AttributeError):
        accumulator.accumulate("Op", [x], [y, object()], [x.id], ["float64"], *functions)
    assert not accumulator.busy_accumulating
    if accumulator.fetch_jvp(y.id) is None:
        assert host.held() == before


def test_an_op_met_in_a_backward_function_needs_one_too(host, watched):
    accumulator, x = watched()

    def backward(dy):
        y = host.value(dy.number)
        accumulator.accumulate("Opaque", [dy], [y], [dy.id], ["float64"], lambda *_: [])
        return [y]

    with pytest.raises(NotDifferentiableError, match="'Opaque'"):
        host.run("Op", [0], [x], backward)
    assert (host.backwards, accumulator.busy_accumulating) == (0, False)


def test_a_failing_deleter_is_reported_and_stops_nothing(host, watched, unraisable):
    accumulator, x = watched()
    y = host.value(0)

    def deleter(_):
        raise InjectedError

    accumulator.accumulate("Op", [x], [y], [x.id], ["float64"], None,
                           lambda: lambda dy: [host.scale(5, dy)], deleter)
    assert accumulator.fetch_jvp(y.id).number == 10
    assert list(map(type, unraisable)) == [InjectedError]
    unraisable.clear()  # their frames hold the accumulator


def test_a_tangent_may_be_deleted_while_it_is_in_use(host, new_accumulator, both_ways):
    accumulator = new_accumulator()
    x, y = host.value(3), host.value(4)
    accumulator.watch(x.id, Value(host, 2))
    accumulator.fetch_jvp(x.id).drop()  # the accumulator alone holds it
    accumulator.watch(y.id, host.value(1))
    tangent = accumulator.fetch_jvp(x.id)

    def forward(dx, dy):
        accumulator.delete_gradient(x.id)
        accumulator.watch(y.id, host.value(1))
        assert dx.holders
        return [host.add(dx, dy)]

    def backward(dz):
        accumulator.delete_gradient(x.id)
        accumulator.watch(y.id, host.value(1))
        return [dz, dz]

    z, = host.run("Op", [0], [x, y], backward, forward)
    assert accumulator.fetch_jvp(z.id).number == 3
    assert (accumulator.fetch_jvp(x.id), tangent.holders) == (None, 0)
    assert accumulator.fetch_jvp(y.id).number == 2


def test_a_dead_accumulator_releases_its_tangents_once(forward_accumulator, host):
    accumulator = forward_accumulator(host)
    host.accumulators.append(accumulator)
    tangents = [host.value(10 + i) for i in range(5)]
    primals = [host.value(i) for i in range(5)]
    for x, tangent in zip(primals, tangents, strict=True):
        accumulator.watch(x.id, tangent)
    y = host.multiply(primals[0], primals[1])
    of_y = accumulator.fetch_jvp(y.id)
    accumulator.delete_gradient(primals[4].id)
    host.accumulators.clear()
    assert [tangent.holders for tangent in tangents] == [2, 2, 2, 2, 1]
    del accumulator
    assert [tangent.holders for tangent in [*tangents, of_y]] == [1] * 5 + [0]


def test_an_accumulator_in_a_cycle_with_its_host_is_collected(forward_accumulator, numbers_type):
    class Tangent:
        pass

    vspace, tangent = numbers_type(), Tangent()
    deleted = vspace.deleted = []
    vspace.delete_gradient = lambda gradient: deleted.append(1)
    vspace.mark_as_result = lambda gradient: None
    accumulator = forward_accumulator(vspace)
    accumulator.watch(1, tangent)
    accumulator.watch(2, tangent)
    vspace.accumulator = accumulator
    gone = weakref.ref(tangent)
    del accumulator, vspace, tangent
    gc.collect()
    assert deleted == [1, 1]
    assert gone() is None


def test_nothing_is_left_after_many_accumulators(core, forward_accumulator, numbers_type):
    numbers = numbers_type()
    numbers.mark_as_result = numbers.delete_gradient = lambda gradient: None
    numbers.zeros_like = lambda info: 0
    numbers.tensor_id = lambda gradient: 10 ** 9
    numbers.info_from_gradient = lambda gradient: 10 ** 9
    tangent, info = 10 ** 10, 10 ** 9  # ints of their own
    dtypes = ["float64"] * 2

    def use_accumulators(count):
        for number in range(count):
            accumulator = forward_accumulator(numbers)
            accumulator.watch(info, tangent)
            for i in range(8):
                functions = [lambda tangents, use_batch: tangents[:1], None, None]
                if i % 2:
                    functions = [None, lambda: lambda dy: [dy, None], lambda _: None]
                accumulator.accumulate(
                    "Op", [info + i, 1], [info + i + 1], [info + i, 1], dtypes, *functions)
            assert accumulator.fetch_jvp(info + 8) == tangent
            if number % 3 == 0:
                accumulator.delete_gradient(info + 3)
            elif number % 3 == 1:
                with pytest.raises(TapeStateError):
                    accumulate(accumulator, [info], [7], lambda *_: [])
            numbers.calls.clear()
            numbers.unneeded.clear()
            numbers.output_gradients.clear()

    use_accumulators(100)
    gc.collect()
    references = [sys.getrefcount(thing) for thing in (numbers, tangent, info)]
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    use_accumulators(1000)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (numbers, tangent, info)] == references
    assert len(gc.get_objects()) <= objects
    assert sys.getallocatedblocks() < blocks + 100
