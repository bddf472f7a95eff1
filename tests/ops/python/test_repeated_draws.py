"""Replayed streams of random numbers."""

import random

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.nn import dropout
from cytape.numpy.random import normal as drawn_normally
from cytape.ops.python.repeated_draws import Streams, continuing, moved, repeating, restorer
from tests.cases import each

own = np.random.default_rng(1)
legacy = np.random.RandomState(2)  # noqa: NPY002
python = random.Random(3)
DRAWS = {
    "default": lambda: float(cnp.random.normal()),
    "a name of its own": lambda: float(drawn_normally()),
    "dropout": lambda: float(np.sum(dropout(np.arange(30.0), rate=0.5))),
    "generator": lambda: own.normal(), "legacy": lambda: legacy.normal(),
    "numpy": lambda: np.random.normal(),  # noqa: NPY002
    "python-own": lambda: python.gauss(0, 1), "python": lambda: random.random(),
}


@each("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_numbers_and_then_on(draw):
    draw()
    streams = Streams(draw)
    states = streams.states()
    first = [draw() for _ in range(3)]
    used = moved(states)
    assert len(used) == 1
    beyond = restorer(used[0][0])
    expected = draw()
    beyond()
    with repeating(used):
        assert [draw() for _ in range(3)] == first
    assert draw() == expected


def test_streams_that_did_not_move_are_left_alone():
    streams = Streams(DRAWS["generator"])
    assert moved(streams.states()) == []


def test_the_modules_generators_are_for_functions_that_name_them():
    rng = np.random.default_rng(0)
    assert len(Streams(lambda: rng.normal()).generators) == 2
    assert len(Streams(DRAWS["numpy"]).generators) >= 2


def test_streams_go_on_after_an_error():
    expected = restorer(own)
    first = own.normal()
    expected()
    with pytest.raises(KeyError), continuing([own]):
        own.normal()
        raise KeyError
    assert own.normal() == first


def test_the_systems_generator_has_no_state():
    restorer(random.SystemRandom())()


def traced_draw():
    draw = cytape.function(lambda: cnp.random.normal(seed=4))
    draw()
    return draw


def test_streams_of_traces_are_found_when_they_are_drawn_from():
    draw = traced_draw()
    streams, others = Streams(draw), Streams(draw)
    with streams.finding():
        first = float(draw())
        with others.finding():
            second = float(draw())
    assert len(streams.of_graphs) == len(others.of_graphs) == 1
    third = float(draw())
    with repeating(streams.of_graphs):
        assert [float(draw()), float(draw())] == [first, second]
    with repeating(others.of_graphs):
        assert float(draw()) == second
    assert float(draw()) not in (first, second, third)
    with Streams(draw).finding():
        raised = pytest.raises(KeyError)
        with raised, streams.finding():
            raise KeyError
    draw()
    assert len(streams.of_graphs) == 1


def test_who_watches_a_repetition_finds_streams_as_they_were_before_it():
    draw = traced_draw()
    streams, around = Streams(draw), Streams(draw)
    with streams.finding():
        first = float(draw())
    with around.finding(), repeating(streams.of_graphs):
        assert float(draw()) == first
    second = float(draw())
    with repeating(around.of_graphs):
        assert float(draw()) == second


def test_saved_streams_that_are_found_later_begin_anew():
    draw = traced_draw()
    streams = Streams(draw)
    begin = streams.saved()
    with streams.finding():
        first = float(draw())
    go_on = streams.saved()
    second = float(draw())
    begin()
    assert [float(draw()), float(draw())] == [first, second]
    go_on()
    assert float(draw()) == second


def test_an_unrecorded_trace_draws_from_numpys_generator():
    draw = cytape.function(lambda: cnp.random.normal()).get_concrete_function()
    streams = Streams(np.sum)  # which does not name it
    assert np.random.mtrand._rand not in streams.generators
    with streams.finding():
        first = float(draw())
    [(found, _)] = streams.of_graphs
    assert found is np.random.mtrand._rand
    around = Streams(np.sum)
    with around.finding(), repeating(streams.of_graphs):
        assert float(draw()) == first
    second = float(draw())
    with repeating(around.of_graphs):
        assert float(draw()) == second
