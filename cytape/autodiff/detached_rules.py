"""Calls of users' rules that raise an error for a lost derivative instead of returning zero.

A rule may compute with plain arrays. Its results are right then, but recorders cannot track how
they depend on tensors. `call_rule` makes such results raise for each unknown derivative.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from cytape.core.vspace import VSpace
from cytape.ops.adjoints.conform import stand_in
from cytape.ops.adjoints.missing_derivatives import without_derivative
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import (
    Origins,
    TangentRecorder,
    anybody_records,
    current_graph,
    departures,
)
from cytape.tensor.tensor import Tensor, data_of
from cytape.tensor.variable import followed_as

__all__ = ["Trail", "call_rule", "content_of", "require_an_end"]

MOST_NESTED = 22  # derivatives of equal calls, each within another: a rule uses its own derivative
FRAMES = 5 * MOST_NESTED  # of Python, which so many derivatives have at least
_callers: set[CodeType] = set()  # of `require_an_end`


class Trail:
    """Ids and specs of tensors, which recorders may track after the values are released."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._known = [(x.id, x.spec) for x in tensors]

    def tensors(self) -> list[Tensor]:
        """Return zeros that the recorders of the original tensors track instead."""
        return [followed_as(id, stand_in(spec)) for id, spec in self._known]


def call_rule(
    what: str,
    rule: Callable[[], Sequence[Any]],
    seeds: Sequence[Any],
    primals: Callable[[], Sequence[Tensor]],
    reads_arrays: bool = False,
) -> list:
    """Call a user's rule; its results raise for each derivative that was lost.

    Parameters
    ----------
    what : str
        Name of the rule in messages.
    rule : callable
        Takes no arguments, and returns tensors, arrays, slices or None.
    seeds : sequence of Tensor or None
        The results are linear in them.
    primals : callable
        Returns the tensors that the results may depend on besides.
    reads_arrays : bool, optional
        Whether the rule reads arrays that were computed from the primals.

    Returns
    -------
    list
    """
    if current_graph() is None and not anybody_records():
        return list(rule())
    moving = [seed for seed in seeds if seed is not None and seed.spec.trainable]
    origins = Origins(moving)
    with TangentRecorder(VSpace(), reads=origins), departures(moving) as left:
        results = list(rule())
    lost = list(primals()) if left.any or reads_arrays else []

    def refusing(result: Any) -> Tensor:
        tensor = convert_to_tensor(result)
        if not origins.follows(tensor.id) and (
                tensor.graph is not None or np.any(data_of(tensor))):
            tensor = without_derivative(tensor, moving, _constant(what), [tensor])
        return without_derivative(tensor, lost, _detached(what), moving)

    return [
        result if result is None or callable(result)
        else IndexedSlices(refusing(result.values), result.indices, result.dense_shape)
        if isinstance(result, IndexedSlices)
        else refusing(result) for result in results]


def content_of(x: Tensor) -> tuple:
    """Return what equal tensors have alike; of a symbolic one only its spec is known."""
    return x.spec, x.graph is None and data_of(x).tobytes()


def require_an_end(what: str, described: Callable[[], Any]) -> None:
    """Raise if the derivative of a call needs the derivative of an equal call, and so on.

    Functions that compute such derivatives call it first.

    Parameters
    ----------
    what : str
        Name of the rule in the message.
    described : callable
        Returns a description of the call, which equals that of equal calls. The caller has it under
        this name.
    """
    try:
        sys._getframe(FRAMES)
    except ValueError:  # the stack is not as deep
        return
    frame: FrameType | None = sys._getframe(1)
    _callers.add(sys._getframe(1).f_code)
    description, equal = described(), 0
    while frame is not None:
        if frame.f_code in _callers:
            equal += frame.f_locals["described"]() == description
        frame = frame.f_back
    if equal > MOST_NESTED:
        raise RecursionError(
            f"{what} needs its own derivative, because it differentiates its function or applies "
            "it to a tangent: compute by other functions, such as a second function with the same "
            "body and no rule")


def _detached(what: str) -> str:
    return (
        f"the derivative of {what} is not known: it computes with arrays or numbers that left "
        "their tensors. Have it compute with the arguments, which are tensors, by cytape.numpy (a "
        "comparison of tensors is a mask); or make the function by cytape.elementwise or "
        "cytape.custom_jvp")


def _constant(what: str) -> str:
    return (
        f"{what} is not linear in its argument: its result does not depend on the argument, or is "
        "computed with values that left their tensors. Have it multiply its argument by the "
        "derivative")
