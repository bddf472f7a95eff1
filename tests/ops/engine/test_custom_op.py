"""Calls whose rules are Python functions."""

import gc
import weakref

import numpy as np
import pytest

import cytape
from cytape.errors import InvalidGradientError
from cytape.ops.engine.custom_op import custom_call
from tests.cases import each
from tests.ways import watching

V3 = np.array([0.5, -1.0, 2.0])


def custom(x, backward, n_outputs=1, scale=2.0):
    """Record an op of our own making on whatever tapes follow x."""
    outputs = [cytape.constant(x.numpy() * scale) for _ in range(n_outputs)]
    outputs = custom_call("Custom", outputs, [x], backward)
    return outputs


@pytest.mark.filterwarnings("ignore:the gradient is None")
def test_a_closure_is_recorded_by_all_tapes_that_follow_an_input():
    x = cytape.constant(V3)
    with cytape.GradientTape() as a, cytape.GradientTape() as b, cytape.GradientTape() as c:
        a.watch(x)
        b.watch(x)
        (y,) = custom(x, lambda g: [g * 2.0])
    assert [tape.gradient(y, x) is None for tape in (a, b, c)] == [False, False, True]


def test_an_unrecorded_closure_is_released_at_once():
    class Closure:
        def __call__(self, g):
            return [g]

    closure = Closure()
    alive = weakref.ref(closure)
    x = cytape.constant(V3)
    with cytape.GradientTape():
        outputs = custom(x, closure)
    del closure
    assert alive() is None
    del outputs


@each(end=["gradient", "drop the output", "drop the tape", "error"], persistent=[False, True])
def test_a_closure_is_let_go_with_its_entry(end, persistent):
    class Closure:
        def __call__(self, g):
            if end == "error":
                raise ArithmeticError
            return [g]

    closure = Closure()
    alive = weakref.ref(closure)
    x = cytape.constant(V3)
    with cytape.GradientTape(persistent) as tape:
        tape.watch(x)
        outputs = custom(x, closure)
    del closure
    assert alive() is not None
    if end == "gradient":
        tape.gradient(outputs, x)
    elif end == "error":
        with pytest.raises(ArithmeticError):
            tape.gradient(outputs, x)
    elif end == "drop the output":
        outputs.clear()
    if persistent and end in ("gradient", "error"):
        assert alive() is not None
    if end == "drop the tape" or persistent:
        del tape
    assert alive() is None


def test_a_closure_that_refers_to_its_tape_is_found_by_the_collector():
    x = cytape.constant(V3)
    with watching(x) as tape:
        outputs = custom(x, lambda g, tape=tape: [g])
    alive = weakref.ref(tape)
    del tape
    gc.collect()
    assert alive() is None
    del outputs


def test_a_closure_gets_zeros_for_outputs_without_gradient():
    received = []

    def backward(*gradients):
        received.extend(gradients)
        return [gradients[0] * 2.0]

    x = cytape.constant(V3)
    with watching(x) as tape:
        first, _ = custom(x, backward, n_outputs=2)
    np.testing.assert_array_equal(tape.gradient(first, x).numpy(), 2 * np.ones(3))
    assert [type(g) for g in received] == 2 * [cytape.Tensor]
    np.testing.assert_array_equal(received[1].numpy(), np.zeros(3))


@each("returned", [[], [V3, V3]])
def test_a_closure_must_return_one_gradient_per_input(returned):
    x = cytape.constant(V3)
    with watching(x) as tape:
        (y,) = custom(x, lambda g: returned)
    with pytest.raises(InvalidGradientError, match=f"Custom.*expected 1, got {len(returned)}"):
        tape.gradient(y, x)


def test_a_closure_is_differentiated_again():
    x = cytape.constant(2.0)
    with watching(x) as outer:
        with watching(x) as inner:
            y = cytape.constant(8.0)
            [y] = custom_call("Cube", [y], [x], lambda g: [g * 3.0 * x * x])
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (12.0, 12.0)


def test_many_names_of_closures_do_no_harm():
    x = cytape.constant(V3)
    for i in range(20):
        with watching(x) as tape:
            y = cytape.constant(V3)
            [y] = custom_call(f"Custom{i}", [y], [x], lambda g, i=i: [g * float(i)])
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.full(3, float(i)))
