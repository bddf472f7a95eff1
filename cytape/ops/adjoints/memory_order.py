"""Memory layouts of NumPy's results, for functions with an `order` parameter.

Tensors other than views, and shapes that are unknown before a run, count as C-contiguous.
"""

import numpy as np

from cytape.tensor.tensor import layout

__all__ = ["axes_in_memory", "is_contiguous", "order_in_memory", "with_memory"]


def with_memory(tensor):
    """Return an array with the strides of NumPy's array, and any content."""
    array = layout(tensor)
    if array is not None:
        return array
    return np.empty([2 if n is None else n for n in tensor.shape or ()], tensor.dtype)


def is_contiguous(tensor, order):
    """Return whether NumPy's array would be contiguous in the order "C" or "F"."""
    if order == "C" and layout(tensor) is None:
        return True
    flags = with_memory(tensor).flags
    return flags.c_contiguous if order == "C" else flags.f_contiguous


def order_in_memory(tensor, order):
    """Return the meaning of order "A": "F" if the array is contiguous only in that, else "C"."""
    if order != "A":
        return order
    array = layout(tensor)
    return "F" if array is not None and array.flags.fnc else "C"


def axes_in_memory(tensor, order):
    """Return the axes in the order of NumPy's iteration; None if it is that of the array."""
    array = layout(tensor) if order in ("A", "K") else None
    if order == "F" or order == "A" and array is not None and array.flags.fnc:
        axes = tuple(range(tensor.ndim))[::-1]
    elif order == "K" and array is not None:
        axes = tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    else:
        return None
    return None if axes == tuple(range(tensor.ndim)) else axes
