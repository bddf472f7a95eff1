"""Loops for graphs: what rooms that do not know graphs ask for."""

import cytape
import cytape.numpy as cnp
from cytape.ops.shared.graph_loops import loop_in_graph
from tests.ways import gradient


def test_whoever_builds_graphs_has_installed_it():
    f = cytape.function(lambda x: loop_in_graph(lambda s: {"x": s["x"] * 2.0}, {"x": x}, 5, 2)["x"])
    assert float(f(cytape.constant(1.0))) == 32.0
    x = cytape.constant(3.0)
    assert abs(float(gradient(lambda x: f(cnp.sin(x)), x)) - 32.0 * float(cnp.cos(x))) < 1e-12
