"""Common parts of the tests of plans."""

import numpy as np

from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run import interpreter
from cytape.graph.run.plan import Plan


def symbols(graph, tensors):
    return tuple(graph.symbol_of(tensor) for tensor in tensors)


def plan_of(graph, feeds, fetches, keep=()):
    return Plan(Subgraph(graph, symbols(graph, feeds), symbols(graph, fetches), tuple(keep)))


def nudged(x):
    """Return an array of the next numbers above, if it is one of real numbers."""
    x = np.asarray(x)
    return np.nextafter(x, x.dtype.type(np.inf)) if x.dtype.kind == "f" else x


def spread(x, rounded):
    """Return how far another rounding of the operands has moved a result."""
    with np.errstate(invalid="ignore"):
        moved = np.abs(rounded - x)
    return float(np.max(moved, initial=0.0, where=np.isfinite(moved)))


def assert_as_reference(graph, feeds, fetches, arrays, runs=2, scale=1.0, any_condition=False):
    """Run a plan, more than once, and compare it with the reference.

    Differences count beside numbers of a scale, that of what may cancel on the way. Of programs of
    any condition, what another rounding of the arrays changes is allowed.
    """
    def by_reference(arrays):
        return interpreter.run(
            graph, symbols(graph, fetches), dict(zip(symbols(graph, feeds), arrays, strict=True)))

    expected = by_reference(arrays)
    rounded = by_reference([nudged(x) for x in arrays]) if any_condition else expected
    plan = plan_of(graph, feeds, fetches)
    for _ in range(runs):
        for result, array, other in zip(plan.run(arrays), expected, rounded, strict=True):
            assert result.shape == array.shape
            assert result.dtype == array.dtype
            exact = array.dtype.kind not in "fc"
            rtol = 0 if exact else 8 * np.finfo(array.dtype).eps
            allowed = 8 * spread(array, other) if any_condition and not exact else 0.0
            np.testing.assert_allclose(
                result.numpy(), array, rtol=rtol, atol=rtol * scale + allowed)
    return plan
