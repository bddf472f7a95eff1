"""Functions applied along axes, one slice after the other."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.conform import identity_op
from cytape.ops.calls.operands import is_tensor
from cytape.ops.creation import snapshot
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.joining import stack
from cytape.ops.shaping import expand_dims, extents, moveaxis, ndim, reshape
from cytape.tensor import convert_to_tensor

__all__ = ["apply_along_axis", "apply_over_axes"]


def apply_along_axis(func1d, axis, arr, *args, **kwargs) -> Any:
    """Apply a function to the lines along an axis, as `numpy.apply_along_axis`.

    Examples
    --------
    >>> from cytape import grad
    >>> x = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> grad(lambda x: np.sum(np.apply_along_axis(lambda row: row[0] * row[1], 1, x)))(x)
    array([[2., 1.],
           [5., 3.]])
    """
    arr = convert_to_tensor(arr) if is_tensor(arr) else np.asanyarray(arr)
    axis = normalize_axis_index(axis, ndim(arr))
    lines = moveaxis(arr, axis, -1)
    lead = lines.shape[:-1]
    if None in lead:
        raise SymbolicTensorError(
            f"apply_along_axis: how many lines there are is not known, of shape {arr.shape}: give "
            "the placeholder a shape, or reshape the tensor to a known one")
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [snapshot(func1d(lines[place], *args, **kwargs)) for place in np.ndindex(lead)]
    if not is_tensor([arr, *results]):
        found = iter(results)
        return np.apply_along_axis(lambda line: next(found), axis, arr)
    whole = stack(results)
    n_axes = ndim(whole) - 1
    whole = reshape(whole, (*lead, *extents(whole)[1:]))
    # The axes of the results take the place of the lines' axis.
    here = tuple(range(len(lead), len(lead) + n_axes))
    return identity_op(moveaxis(whole, here, tuple(range(axis, axis + n_axes))))


@numpy_function(np.apply_over_axes, "a")
def apply_over_axes(func, a, axes) -> Any:
    """Apply a function over one axis after the other, as `numpy.apply_over_axes`.

    Examples
    --------
    >>> import cytape
    >>> np.apply_over_axes(np.sum, cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [0, 1]).numpy()
    array([[10.]])
    """
    value = convert_to_tensor(a)
    n_axes = ndim(a)
    for axis in np.atleast_1d(axes).tolist():
        axis = axis + n_axes if axis < 0 else axis
        result = func(value, axis)
        if ndim(result) != ndim(value):
            result = expand_dims(result, axis)
            if ndim(result) != ndim(value):
                raise ValueError(
                    "function is not returning an array of the correct shape")
        value = result
    return value
