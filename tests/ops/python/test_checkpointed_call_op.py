"""Calls in graphs that are computed again."""

import cytape
import cytape.numpy as np
from cytape.graph.checkpoint.recomputed_calls import called_by_a_trace, recomputed_in_graph
from cytape.ops.python.checkpoint_policy import NOTHING, Policy


def test_a_call_in_a_graph_is_computed_again():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = recomputed_in_graph(
            graph, lambda x, by: {"y": np.sin(x) * by}, (x,), {"by": 2.0}, NOTHING)["y"]
        [dx] = cytape.gradients(y, x)
    assert abs(cytape.Session(graph).run(dx, {x: 0.0}) - 2.0) < 1e-15


def test_a_call_is_traced_for_a_policy():
    calls = []

    def f(x, by):
        calls.append(x.graph is not None)
        return np.exp(x) * by

    called = cytape.grad(lambda x: called_by_a_trace(f, (x,), {"by": 2.0}, Policy("everything")))
    assert called(cytape.constant(0.0)) == called(cytape.constant(0.0)) == 2.0
    assert calls == [True, True]
