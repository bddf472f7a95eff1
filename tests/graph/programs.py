"""Common parts of the tests of graphs."""

import cytape


def evaluate(fetches, feeds=None):
    """Run the graph that a tensor, or each of a list of tensors, belongs to."""
    first = fetches[0] if isinstance(fetches, list) else fetches
    return cytape.Session(first.graph).run(fetches, feeds)


def types_of(graph, first=0):
    """List the types of a graph's ops, from a node on."""
    return [op.type for op in graph.get_operations()[first:]]
