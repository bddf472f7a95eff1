"""Fixtures of the tests of ops."""

import pytest

import cytape


@pytest.fixture
def watched():
    """Watch a constant; the tape records until its gradient is asked for."""
    tape = cytape.GradientTape()
    with tape:
        yield lambda value: watch(tape, value)


def watch(tape, value):
    x = cytape.constant(value)
    tape.watch(x)
    return x, lambda y: tape.gradient(y, x)
