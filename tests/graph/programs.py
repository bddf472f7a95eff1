"""Common parts of the tests of graphs."""

import numpy as np

import cytape
from cytape.graph.run import interpreter


def evaluate(fetches, feeds=None):
    """Run the graph that a tensor, or each of a list of tensors, belongs to."""
    first = fetches[0] if isinstance(fetches, list) else fetches
    return cytape.Session(first.graph).run(fetches, feeds)


def new_graph(shape=(), **options):
    """Return a graph and a placeholder of it, of dtype float64."""
    graph = cytape.Graph()
    return graph, graph.placeholder("float64", shape, **options)


def types_of(graph, first=0):
    """List the types of a graph's ops, from a node on."""
    return [op.type for op in graph.get_operations()[first:]]


def run(fetches, feeds):
    """Run twice in a session, the second time an optimised plan, and compare with the interpreter.
    """
    graph = next(iter(feeds)).graph
    session = cytape.Session(graph)
    first = session.run(fetches, feeds)
    np.testing.assert_equal(session.run(fetches, feeds), first)
    symbols = [graph.symbol_of(x) for x in fetches]
    told = {graph.symbol_of(x): np.asarray(value) for x, value in feeds.items()}
    for found, expected in zip(first, interpreter.run(graph, symbols, told), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    return first


def scalar(dtype="float64"):
    """Make a placeholder for a number."""
    return cytape.placeholder(dtype, ())


def values(tensors):
    """Return tensors as floats, and None where there is none."""
    return [None if x is None else float(x) for x in tensors]
