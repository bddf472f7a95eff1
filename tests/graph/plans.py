"""What the tests of plans have in common."""

import numpy as np

from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run import reference
from cytape.graph.run.plan import Plan


def symbols(graph, tensors):
    return tuple(graph.symbol_of(tensor) for tensor in tensors)


def plan_of(graph, feeds, fetches, keep=()):
    return Plan(Subgraph(graph, symbols(graph, feeds), symbols(graph, fetches), tuple(keep)))


def assert_as_reference(graph, feeds, fetches, arrays, runs=2, scale=1.0):
    """Run a plan, more than once, and compare it with the reference.

    Differences count beside numbers of a scale, that of what may cancel on the way.
    """
    expected = reference.run(
        graph, symbols(graph, fetches), dict(zip(symbols(graph, feeds), arrays, strict=True)))
    plan = plan_of(graph, feeds, fetches)
    for _ in range(runs):
        for result, array in zip(plan.run(arrays), expected, strict=True):
            assert result.shape == array.shape
            assert result.dtype == array.dtype
            exact = array.dtype.kind not in "fc"
            rtol = 0 if exact else 8 * np.finfo(array.dtype).eps
            np.testing.assert_allclose(result.numpy(), array, rtol=rtol, atol=rtol * scale)
    return plan
