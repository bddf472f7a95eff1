"""Functions of many captured tensors and variables: what they cost grows with their number."""

import time

import pytest

import cytape
from tests import ways
from tests.tables import table


def calls_of_captured(make, n):
    captured = [make(float(i)) for i in range(n)]
    f = cytape.function(lambda x: [x * each for each in captured])

    def call():
        x = cytape.constant(2.0)
        f.cache_clear()
        tape, ys = ways.taped(lambda captured: f(x), captured)
        found = tape.gradient(ys, captured)
        assert float(found[-1]) == 2.0 and float(ys[-1]) == 2.0 * (n - 1)

    return call


def fetches_of_captured(make, n):
    captured = [make(float(i)) for i in range(n)]

    def call():
        with cytape.Graph().as_default() as graph:
            ys = [2.0 * each for each in captured]
            gradients = cytape.gradients(ys, captured) if make is cytape.Variable else []
        found = cytape.Session(graph).run([ys, gradients])
        assert found[0][-1] == 2.0 * (n - 1)

    return call


@pytest.mark.parametrize("make", table([cytape.Variable], [cytape.constant]))
@pytest.mark.parametrize("program", [calls_of_captured, fetches_of_captured])
def test_the_time_is_in_proportion_to_their_number(program, make):
    def seconds(call):
        start = time.process_time()
        call()
        return time.process_time() - start

    few, many = program(make, 1_250), program(make, 10_000)
    limit = 24 * min(seconds(few) for _ in range(3))
    # Eight times as many take eight times as long, where a quadratic part would soon take 64.
    assert any(seconds(many) < limit for _ in range(3))
