"""Ops recorded by hand: the interface of a host of cytape.core, with tensors."""

import gc
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core import OpType
from cytape.errors import (
    InvalidGradientError,
    InvalidIdError,
    NotDifferentiableError,
    SymbolicTensorError,
)
from tests import ways
from tests.cases import each

V3 = np.array([0.5, -1.0, 2.0])


def cube(x, name="Cube", forward=None, **options):
    """Compute x**3 unrecorded, and record it by hand."""
    with cytape.stop_recording():
        y = x * x * x
    cytape.record_operation(name, [y], [x], lambda dy: [dy * 3.0 * x * x], forward, **options)
    return y


def by_forward_function(x):
    """Do the same with a rule of its own for tangents."""
    return cube(x, forward=lambda dx: [dx * 3.0 * x * x])


MAKERS = {"constant": cytape.constant, "variable": cytape.Variable}


# ---- tapes


@each("make", MAKERS.values(), ids=MAKERS)
@each("persistent", [False, True])
def test_a_gradient(make, persistent):
    x = make(V3)
    with cytape.GradientTape(persistent) as tape:
        tape.watch(x)
        y = cube(x) * 2.0
    assert np.array_equal(tape.gradient(y, x), 6.0 * V3**2)


@pytest.mark.filterwarnings("ignore:the gradient is None")
def test_every_tape_records_that_follows_an_input_and_records_now():
    x = cytape.constant(V3)
    tapes = [cytape.GradientTape() for _ in range(4)]
    with tapes[0], tapes[1], tapes[2], tapes[3]:
        for tape in tapes[:3]:
            tape.watch(x)
        with tapes[2].stop_recording():
            y = cytape.constant(V3**3)
            assert cytape.record_operation("Cube", [y], [x], lambda dy: [dy * 3.0 * V3**2])
    found = [tape.gradient(y, x) for tape in tapes]
    assert np.array_equal(found[0], 3 * V3**2) and np.array_equal(found[1], found[0])
    assert found[2] is None and found[3] is None


def test_untracked_inputs_are_not_recorded():
    x, y = cytape.constant(V3), cytape.constant(V3)
    called = []
    assert cytape.record_operation("Op", [y], [x], called.append) is False
    with cytape.GradientTape():
        assert cytape.record_operation(
            "Op", [y], [x], backward_getter=lambda: called.append("got"),
            deleter=called.append) is False
    with cytape.GradientTape() as tape, cytape.stop_recording():
        tape.watch(x)
        assert cytape.record_operation("Op", [y], [x], called.append) is False
    assert called == []


def test_an_output_is_taken_over_from_the_op_that_made_it():
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = x * 2.0
        cytape.record_operation("Mine", [y], [x], lambda dy: [dy * 10.0])
    assert np.array_equal(tape.gradient(y, x), [10.0] * 3)


def test_several_inputs_and_outputs_in_structures():
    x, v, n = cytape.constant(V3), cytape.Variable(2.0), cytape.constant(3)
    with ways.watching(x) as tape:
        outputs = {"sum": cytape.constant(V3 * 6.0), "square": cytape.constant(V3**2)}

        def backward(of_square, of_sum):  # in the order of sorted keys
            return [of_sum * 6.0 + of_square * 2.0 * V3, None, cnp.sum(of_sum * 3.0 * V3)]

        assert cytape.record_operation("Op", outputs, {"a": x, "n": n, "v": v}, backward)
        loss = outputs["sum"] + 0.5 * outputs["square"]
    of_x, of_v, of_n = tape.gradient(loss, [x, v, n])
    assert np.array_equal(of_x, 6.0 + V3) and float(of_v) == 3.0 * V3.sum() and of_n is None


def test_zeros_stand_for_gradients_that_did_not_arrive_unless_the_op_type_takes_none():
    x = cytape.constant(V3)
    for op_type, expected in [
        ("Two", [False, False]), (OpType("Two"), [False, False]),
        (OpType("Two", optional_gradients=[1]), [False, True]),
        (OpType("Two", optional_gradients=[0]), [False, False]),
    ]:
        seen = []
        with ways.watching(x) as tape:
            y, z = cytape.constant(V3 * 2.0), cytape.constant(V3)

            def backward(dy, dz, seen=seen):
                seen.append([dy, dz])
                return [dy * 2.0]

            cytape.record_operation(op_type, [y, z], [x], backward)
        assert np.array_equal(tape.gradient(y, x), [2.0] * 3)
        ((dy, dz),) = seen
        assert [dy is None, dz is None] == expected
        assert dz is None or not np.any(dz)


