"""Look-up of names that only NumPy's modules have, for cytape's modules of the same names."""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from cytape.tensor.tensor import Tensor

__all__ = ["ndarray", "numpys"]


def numpys(module: ModuleType, name: str) -> Any:
    """Return NumPy's own object; an error names the module here."""
    try:
        return getattr(module, name)
    except AttributeError as error:
        ours = f"cytape.{module.__name__}"
        message = str(error).replace(f"module '{module.__name__}'", f"module '{ours}'", 1)
        raise AttributeError(message, name=name, obj=sys.modules[ours]) from None


class _Arrays(type):
    def __instancecheck__(cls, x: Any) -> bool:
        if cls is ndarray:
            return isinstance(x, (np.ndarray, Tensor))
        return super().__instancecheck__(x)

    def __subclasscheck__(cls, other: type) -> bool:
        if cls is ndarray:
            return issubclass(other, (np.ndarray, Tensor))
        return super().__subclasscheck__(other)


class ndarray(np.ndarray, metaclass=_Arrays):  # noqa: N801
    """NumPy's type of arrays; tensors are instances of it, too.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> isinstance(cytape.constant([1.0]), np.ndarray), isinstance(np.arange(2), np.ndarray)
    (True, True)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an array of NumPy's own type."""
        return np.ndarray.__new__(np.ndarray if cls is ndarray else cls, *args, **kwargs)
