"""The line of a draw is found in the bytecode."""

import numpy as np

import cytape
from cytape.graph.tracing.lines_of_draws import place_of_draw

rng = np.random.default_rng(0)


def first(x):
    return x + 1.0


def by_name(x):
    y = x + 1.0
    return y * rng.normal()


def from_argument(x, given):
    y = x + 1.0
    return y * given[0].normal()


def in_a_closure(own):
    def draw(x):
        return x * own.normal()

    return draw


def place(generator, *functions):
    file, line, registry, _ = place_of_draw([(f, ()) for f in functions], generator)
    assert file == __file__ and registry is globals()["__warningregistry__"]
    return line


def line_of(function):
    return function.__code__.co_firstlineno


def test_the_line_is_that_where_the_generator_is_asked():
    assert place(rng, first, by_name) == line_of(by_name) + 2
    own = np.random.default_rng(0)
    draw = in_a_closure(own)
    assert place(own, first, draw) == line_of(draw) + 1


def test_known_types_of_arguments_count():
    own = np.random.default_rng(0)
    holder = type("Holder", (), {"own": own})()
    named = lambda x: x.own.normal()  # noqa: E731
    _, line, _, _ = place_of_draw([(from_argument, ()), (named, (holder,))], own)
    assert line == line_of(named)


def test_a_likely_line_is_better_than_none_and_the_first_function_than_nothing():
    own = np.random.default_rng(0)
    assert place(own, first, from_argument) == line_of(from_argument) + 2
    assert place(own, first) == line_of(first)


def test_functions_of_the_package_are_not_where_users_draw():
    assert place(rng, cytape.grad, by_name) == line_of(by_name) + 2
    assert place_of_draw([(cytape.grad, ())], rng) == ("<unknown>", 0, {}, False)


def test_where_a_generator_is_seeded_comes_after_where_it_draws():
    own = np.random.RandomState(0)
    seeds = lambda x: own.seed(3)  # noqa: E731
    draws = in_a_closure(own)
    _, line, _, is_seeding = place_of_draw([(first, ()), (seeds, ())], own)
    assert (line, is_seeding) == (line_of(seeds), True)
    _, line, _, is_seeding = place_of_draw([(seeds, ()), (draws, ())], own)
    assert (line, is_seeding) == (line_of(draws) + 1, False)