def test_a_backward_function_that_no_gradient_reaches_is_not_called():
    called = []
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = cube(x)
        z = cytape.constant(V3)
        cytape.record_operation("Unused", [z], [x], called.append)
        cut = cytape.constant(V3)
        cytape.record_operation("Below", [cut], [z], lambda dy: [None])
    assert tape.gradient([cut], x) is None
    assert called == [] and y.shape == (3,)


def test_functions_in_the_place_of_gradients_are_called_if_those_are_needed():
    called = []
    x, w = cytape.constant(V3), cytape.constant(2.0)
    with cytape.GradientTape() as of_x, cytape.GradientTape() as of_both:
        of_x.watch(x)
        of_both.watch([x, w])
        y = cytape.constant(V3 * 2.0)

        def gradient_of_w():
            called.append("w")
            return np.sum(V3)

        cytape.record_operation("Scale", [y], [x, w], lambda dy: [lambda: dy * 2.0, gradient_of_w])
    assert np.array_equal(of_x.gradient(y, x), [2.0] * 3) and called == []
    assert float(of_both.gradient(y, w)) == V3.sum() and called == ["w"]


def test_valid_results_of_a_backward_function():
    for returned in [
        lambda dy: [dy * 2.0], lambda dy: (dy * 2.0,), lambda dy: dy * 2.0,
        lambda dy: dy.numpy() * 2.0, lambda dy: [np.float64([2.0, 2.0, 2.0])],
    ]:
        x = cytape.constant(V3)
        with ways.watching(x) as tape:
            y = cytape.constant(V3)
            cytape.record_operation("Op", y, x, returned)
        assert np.array_equal(tape.gradient(y, x), [2.0] * 3)


@each("returned, message", [
    ([None, None], "expected 1, got 2"), ([], "expected 1, got 0"),
    ([np.ones(2)], "has shape"),
])
def test_invalid_results_of_a_backward_function(returned, message):
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = cytape.constant(V3)
        cytape.record_operation("Op", [y], [x], lambda dy: returned)
    with pytest.raises(InvalidGradientError, match=message):
        tape.gradient(y, x)


# ---- release


class Backward:
    """A backward function that counts."""

    def __init__(self, fails=False):
        self.calls, self.fails = 0, fails

    def __call__(self, dy):
        self.calls += 1
        if self.fails:
            raise ArithmeticError
        return [dy]


@each(lazy=[False, True], n_tapes=[1, 2])
@each(end=["gradient", "unneeded", "drop the output", "drop", "error"], persistent=[False, True])
def test_a_backward_function_is_released_exactly_once(end, persistent, n_tapes, lazy):
    released = []
    x = cytape.constant(V3)
    backward = Backward(fails=end == "error")
    tapes = [cytape.GradientTape(persistent) for _ in range(n_tapes)]
    got, to_get = [], [backward]

    def getter():
        got.extend(to_get)
        return got[0]

    with tapes[0], tapes[-1] if n_tapes > 1 else cytape.GradientTape():
        for tape in tapes:
            tape.watch(x)
        outputs = [cytape.constant(V3), x * 2.0]
        how = {"backward_getter": getter} if lazy else {"backward_function": backward}
        cytape.record_operation("Op", outputs[:1], [x], deleter=released.append, **how)
    assert len(got) == lazy and released == []
    alive = weakref.ref(backward)
    del backward
    got.clear()
    to_get.clear()
    if end == "drop the output":
        outputs.clear()
    for i, tape in enumerate(tapes):
        assert len(released) == (end == "drop the output")
        if end == "error":
            with pytest.raises(ArithmeticError):
                tape.gradient(outputs[0], x)
        elif end in ("gradient", "unneeded"):
            tape.gradient(outputs[end == "unneeded"], x)
        if persistent or end == "drop":
            if end not in ("drop the output", "drop"):
                assert alive() is not None and released == []
            tape = tapes[i] = None
    assert len(released) == 1 and type(released[0]) is Backward
    assert released[0].calls == (n_tapes if end in ("gradient", "error") else 0)
    del how
    released.clear()
    gc.collect()
    assert alive() is None


