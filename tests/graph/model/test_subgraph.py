"""Subgraph is a value."""

import pytest

from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph


def test_it_does_not_change():
    graph = Graph()
    subgraph = Subgraph(graph, (0,), (1,))
    assert subgraph == Subgraph(graph, (0,), (1,), ())
    with pytest.raises(AttributeError):
        subgraph.feeds = ()
