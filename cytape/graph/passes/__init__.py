"""Optimisation passes: functions from a subgraph to a subgraph that is cheaper to run."""

from cytape.graph.passes.accumulation import accumulated
from cytape.graph.passes.composites import decomposed
from cytape.graph.passes.early_sums import with_sums_early
from cytape.graph.passes.fusion import fused
from cytape.graph.passes.histories import with_histories_merged
from cytape.graph.passes.simplify import simplified, with_known_specs

__all__ = ["optimise"]

PASSES = (
    with_histories_merged, simplified, decomposed, with_sums_early, accumulated, fused)
left_out: set[object] = set()  # passes that tests disable


def optimise(subgraph, specs=None):
    """Return an equivalent subgraph that is cheaper to run.

    Parameters
    ----------
    subgraph : Subgraph
    specs : sequence of Spec, optional
        Of what is fed, where more is known than the graph says.

    Returns
    -------
    Subgraph
        Feeds, fetches and kept nodes are in the order they were in.

    Raises
    ------
    ValueError
        If an op cannot be applied to what is fed.
    """
    for apply in PASSES:
        if apply is simplified and specs is not None:
            subgraph = with_known_specs(subgraph, specs)
        if apply not in left_out:
            subgraph = apply(subgraph)
    return subgraph