def test_an_accumulator_releases_what_it_transposed():
    released = []
    x = cytape.constant(V3)
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        y = cytape.constant(V3)
        cytape.record_operation("Op", [y], [x], lambda dy: [dy * 2.0], deleter=released.append)
        assert len(released) == 1
    assert np.array_equal(accumulator.jvp(y), [2.0] * 3)


def test_a_getter_or_function_that_raises_leaves_the_tape_as_it_was():
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = cytape.constant(V3)
        with pytest.raises(ZeroDivisionError):
            cytape.record_operation("Op", [y], [x], backward_getter=lambda: 1 / 0)
        z = x * x
    assert tape.gradient([y, z], x).numpy().tolist() == (2.0 * V3).tolist()


def test_a_backward_function_that_refers_to_its_tape_is_found_by_the_collector():
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = cytape.constant(V3)
        cytape.record_operation("Op", [y], [x], lambda dy, tape=tape: [None])
    alive = weakref.ref(tape)
    del tape
    gc.collect()
    assert alive() is None and y.shape == (3,)


# ---- higher orders


FORMS = {"transposed": cube, "forward function": by_forward_function}


@each("make", MAKERS.values(), ids=MAKERS)
@each("f", FORMS.values(), ids=FORMS)
@each("orders", ["rr", "rf", "fr", "ff", "rrr", "rfr", "fff", "frf", "ffr"])
def test_higher_orders(f, orders, make):
    """Outermost first: r is a tape, f an accumulator."""
    x = make(V3)

    def derivative(orders):
        if not orders:
            return f(x)
        if orders[0] == "f":
            return ways.tangent(lambda x: derivative(orders[1:]), x, np.ones(3))
        return ways.gradient(lambda x: derivative(orders[1:]), x)

    assert np.allclose(derivative(orders), 6.0 * V3 if len(orders) == 2 else 6.0)


def test_a_persistent_tape_records_its_own_backward_pass():
    x = cytape.constant(V3)
    with ways.watching(x, persistent=True) as tape:
        y = cube(x)
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
    assert np.allclose(second, 6.0 * V3) and np.allclose(tape.gradient(second, x), 6.0)


def test_taylor_mode():
    series = cytape.jet(lambda x: cnp.sin(cube(x)), (2.0,), ((1.0, 0.0, 0.0),))
    expected = cytape.jet(lambda x: cnp.sin(x**3), (2.0,), ((1.0, 0.0, 0.0),))
    assert np.allclose(series[1], expected[1])


# ---- accumulators


def test_a_forward_function_gets_zeros_and_none_for_what_has_no_tangent():
    seen = []
    x, w, n = cytape.constant(V3), cytape.constant(2.0), cytape.constant(3)

    def forward(*tangents):
        seen.append(tangents)
        return [tangents[0] * 2.0, None]

    with cytape.ForwardAccumulator(x, V3) as accumulator:
        y, z = cytape.constant(V3), cytape.constant(V3)
        assert cytape.record_operation("Op", [y, z], [x, w, n], lambda dy, dz: 1 / 0, forward)
    ((of_x, of_w, of_n),) = seen
    assert np.array_equal(of_x, V3) and float(of_w) == 0.0 and of_n is None
    assert np.array_equal(accumulator.jvp(y), 2.0 * V3) and accumulator.jvp(z) is None


@each("f", FORMS.values(), ids=FORMS)
def test_a_batch_of_directions(f):
    x = cytape.constant(V3)
    with cytape.ForwardAccumulator(x, np.eye(3), use_batch=True) as accumulator:
        y = f(x)
    assert np.array_equal(accumulator.jvp(y), np.diag(3.0 * V3**2))


def test_every_accumulator_follows():
    x = cytape.constant(V3)
    with cytape.ForwardAccumulator(x, np.ones(3)) as a, cytape.ForwardAccumulator(x, V3) as b:
        y = by_forward_function(x)
    assert np.array_equal(a.jvp(y), 3.0 * V3**2) and np.array_equal(b.jvp(y), 3.0 * V3**3)
    assert np.array_equal(a.jvp(b.jvp(y)), 6.0 * V3**2) and b.jvp(a.jvp(y)) is None


