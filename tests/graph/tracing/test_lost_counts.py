"""Counts drawn in a trace: a derivative leaves out how they depend on a parameter, and says so."""

import inspect
import warnings

import numpy as np
import pytest

import cytape
from cytape.errors import UnconnectedGradientWarning
from cytape.numpy import random
from tests.cases import each


def poisson(lam):
    return lam * random.poisson(lam)


def binomial(p):
    return p * random.binomial(5, p)


def stopped(lam):
    return lam * random.poisson(cytape.stop_gradient(lam))


def unused(lam):
    random.poisson(lam)
    return lam * random.poisson(3.0)


def in_graph(f):
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", ())
        cytape.gradients(f(x), x)


WAYS = {
    "gradient": lambda f: cytape.grad(cytape.function(f))(0.5),
    "tangent": lambda f: cytape.jvp(cytape.function(f), (0.5,), (1.0,)),
    "graph": in_graph,
}


def line_of(f):
    return inspect.getsourcelines(f)[1] + 1


@each("way", WAYS)
@each("f, name, parameter", [(poisson, "poisson", "lam"), (binomial, "binomial", "p")])
def test_the_line_and_the_function_are_named(way, f, name, parameter):
    with pytest.warns(UnconnectedGradientWarning) as caught:
        WAYS[way](f)
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, line_of(f))
    assert f"random.{name}, called in {__file__}, line {line_of(f)}, has no derivative in " in str(
        warning.message)
    assert f"cytape.stop_gradient({parameter})" in str(warning.message)


@each(way=WAYS, f=[stopped, unused])
def test_nothing_is_said_where_nothing_is_lost(way, f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WAYS[way](f)


def test_it_is_said_once_for_each_line():
    def drawn_here(lam):
        return lam * random.poisson(lam)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            cytape.grad(cytape.function(drawn_here))(0.5)
    assert len(caught) == 1


# -- in bodies -------------------------------------------------------------------------------------


def in_a_branch(lam):
    return cytape.cond(lam > 0, lambda: lam * random.poisson(lam), lambda: lam)


def in_a_case(lam):
    return cytape.case([(lam > 3, lambda: lam)], default=lambda: lam * random.poisson(lam))


def in_a_loop(lam):
    return cytape.while_loop(lambda i, s: i < 3, lambda i, s: (
        i + 1, s + lam * random.poisson(lam)), (0, 0.0))[1]


def of_a_loop_variable_later_on(lam):
    def body(i, x, y):
        drawn = random.poisson(y)
        return i + 1, x * drawn, x  # in the second iteration y depends on lam

    return cytape.while_loop(lambda i, *_: i < 3, body, (0, lam, 1.0))[1]


def in_a_scan(lam):
    def step(total, x):
        return total + x * random.poisson(x)

    return cytape.scan(step, lam * np.ones(3), np.array(0.0))[-1]


def in_a_map(lam):
    return np.sum(cytape.map_fn(lambda x: x * random.poisson(x), lam * np.ones(3)))


def in_a_loop_in_a_branch_in_a_loop(lam):
    def body(i, x):
        return i + 1, cytape.cond(x > 0, lambda: cytape.while_loop(lambda y: y < 3, lambda y: [
            1 + y * random.poisson(y)], [x])[0], lambda: x)

    return cytape.while_loop(lambda i, x: i < 2, body, (0, lam))[1]


IN_BODIES = [in_a_branch, in_a_case, in_a_loop, of_a_loop_variable_later_on, in_a_scan, in_a_map,
             in_a_loop_in_a_branch_in_a_loop]


@each(way=WAYS, f=IN_BODIES)
def test_draws_in_bodies_are_named_too(way, f):
    lines, first = inspect.getsourcelines(f)
    drawn = first + next(i for i, line in enumerate(lines) if "random.poisson" in line)
    with pytest.warns(UnconnectedGradientWarning) as caught:
        WAYS[way](f)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, drawn)]


def stopped_in_a_loop(lam):
    return cytape.while_loop(
        lambda i, x: i < 3,
        lambda i, x: (i + 1, x * random.poisson(cytape.stop_gradient(x))), (0, lam))[1]


def of_the_counter(lam):
    return cytape.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * random.poisson(i + 1.0)), (0, lam))[1]


def unused_in_a_loop(lam):
    def body(i, x, drawn):
        return i + 1, x * 2, drawn + random.poisson(lam)

    return cytape.while_loop(lambda i, *_: i < 3, body, (0, lam, 0))[1]


def unused_in_a_branch(lam):
    return lam + 0 * cytape.cond(
        lam > 0, lambda: (random.poisson(3.0) * lam, random.poisson(lam)), lambda: (lam, 0))[0]


@each(way=WAYS, f=[stopped_in_a_loop, of_the_counter, unused_in_a_loop, unused_in_a_branch])
def test_nothing_is_said_of_bodies_where_nothing_is_lost(way, f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WAYS[way](f)
