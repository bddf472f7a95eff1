"""Bodies: what a room above installs is what is made."""

import numpy as np

import cytape
from cytape.graph.model import bodies
from cytape.graph.model.bodies import body_type, install_bodies, new_body, new_body_graph
from cytape.graph.tracing.function_graph import FunctionGraph


def test_traces_are_installed():
    assert body_type() is cytape.ConcreteFunction
    graph = new_body_graph("square")
    assert type(graph) is FunctionGraph and graph.outer_graph is None
    x = graph.placeholder("float64", (2,))
    y = x * x
    body = new_body(graph, [graph.symbol_of(x)], [graph.symbol_of(y), graph.symbol_of(x)])
    assert type(body) is cytape.ConcreteFunction and body.is_closed
    assert (body.name, graph.finalized) == ("square", True)
    np.testing.assert_array_equal(body.run([np.array([1.0, 2.0])]), [[1.0, 4.0], [1.0, 2.0]])


def test_others_can_be(monkeypatch):
    monkeypatch.setattr(bodies, "_types", [])
    install_bodies(tuple, FunctionGraph)
    install_bodies(list, FunctionGraph)
    assert body_type() is list
