"""Gradients that keep some intermediates and recompute the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.graph.checkpoint.recomputation import Recomputation
from cytape.graph.differentiation.graph_gradients import differentiated
from cytape.graph.differentiation.places import Place, Places


def rewrite(
    ys: Any, xs: Any, grad_ys: Any, checkpoints: Iterable[int], **kwargs: Any
) -> list[Any]:
    """Add ops to a graph that compute gradients from kept tensors.

    Parameters
    ----------
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    checkpoints : iterable of int
        The symbols to keep, in the graph that the gradients are added to.
    **kwargs
        As `cytape.gradients` takes them.

    Returns
    -------
    list of Tensor, IndexedSlices, structure or None
    """

    def stand_ins(places: Places, targets: list[Place], sources: list[Place]) -> Recomputation:
        return Recomputation(places, targets, sources, checkpoints)

    return differentiated(ys, xs, grad_ys, stand_ins=stand_ins, **kwargs)
