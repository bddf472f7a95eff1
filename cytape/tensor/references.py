"""Hashable references to tensors, for dict keys and sets."""

from __future__ import annotations

from typing import Any

__all__ = ["TensorReference"]


class TensorReference:
    """Reference to a tensor, equal to other references to the same one. See `Tensor.ref`.

    Tensors themselves cannot be keys, since ``==`` compares their elements.

    Parameters
    ----------
    tensor : Tensor

    Examples
    --------
    >>> import cytape
    >>> x, y = cytape.constant(1.0), cytape.constant(1.0)
    >>> x.ref() == x.ref(), x.ref() == y.ref()
    (True, False)
    """

    __slots__ = ("_tensor", "_id")

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self._id = tensor.id

    def deref(self) -> Any:
        """Return the tensor.

        Examples
        --------
        >>> import cytape
        >>> cytape.constant(1.0).ref().deref()
        Tensor(1.)
        """
        return self._tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorReference):
            return NotImplemented
        return self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<reference to {self._tensor!r}>"


def reference_to(tensor: Any) -> TensorReference:
    """Return a hashable reference, equal to all references to this tensor.

    Returns
    -------
    TensorReference

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant(1.0)
    >>> {x.ref(): "x"}[x.ref()], x.ref().deref() is x
    ('x', True)
    """
    return TensorReference(tensor)
