"""Checks of arguments that the families of ops share."""

import numpy as np

from cytape.tensor import Tensor, Variable, convert_to_tensor


def is_tensor(value):
    """Return whether `value` makes the result of an op a tensor."""
    return isinstance(value, (Tensor, Variable))


_INSTEAD = {
    "initial": "Combine the result with the initial value: by +, * or cytape.numpy.maximum",
    "mean": "Leave out the mean, which is computed",
    "out": "Use what is returned: tensors are immutable, and arrays hold no derivatives",
    "where": "Take the elements first, by x[mask], or put neutral ones in the place of the others "
    "by cytape.numpy.where(mask, x, 0)",
}


def only_numpy(function, inputs, **parameters):
    """Return those of `parameters` that are given, for NumPy to handle: tensors cannot.

    They are a TypeError if any of the inputs is a tensor.
    """
    given = {
        name: value
        for name, value in parameters.items()
        if value is not None and value is not np._NoValue
    }
    if given and any(map(is_tensor, (*inputs, *given.values()))):
        instead = ". ".join([_INSTEAD[name] for name in given if name in _INSTEAD])
        raise TypeError(
            f"{function}: {', '.join(given)} {'are' if len(given) > 1 else 'is'} not supported for "
            "tensors" + (f". {instead}" if instead else "")
        )
    return given


def tensors_if_any(values):
    """Return `values`, all of them as tensors if any of them is one."""
    if any(map(is_tensor, values)):
        return [convert_to_tensor(value) for value in values]
    return values


def axis_in_batch(axis, ndim):
    """Return which axes of a batch of tangents, of `ndim` axes, are those of one tangent.

    The batch has one more axis, the first. None stands for all axes of a tangent.
    """
    if axis is None or ndim == 1:  # NumPy lets a 0-d array have an axis 0
        return tuple(range(1, ndim))
    if isinstance(axis, tuple | list):
        return tuple(axis_in_batch(one, ndim) for one in axis)
    return axis + 1 if axis >= 0 else axis


def wide(dtype):
    """Return the dtype itself, or single precision for half: to count or sum many elements in."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def plain(value):
    """Return the data of a tensor that is a count or an index; anything else as it is."""
    return np.asarray(value) if is_tensor(value) else value
