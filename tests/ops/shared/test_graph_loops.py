"""Loops for graphs: what rooms that do not know graphs ask for."""

import cytape
import cytape.numpy as cnp
from cytape.ops.shared.graph_loops import loop_in_graph


def test_whoever_builds_graphs_has_installed_it():
    f = cytape.function(lambda x: loop_in_graph(lambda s: {"x": s["x"] * 2.0}, {"x": x}, 5, 2)["x"])
    assert float(f(cytape.constant(1.0))) == 32.0
    x = cytape.constant(3.0)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = f(cnp.sin(x))
    assert abs(float(tape.gradient(y, x)) - 32.0 * float(cnp.cos(x))) < 1e-12
