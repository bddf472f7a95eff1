"""What stands for the gradient of something that does not matter."""

import enum

__all__ = ["UnconnectedGradients"]


class UnconnectedGradients(enum.Enum):
    """What stands for the gradient of a source that the target does not depend on.

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
    """Return the member that a value stands for, or raise."""
    if value is UnconnectedGradients.NONE:
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(f"unconnected_gradients must be 'none' or 'zero', got {value!r}") from None
