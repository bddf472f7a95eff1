"""Dependences in a graph, through bodies of loops and branches."""

import cytape
import cytape.numpy as cnp
from cytape.graph.model.body_flow import Flow
from cytape.numpy import random
from tests.cases import each


def nested(depth, x):
    """Return a loop in a loop, so deep, that draws where the loops are innermost."""
    if not depth:
        return x * random.poisson(x)
    return cytape.while_loop(
        lambda i, _: i < 1, lambda i, x: (i + 1, nested(depth - 1, x)), (0, x))[1]


def test_bodies_are_gone_through_once_each_however_deep():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = nested(8, x)
    x, y = map(graph.symbol_of, (x, y))
    flow = Flow()
    assert y in flow.reached(graph, frozenset([x]))
    assert x in flow.needed(graph, frozenset([y]))
    assert len(flow._known) <= 4 * 9


@each("op, reached", [
    (lambda x: x * 2.0, True), (cnp.floor, False), (cytape.stop_gradient, False),
    (lambda x: cytape.cond(x > 0, lambda: x * random.poisson(1.0), lambda: x), True),
    (lambda x: cytape.cond(x > 0, lambda: random.poisson(1.0) * 1.0, lambda: cnp.floor(x)), False)])
def test_values_are_reached_by_ops_that_have_a_derivative(op, reached):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = op(x)
    x, y = map(graph.symbol_of, (x, y))
    assert (y in Flow().reached(graph, frozenset([x]))) == reached
    assert x in Flow().needed(graph, frozenset([y]))
