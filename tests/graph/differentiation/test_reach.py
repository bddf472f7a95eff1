"""Nodes between sources and targets."""

import numpy as np
import pytest

import cytape
from cytape.graph.differentiation.reach import (
    BETWEEN,
    REACHED,
    SOURCE,
    STOPPED,
    nodes_between,
    reach,
)


def between(graph, sources, targets, stops=()):
    """Return the nodes between tensors, and the names of what is wanted."""
    marks = bytearray(graph.n_symbols)
    for x in sources:
        marks[graph.symbol_of(x)] |= SOURCE | REACHED
    for x in stops:
        marks[graph.symbol_of(x)] |= STOPPED
    reach(graph, marks)
    for y in targets:
        if marks[graph.symbol_of(y)] & REACHED:
            marks[graph.symbol_of(y)] |= BETWEEN
    nodes = nodes_between(graph, marks)
    wanted = {graph.tensor_at(i).name for i, mark in enumerate(marks) if mark & BETWEEN}
    return nodes, wanted


def names(*tensors):
    return {tensor.name for tensor in tensors}


def nodes(*tensors):
    return sorted({tensor.op.node for tensor in tensors}, reverse=True)


def test_a_diamond(graph):
    x, other = cytape.constant(1.0), cytape.constant(2.0)
    a, b, unused = np.sin(x), np.cos(x), np.tanh(x)
    y = a * b
    z = y * np.exp(other)
    assert between(graph, [x], [z]) == (nodes(x, a, b, y, z), names(x, a, b, y, z))
    assert between(graph, [a], [z]) == (nodes(a, y, z), names(a, y, z))
    assert between(graph, [unused], [z]) == ([], set())
    assert between(graph, [x], [a]) == (nodes(x, a), names(x, a))
    assert between(graph, [x], [x]) == (nodes(x), names(x))


def test_stops(graph):
    x = cytape.constant(1.0)
    a = np.sin(x)
    y = a * x
    assert between(graph, [x], [y], [a]) == (nodes(x, y), names(x, y))
    assert between(graph, [x, a], [y], [a]) == (nodes(x, a, y), names(x, a, y))
    assert between(graph, [x], [a], [a]) == ([], set())


def test_integers_are_no_way(graph):
    x = cytape.constant(1.0)
    y = x.astype("int64").astype("float64")
    assert between(graph, [x], [y]) == ([], set())


def test_the_outputs_of_one_op_go_their_own_ways(graph):
    a, b = cytape.identity_n(cytape.constant(1.0), cytape.constant(2.0))
    y, z = np.sin(a), np.sin(b)
    assert between(graph, [a], [y, z]) == (nodes(a, y), names(a, y))
    assert between(graph, [a], [y, z], [a]) == (nodes(a, y), names(a, y))


def test_nodes_built_later_are_left_out(graph):
    x = cytape.constant(1.0)
    y = np.sin(x)
    marks = bytearray([SOURCE | REACHED, 0])
    z = np.cos(y)
    reach(graph, marks)
    assert marks == bytearray([SOURCE | REACHED, REACHED])
    marks[1] |= BETWEEN
    assert nodes_between(graph, marks) == nodes(x, y)
    assert z.op.node == 2


def test_marks_must_fit_the_graph(graph):
    cytape.constant(1.0)
    for sweep in (reach, nodes_between):
        with pytest.raises(ValueError, match="3 marks for a graph of 1"):
            sweep(graph, bytearray(3))
    reach(graph, bytearray())
    assert nodes_between(graph, bytearray()) == []
