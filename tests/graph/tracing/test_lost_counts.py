"""Counts drawn in a trace: a derivative leaves out how they depend on a parameter, and says so."""

import inspect
import warnings

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


@each("way", WAYS)
@each("f", [stopped, unused])
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
