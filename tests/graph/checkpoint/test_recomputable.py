"""Ops between xs and ys that can be recomputed."""

import numpy as np

import cytape
from cytape.graph.checkpoint.recomputable import Between, dependents
from cytape.graph.differentiation.places import Places
from cytape.graph.tracing.function_graph import FunctionGraph


def test_dependents_are_found_whatever_they_are():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        apart = np.tanh(cytape.constant(1.0))
        mask = x > 0
        h = np.where(mask, apart, 2.0)
    marks = dependents(Places(graph), [(0, graph.symbol_of(x))])
    assert [bool(marks[graph.symbol_of(t)]) for t in (x, apart, mask, h)] == [
        True, False, True, True]


def test_dependents_on_what_is_captured():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        h, apart = np.tanh(x), cytape.placeholder("float64", (3,))
    inner = FunctionGraph("inner", graph)
    with inner.as_default():
        y, other = np.tanh(h), np.tanh(apart)
    marks = dependents(Places(inner), [(1, graph.symbol_of(x))])
    assert marks[inner.symbol_of(y)] and not marks[inner.symbol_of(other)]


def test_nodes_and_tensors():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        w = cytape.placeholder("float64", (3,))
        a = np.tanh(x)
        unused = np.tanh(a)
        b = a * w
        y = np.tanh(b)
    between = Between(Places(graph), [(0, graph.symbol_of(y))], [(0, graph.symbol_of(x))])
    assert between.nodes == [t.op.node for t in (a, b, y)]
    assert between.tensors() == sorted(graph.symbol_of(t) for t in (w, a, b))
    assert graph.symbol_of(unused) not in between.tensors()
