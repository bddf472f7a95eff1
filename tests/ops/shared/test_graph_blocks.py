"""Calls that are computed again: what rooms that do not know graphs ask for."""

import cytape
import cytape.numpy as np
from cytape.ops.shared.graph_blocks import recomputed_in_graph


def test_whoever_builds_graphs_has_installed_it():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = recomputed_in_graph(graph, lambda x, by: {"y": np.sin(x) * by}, (x,), {"by": 2.0})["y"]
        [dx] = cytape.gradients(y, x)
    assert abs(cytape.Session(graph).run(dx, {x: 0.0}) - 2.0) < 1e-15
