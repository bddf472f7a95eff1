"""NumPy's floating point warnings, issued for ops that ran without NumPy."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from cytape.ops.calls.dispatch import Lowering

__all__ = ["say"]

_KINDS = (
    (1, "divide", "divide by zero"),
    (2, "over", "overflow"),
    (4, "under", "underflow"),
    (8, "invalid", "invalid value"),
)


def say(op: Any, found: int, errors: dict[str, str]) -> None:
    """Warn or raise, by NumPy's settings.

    Parameters
    ----------
    op : Op
    found : int
        What it met, as NumPy numbers it for `numpy.seterrcall`.
    errors : dict
        What `numpy.geterr` returned.

    Raises
    ------
    FloatingPointError
        Where that is what NumPy is set up to do.
    """
    callback: Any = np.geterrcall()
    for number, kind, name in _KINDS:
        how = errors[kind]
        if not found & number or how == "ignore":
            continue
        message = f"{name} encountered in {_name_in_numpy(op)}"
        if how == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        elif how == "raise":
            raise FloatingPointError(message)
        elif how == "call":
            callback(name, number)
        else:
            stream = sys.stderr if how == "print" else callback
            stream.write(f"Warning: {message}\n")


def _name_in_numpy(op: Any) -> str:
    if isinstance(op.forward, np.ufunc):
        return op.forward.__name__
    return "cast" if op.lowering == Lowering.CONVERTED else "reduce"
