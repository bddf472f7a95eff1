"""Recorders that are asked, in a function, branch or body that is traced, what they cannot know."""

import re

import numpy as np
import pytest

import cytape
from cytape.errors import TapeStateError
from tests import ways
from tests.cases import each

BODIES = {
    "branch": lambda f, x: cytape.cond(x > 0, lambda: f(x), lambda: x),
    "loop": lambda f, x: cytape.while_loop(
        lambda i, _: i < 2, lambda i, z: (i + 1, f(z)), (0, x))[1],
    "scan": lambda f, x: cytape.foldl(lambda z, _: f(z), np.zeros(2), x),
    "function": lambda f, x: cytape.function(f)(x),
    "vmap": lambda f, x: cytape.vmap(f)(x * np.ones(2)),
}  # fmt: skip
UNKNOWN = {
    "gradient": lambda tape, y, x, z: tape.gradient(y * z, x),
    "gradient of what is unconnected": lambda tape, y, x, z: tape.gradient(
        y * z, x, unconnected_gradients="zero"),
    "gradients": lambda tape, y, x, z: tape.gradient([y, y * z], [x])[0],
    "jacobian": lambda tape, y, x, z: tape.jacobian(y * z, x),
    "watch": lambda tape, y, x, z: tape.watch(y * z) or z,
}


@each("body", BODIES.values(), ids=BODIES)
@each("ask", UNKNOWN.values(), ids=UNKNOWN)
def test_a_tape_from_outside_is_not_asked_for_what_it_does_not_see(body, ask):
    def f(x):
        with ways.watching(x, persistent=True) as tape:
            y = x * x * x
            return body(lambda z: ask(tape, y, x, z), x)

    with pytest.raises(TapeStateError, match=re.escape("a tape that was entered outside of the")):
        cytape.function(f)(np.array(2.0))


@each("body", BODIES.values(), ids=BODIES)
@each("ask", [
    lambda accumulator, x, z: accumulator.jvp(x * z),
    lambda accumulator, x, z: accumulator.jvp(x * z, unconnected_gradients="zero"),
    lambda accumulator, x, z: accumulator.watch(x * z, x * 1.0) or z,
])
def test_nor_is_an_accumulator(body, ask):
    def f(x):
        with cytape.ForwardAccumulator(x, np.array(1.0)) as accumulator:
            return body(lambda z: ask(accumulator, x, z), x)

    with pytest.raises(TapeStateError, match="an accumulator that was entered outside of the"):
        cytape.function(f)(np.array(2.0))


@each("body", BODIES.values(), ids=BODIES)
def test_recorders_outside_know_earlier_tensors(body):
    def f(x):
        with ways.watching(x, persistent=True) as tape:
            y = x * x * x
            slope = body(lambda z: tape.gradient(y, x), x)
        with cytape.ForwardAccumulator(x, np.array(1.0)) as accumulator:
            y = x * x * x
            return slope, body(lambda z: accumulator.jvp(y), x)

    for slope in cytape.function(f)(np.array(2.0)):
        np.testing.assert_array_equal(slope, np.full(np.shape(slope), 12.0))


@each("body", BODIES.values(), ids=BODIES)
def test_those_that_are_entered_inside_see_it(body):
    def inside(x, z):
        with cytape.GradientTape() as tape, cytape.ForwardAccumulator(x, np.array(1.0)) as outer:
            tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x) + outer.jvp(y) + 0 * z

    def f(x):
        around, result = ways.taped(lambda x: np.sum(body(lambda z: inside(x, z), x)), x)
        return result, around.gradient(result, x)

    result, slope = cytape.function(f)(np.array(2.0))
    n = 2 if body is BODIES["vmap"] else 1
    assert (float(result), float(slope)) == (24.0 * n, 24.0 * n)


def test_ops_after_a_tape_was_left_have_no_gradient():
    @cytape.function
    def f(x):
        tape, y = ways.taped(lambda x: x * x, x, persistent=True)
        return cytape.cond(
            x > 0, lambda: tape.gradient(y * y, x, unconnected_gradients="zero"), lambda: x)

    assert float(f(np.array(2.0))) == 0.0
