"""Taylor mode through rules of users, eager and in everything that is traced."""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import sampled
from tests.ways import run_in_graph

X = np.array([0.3, 1.2])


@cytape.custom_jvp
def once(x):
    return cnp.sin(x)


@once.defjvp
def _(primals, tangents):
    return once(*primals), cnp.cos(primals[0]) * tangents[0]


@cytape.custom_jvp
def sine(x):
    return cnp.sin(x)


@sine.defjvp
def _(primals, tangents):
    return sine(*primals), cosine(*primals) * tangents[0]


@cytape.custom_jvp
def cosine(x):
    return cnp.cos(x)


@cosine.defjvp
def _(primals, tangents):
    return cosine(*primals), -sine(*primals) * tangents[0]


@cytape.custom_jvp
def pair(x, y):
    return x * cnp.sin(y), x + y


@pair.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return pair(x, y), (dx * cnp.sin(y) + x * cnp.cos(y) * dy, dx + dy)


@cytape.custom_gradient
def by_gradient(x):
    return cnp.sin(x), lambda dy: dy * cnp.cos(x)


FUNCTIONS = {
    "custom_jvp": (once, cnp.sin),
    "custom_jvp of others": (sine, cnp.sin),
    "custom_jvp of two": (lambda x: pair(x, 2.0 * x)[0], lambda x: x * cnp.sin(2.0 * x)),
    "custom_gradient": (by_gradient, cnp.sin),
    "elementwise": (cytape.elementwise(np.sin, cnp.cos), cnp.sin),
}


def jet_of(f):
    """Return a function of x to the value of f and its derivatives along a curve."""
    series = [np.ones(2), np.full(2, 0.5), np.array([0.2, -1.0])]

    def called(x):
        value, derivatives = cytape.jet(f, x, series)
        return [value, *derivatives]
    return called


WAYS = {
    "eager": lambda f: jet_of(f)(X),
    "in a function": lambda f: cytape.function(jet_of(f))(X),
    "of a function": lambda f: jet_of(cytape.function(f))(X),
    "of a function in a function": lambda f: cytape.function(jet_of(cytape.function(f)))(X),
    "loop": lambda f: cytape.function(jet_of(lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, x: (i + 1, f(x)), (0, x))[1]))(X),
    "branch": lambda f: cytape.function(jet_of(lambda x: cytape.cond(
        cnp.sum(x) > 0, lambda: f(x), lambda: x)))(X),
    "recompute_grad": lambda f: cytape.function(jet_of(cytape.recompute_grad(f)))(X),
    "vmap": lambda f: jet_of(cytape.vmap(f))(X),
    "vmap in a function": lambda f: cytape.function(jet_of(cytape.vmap(f)))(X),
    "graph": lambda f: run_in_graph(jet_of(f), X),
}


@sampled(4, way=WAYS, function=FUNCTIONS)
def test_derivatives_to_third_order(function, way):
    f, plain = FUNCTIONS[function]
    for found, wanted in zip(WAYS[way](f), jet_of(plain)(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_derivatives_do_not_go_through_what_is_stopped():
    def f(x):
        return x * cytape.stop_gradient(cnp.exp(x)) + cnp.floor(x)

    for found in jet_of(f)(X)[1:], cytape.function(jet_of(f))(X)[1:]:
        for derivative, direction in zip(found, [np.ones(2), 0.5, [0.2, -1.0]], strict=True):
            np.testing.assert_allclose(derivative, np.exp(X) * direction)
