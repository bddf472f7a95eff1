"""Calls that are computed again: what rooms that do not know graphs ask for."""

import cytape
import cytape.numpy as np
from cytape.ops.shared.graph_blocks import recomputed_in_graph, traced
from cytape.ops.shared.policy import NOTHING, Policy


def test_whoever_builds_graphs_has_installed_it():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = recomputed_in_graph(
            graph, lambda x, by: {"y": np.sin(x) * by}, (x,), {"by": 2.0}, NOTHING)["y"]
        [dx] = cytape.gradients(y, x)
    assert abs(cytape.Session(graph).run(dx, {x: 0.0}) - 2.0) < 1e-15


def test_a_function_is_traced_for_a_policy():
    calls = []
    f = traced(lambda x: calls.append(x) or np.exp(x), Policy("everything"))
    assert cytape.grad(f)(cytape.constant(0.0)) == cytape.grad(f)(cytape.constant(0.0)) == 1.0
    assert len(calls) == 1
