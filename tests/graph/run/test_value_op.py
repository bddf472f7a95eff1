"""Ops that plans run with values."""

import numpy as np

from cytape.graph.model.graph import Graph
from cytape.graph.run.value_op import ValueOp
from tests.cases import each
from tests.graph.plans import plan_of


class Same(ValueOp):
    def run_values(self, values, attrs):
        return values


@each("n", [3, 1000])
def test_ops_that_run_with_values(n):
    op = Same("DeclaredSame", lambda *arrays: arrays, shape_rule=lambda *specs: specs)
    graph = Graph()
    x, y = graph.placeholder("float64", (n,)), graph.placeholder("float64", (None,))
    a, b, c = op(x, np.sin(x)[::-1], y)
    plan = plan_of(graph, [x, y], [a, b, c, a + b, a])
    fed, other = np.arange(float(n)), np.arange(4.0)
    results = plan.run([fed, other])
    kept = fed.copy()
    fed[:] = other[:] = -1
    plan.run([fed, other])
    for result, expected in zip(
            results, [kept, np.sin(kept)[::-1], np.arange(4.0), kept + np.sin(kept)[::-1], kept],
            strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)