def test_an_output_that_has_a_tangent_keeps_it():
    x = cytape.constant(V3)
    with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
        y = x * 2.0
        cytape.record_operation("Op", [y], [x], lambda dy: [dy * 7.0], lambda dx: [dx * 7.0])
    assert np.array_equal(accumulator.jvp(y), [2.0] * 3)


def test_a_forward_function_that_returns_a_wrong_number():
    x, y = cytape.constant(V3), cytape.constant(V3)
    with cytape.ForwardAccumulator(x, V3):
        with pytest.raises(InvalidGradientError, match="expected 1, got 2"):
            cytape.record_operation("Op", [y], [x], lambda dy: [dy], lambda dx: [dx, dx])


def test_a_backward_function_that_leaves_cytape_is_an_error_to_an_accumulator():
    x, y = cytape.constant(V3), cytape.constant(V3)
    with cytape.ForwardAccumulator(x, V3) as accumulator:
        cytape.record_operation("Op", [y], [x], lambda dy: [None])
    assert accumulator.jvp(y) is None


# ---- errors


@each("outputs, inputs, message", [
    ([V3], [cytape.constant(V3)], "output 0 of record_operation must be a tensor, got ndarray"),
    ([cytape.Variable(V3)], [cytape.constant(V3)], "output 0 .* a tensor, got Variable"),
    ([cytape.constant(V3)], [cytape.constant(V3), 1.0], "input 1 .* a variable, got float"),
])
def test_arguments_that_are_not_tensors(outputs, inputs, message):
    with pytest.raises(TypeError, match=message):
        cytape.record_operation("Op", outputs, inputs, lambda dy: [dy])


def test_one_backward_function_is_wanted():
    x, y = cytape.constant(V3), cytape.constant(V3)
    with pytest.raises(TypeError, match="got neither"):
        cytape.record_operation("Op", [y], [x])
    with pytest.raises(TypeError, match="not both"):
        cytape.record_operation("Op", [y], [x], len, backward_getter=len)


def test_outputs_are_tensors_of_their_own():
    x, y, v = cytape.constant(V3), cytape.constant(V3), cytape.Variable(V3)
    for outputs, inputs in [([x], [x]), ([y, y], [x]), ([v.value()], [v]), ([y, x], [v, x])]:
        with pytest.raises(InvalidIdError, match="listed twice or is an input"):
            cytape.record_operation("Op", outputs, inputs, lambda *dys: dys)


def test_in_graphs_and_traces_it_is_an_error_that_says_what_to_do():
    with pytest.raises(SymbolicTensorError, match="'Cube' cannot be recorded by hand.*custom_grad"):
        cytape.function(cube)(cytape.constant(V3))
    with cytape.Graph().as_default():
        x = cytape.placeholder(np.float64, (3,))
        with pytest.raises(SymbolicTensorError, match="custom_gradient"):
            cube(x, OpType("Cube"))
    with pytest.raises(SymbolicTensorError, match="custom_gradient"):
        cube(x)  # outside, too
    with pytest.raises(SymbolicTensorError, match="custom_gradient"):  # made up inside of it
        cytape.function(lambda: cube(cytape.constant(V3)))()


def test_between_traced_functions():
    double = cytape.function(lambda x: 2.0 * x)
    for f in FORMS.values():
        x = cytape.constant(V3)
        with cytape.ForwardAccumulator(x, np.ones(3)) as accumulator:
            tape, y = ways.taped(lambda x, f=f: double(f(double(x))), x)
            first = tape.gradient(y, x)
        assert np.allclose(first, 48.0 * V3**2) and np.allclose(accumulator.jvp(y), first)
        assert np.allclose(accumulator.jvp(first), 96.0 * V3)


def test_a_gradient_that_is_asked_for_in_a_trace():
    x = cytape.constant(V3)
    tape, y = ways.taped(cube, x, persistent=True)
    in_trace = cytape.function(lambda dy: tape.gradient(y, x, dy))
    assert np.allclose(in_trace(cytape.constant(V3)), 3.0 * V3**3)


def test_disconnected_is_told_from_not_differentiable():
    x = cytape.constant(V3)
    with ways.watching(x) as tape:
        y = cytape.constant(V3)

        def backward(dy):
            raise NotDifferentiableError("no derivative here")

        cytape.record_operation("Op", [y], [x], backward)
    with pytest.raises(NotDifferentiableError, match="no derivative here"):
        tape.gradient(y, x)
