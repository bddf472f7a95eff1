"""Recorded tensors that bodies convert to numbers or arrays: errors, as in eager code."""

import math

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from cytape.tensor.recording import state
from tests import bodies
from tests.cases import each, sampled
from tests.ways import gradient

ONE = np.ones(())


def stored(t):
    array = np.zeros(1)
    array[0] = t
    return array[0]


CONVERSIONS = {
    "float": float,
    "complex": lambda t: complex(t).real,
    "int": int,
    "asarray": np.asarray,
    "array": np.array,
    "exp of math": math.exp,
    "fromiter": lambda t: np.fromiter((t for _ in range(1)), float)[0],
    "stored": stored,
    "method of an array": lambda t: np.ones(2).dot(np.asarray(t)).sum(),
}

NAMES = ["cond", "switch_case", "while_loop", "scan", "map_fn", "vmap", "recompute_grad"]
CALLED = {
    **bodies.traced("itself", *NAMES),
    **{f"eager {name}": bodies.BODIES[name] for name in (
        *NAMES[2:], "checkpoint dots", "checkpointed_scan")},
    "checkpoint_sequential": lambda f: lambda a: cytape.checkpoint_sequential([f, f], 2, a),
}
# Functions that are called with a number.
BODIES = {name: lambda f, body=body: body(f)(cytape.constant(ONE)) for name, body in CALLED.items()}


def reverse(f):
    x = cytape.constant(2.0)
    return gradient(f, x)


def forward(f):
    x = cytape.constant(2.0)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        return accumulator.jvp(f(x))


MODES = {
    "reverse": reverse,
    "forward": forward,
    "persistent": lambda f: cytape.jacrev(lambda x: f(x))(2.0),
    "forward over reverse": lambda f: cytape.jvp(cytape.grad(f), (2.0,), (1.0,))[1],
    "reverse over forward": lambda f: cytape.grad(
        lambda x: cytape.jvp(f, (x,), (1.0,))[1])(2.0),
}


@each(conversion=CONVERSIONS, body=BODIES, mode=MODES)
def test_conversions_of_captured_tensors_are_errors(mode, body, conversion):
    def f(x):
        w = x * 1.0
        return BODIES[body](lambda a: a * CONVERSIONS[conversion](w) * w)

    with pytest.raises(DetachedError, match="its gradient would be lost"):
        MODES[mode](f)


@each("body", BODIES)
def test_values_that_are_asked_for_by_name_are_constants(body):
    def f(x):
        w = x * 1.0
        return BODIES[body](lambda a: a * w.numpy() * w)

    n_factors = 2 if body == "checkpoint_sequential" else 1
    assert float(reverse(f)) == n_factors * 2.0 ** (2 * n_factors - 1)


@each("body", BODIES)
def test_a_result_that_loses_its_argument_is_an_error(body):
    with pytest.raises(DetachedError):
        cytape.grad(lambda x: BODIES[body](lambda a, w=x * 1.0: a * w.item()))(2.0)


@each(conversion=CONVERSIONS, body=BODIES)
def test_untracked_tensors_convert_freely(body, conversion):
    other = cytape.constant(2.0)

    def f(x):
        with cytape.stop_recording():
            same = CONVERSIONS[conversion](x)
        return x * BODIES[body](lambda a: a * CONVERSIONS[conversion](other)) * same

    assert float(BODIES[body](lambda a: a * CONVERSIONS[conversion](other))) > 0
    assert reverse(f) is not None


def test_a_body_that_stops_recording_converts_freely():
    def f(x):
        w = x * 1.0

        def body(a):
            with cytape.stop_recording():
                factor = cytape.cond(a > 0, lambda: a * float(w), lambda: a)
            return a * factor * w

        return cytape.function(body)(ONE)

    assert float(reverse(f)) == 2.0


# Functions of a tensor that are traced once, whose body calls another function of it.
TRACED = {
    **bodies.traced("itself", "cond", "while_loop", "scan", "vmap", "recompute_grad",
                    "checkpoint dots"),
    "nested": bodies.nested,
    "checkpoints": bodies.BODIES["function with checkpoints"],
}


def called_in_another(traced):
    """Return a function that is traced anew and calls one that has a trace."""
    return lambda a: cytape.function(lambda b: traced(b) * 1.0)(a)


def recorded(w, f):
    return gradient(lambda w: f(), w)


def pushed(w, f):
    with cytape.ForwardAccumulator(w, 1.0) as accumulator:
        return accumulator.jvp(f())


LATER = {**CONVERSIONS, "constant": lambda t: cytape.constant(t)}


@sampled(4, conversion=LATER,
         body=TRACED,
         call=[lambda traced: traced, called_in_another],
         follow=[recorded, pushed])
def test_conversions_of_an_earlier_trace_are_errors_once_they_lose_a_derivative(
    follow, call, body, conversion
):
    w = cytape.constant(2.0)
    traced = TRACED[body](lambda a: a * LATER[conversion](w) * w)
    value = float(call(traced)(ONE))
    with pytest.raises(DetachedError, match="its gradient would be lost|lose the gradient"):
        follow(w, lambda: call(traced)(ONE))
    assert float(call(traced)(ONE)) == value  # the trace is not forgotten
    other = cytape.constant(5.0)
    assert follow(other, lambda: call(traced)(ONE) * other) is not None


@each(body=TRACED, ask=[lambda t: t.numpy(), lambda t: t.item(), lambda t: t.tolist()])
@each("call", [lambda traced: traced, called_in_another])
def test_values_that_an_earlier_trace_asked_for_are_constants(call, ask, body):
    w = cytape.constant(2.0)
    traced = TRACED[body](lambda a: a * ask(w))
    call(traced)(ONE)
    recorder = state.Recorder(False, False)
    recorder.watch(w.id)
    recorder.detached = {}
    recorder.push()
    y = call(traced)(ONE)
    recorder.pop()
    assert float(y) == 2.0 and list(recorder.detached) == [w.id]
    with cytape.ForwardAccumulator(w, 1.0) as accumulator:
        y = call(traced)(ONE)
        assert not isinstance(y, cytape.Tensor) or accumulator.jvp(y) is None


def test_a_concrete_function_that_converted_a_tensor_is_an_error_once_that_is_recorded():
    w = cytape.constant(2.0)
    trace = cytape.function(lambda a: a * float(w)).get_concrete_function(ONE)
    assert float(trace(ONE)) == 2.0
    with pytest.raises(DetachedError, match="nothing recorded a tensor"):
        recorded(w, lambda: trace(ONE))
