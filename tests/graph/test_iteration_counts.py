"""Loops of no, one and several iterations inside of other loops, extents known and unknown."""

import itertools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import grouped

X = np.array([0.5, -0.4, 0.8])
V = np.array([0.3, 1.0, -0.6])


def counted(**options):
    return lambda step, count, rows: lambda y, a: cytape.while_loop(
        lambda i, _: i < count(a), lambda i, y: (i + 1, step(y, a)), (0, y), **options)[1]


def while_small(step, count, rows):
    return lambda y, a: cytape.while_loop(
        lambda i, y: (i < count(a)) & (cnp.sum(y) < 50.0), lambda i, y: (i + 1, step(y, a)),
        (0, y))[1]


def growing(step, count, rows):
    def called(y, a):
        _, z = cytape.while_loop(
            lambda i, _: i < count(a), lambda i, z: (i + 1, cnp.concatenate([z, step(y, a)[:1]])),
            (0, y), shape_invariants=((), (None,)))
        return y * cnp.sum(z)
    return called


# From a step, how often it is taken and as many elements to a function of two vectors.
INNER = {
    "while_loop": counted(),
    "checkpoints": counted(checkpoints=1),
    "while small": while_small,
    "growing": growing,
    "foldl": lambda step, count, rows: lambda y, a: cytape.foldl(
        lambda y, e: step(y, a * e), rows(a), y),
    "scan": lambda step, count, rows: lambda y, a: y + cnp.sum(
        cytape.scan(lambda y, e: step(y, a * e), rows(a), y), axis=0),
    "map_fn": lambda step, count, rows: lambda y, a: y + cnp.sum(
        cytape.map_fn(lambda e: step(y * e, a), rows(a)), axis=0),
}
OUTER = {
    "map_fn": lambda f: lambda a: cytape.map_fn(lambda e: f(cnp.sin(a) * e, a), a),
    "map_fn of sums": lambda f: lambda a: cytape.map_fn(lambda e: cnp.sum(f(a * e, a) * V), a),
    "foldl": lambda f: lambda a: cytape.foldl(lambda y, e: f(y * e, a), a, a),
    "vmap": lambda f: lambda a: cytape.vmap(lambda e: f(cnp.sin(a) * e, a))(a),
    "call": lambda f: lambda a: f(cnp.sin(a), a),
}
STEPS = {
    "tanh": lambda y, a: cnp.tanh(y * a),
    "square": lambda y, a: y * y + a,
    "mask": lambda y, a: 0.1 * y * cnp.sum(y[y > 0.0]) + a,
    "indices": lambda y, a: y[cnp.argsort(y)] * a,
}


def turned(f):
    return lambda a: cnp.sum(cytape.grad(f)(a) * V)


MODES = {
    "gradient": cytape.grad,
    "forward over reverse": lambda f: lambda a: cytape.jvp(cytape.grad(f), (a,), (V,))[1],
    "reverse over reverse": lambda f: cytape.grad(turned(f)),
    "reverse over forward": lambda f: cytape.grad(lambda a: cytape.jvp(f, (a,), (V,))[1]),
    "third order": lambda f: cytape.grad(turned(turned(f))),
}


def cases():
    numbers = itertools.count()
    for outer, inner, step, n in itertools.product(OUTER, INNER, STEPS, (0, 1, 2)):
        yield f"{outer} of {inner}", f"{step}, {n}", (outer, inner, step, n), (
            next(numbers) % 83 > 0)


@pytest.mark.filterwarnings("ignore::cytape.errors.UnconnectedGradientWarning")
@grouped("outer, inner, step, n", cases())
def test_derivatives_are_those_of_eager_loops(outer, inner, step, n):
    def program(count):
        called = INNER[inner](STEPS[step], count, lambda a: a[:n] * 1.0)
        return lambda a: cnp.sum(OUTER[outer](called)(a) * V)

    eager = program(lambda a: n)
    unknown = program(lambda a: cnp.sum(a > -1e9) - 3 + n)
    signature = [cytape.Spec.of((None,), float)]
    of_unknown = cytape.function(unknown, input_signature=signature)
    for name, mode in MODES.items():
        wanted = mode(eager)(X)
        inside = cytape.function(mode(unknown), input_signature=signature)
        for found in mode(of_unknown)(X), inside(X), inside(X), cytape.function(mode(eager))(X):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10, err_msg=name)
