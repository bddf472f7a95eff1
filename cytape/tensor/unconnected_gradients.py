"""Gradients of sources that a target does not depend on: None or zeros, and warnings."""

import enum
from typing import Any

from cytape.errors import UnconnectedGradientWarning
from cytape.tensor.values.user_warnings import warn

__all__ = ["UnconnectedGradients"]


class UnconnectedGradients(enum.Enum):
    """The gradient returned for a source that the target does not depend on.

    Examples
    --------
    >>> import cytape
    >>> x, y = cytape.constant(2.0), cytape.constant([1.0, 5.0])
    >>> with cytape.GradientTape() as tape:
    ...     tape.watch([x, y])
    ...     z = x * x
    >>> tape.gradient(z, y, unconnected_gradients=cytape.UnconnectedGradients.ZERO).numpy()
    array([0., 0.])
    """

    NONE = "none"
    ZERO = "zero"


def parse_unconnected(value: str | UnconnectedGradients) -> UnconnectedGradients:
    """Return the member of a value, or raise."""
    if value is UnconnectedGradients.NONE:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"unconnected_gradients must be 'none' or 'zero', got {value!r}") from None


def warn_of_dtype(tensor: Any, what: str) -> None:
    """Warn of a tensor whose dtype has no gradients, and state the consequence."""
    warn(
        f"{what}: it has dtype {tensor.dtype}, and only floating point and complex tensors have "
        "gradients (make it of 3.0 instead of 3, or use astype)",
        UnconnectedGradientWarning,
    )
