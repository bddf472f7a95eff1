"""What is said where a result does not depend on what it is differentiated with respect to."""

from __future__ import annotations

from collections.abc import Callable

from cytape.autodiff.transformed import Transformed, name_of
from cytape.errors import DetachedError, UnconnectedGradientWarning
from cytape.tensor.notices import warn

__all__ = ["report_unconnected"]


def report_unconnected(
    fun: Callable, what: str, wholly: bool, detached: bool, unsure: bool = False
) -> None:
    """Raise or warn because a function's result does not depend on what it is differentiated in.

    Parameters
    ----------
    fun : callable
    what : str
        Its arguments in question.
    wholly : bool
        Whether it depends on no part of them.
    detached : bool
        Whether a value that depends on them was taken out of a tensor.
    unsure : bool, optional
        Whether it cannot be told of some value that was.
    """
    left = "a value left its tensor by numpy(), item() or tolist()"
    advice = (
        "Compute with the tensors themselves, by cytape.numpy; where the derivative is to stop, "
        "take the value of cytape.stop_gradient(tensor)"
    )
    if wholly and detached:
        raise DetachedError(
            f"the result of {name_of(fun)} does not depend on {what}, but on the way {left}: "
            f"the derivative was lost there. {advice}"
        )
    if wholly and not isinstance(fun, Transformed):  # that of a derivative may well vanish
        warn(
            f"the result of {name_of(fun)} does not depend on {what} by differentiable functions: "
            "the derivative is zero" + (
                f", unless it was lost where {left}. {advice}" if unsure else ""),
            UnconnectedGradientWarning,
        )
    elif detached or unsure:
        warn(
            f"some derivatives of {name_of(fun)} are zero, and on the way {left}: were they lost "
            f"there? {advice}",
            UnconnectedGradientWarning,
        )
