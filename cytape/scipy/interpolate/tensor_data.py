"""Data of interpolators that hold tensors."""

from typing import Any

import numpy as np

import cytape.numpy as cnp
from cytape.autodiff.custom.custom_gradient import stop_gradient
from cytape.autodiff.custom.numpy_function import numpy_function
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.tensor import convert_to_tensor
from cytape.tensor.tensor import data_of
from cytape.tensor.values.spec import Spec


def tensors_of(*operands: Any) -> tuple | None:
    """Return operands as tensors of floats, None unless one of them is a tensor."""
    if not any(map(is_tensor, operands)):
        return None
    floats = []
    for operand in map(joined, operands):
        x = cnp.asarray(operand)
        floats.append(convert_to_tensor(x if x.dtype.kind == "c" else x.astype(float)))
    return together(*floats)


def plain(x: Any, increasing: bool = False) -> Any:
    """Return the value of a tensor for SciPy's checks; one of its shape in a graph."""
    x = joined(x)
    if not is_tensor(x):
        return x
    if x.graph is None:
        return data_of(x)
    if not x.spec.known:
        raise TypeError(f"the shape of data that are interpolated must be known, got {x.shape}")
    if increasing:
        return np.arange(x.size).astype(x.dtype).reshape(x.shape)
    return np.zeros(x.shape, x.dtype)


def is_symbolic(*operands: Any) -> bool:
    """Return whether the value of one of the operands is known only when a graph runs."""
    return any(is_tensor(x) and x.graph is not None for x in operands)


def looked_up(find: Any, points: Any, dtype: type) -> Any:
    """Return the numbers that a function of arrays finds for points; in a graph, in each run."""
    if not is_symbolic(points):
        return find(plain(points))
    return numpy_function(
        find, stop_gradient(points), specs=Spec.of(points.shape[:-1], dtype))


def where_valid(coefficients: Any, x: Any, condition: Any = True, repeated: bool = False) -> Any:
    """Return coefficients; in a graph NaN unless the points `x` increase and a condition holds.

    Otherwise SciPy checks the data. With `repeated`, points may be equal.
    """
    if not is_symbolic(x, condition):
        return coefficients
    steps = cnp.diff(x)
    is_valid = cnp.all(steps >= 0 if repeated else steps > 0) & condition
    return cnp.where(is_valid, coefficients, np.nan)


def coordinates(points: Any, n: int | None = None) -> Any:
    """Return points, one per row, of an array, or of a tuple of one array per dimension."""
    if isinstance(points, tuple) and len(points) == 1:
        points, = points
    if isinstance(points, tuple):
        return cnp.stack(
            cnp.broadcast_arrays(*[cnp.asarray(joined(x), float) for x in points]), -1)
    points = cnp.asarray(joined(points), float)
    return cnp.reshape(points, (-1, n or 1)) if points.ndim == 1 else points


def outside(is_out: Any, fill: Any, points: Any, values: Any) -> Any:
    """Return values, those of some points replaced.

    Where the fill value is NaN, so is the derivative in the point.
    """
    if not is_tensor(fill) and np.ndim(fill) == 0 and np.isnan(fill):
        fill = column(points * cnp.where(is_out, np.nan, 0.0), values)
    return cnp.where(column(is_out, values), fill, values)


def column(x: Any, like: Any) -> Any:
    """Return a vector with axes of length 1 added, as many axes as `like` has."""
    return cnp.reshape(x, (-1,) + (1,) * (like.ndim - 1))


def quotient(x: Any, y: Any) -> Any:
    """Divide; 0 where the divisor is 0."""
    is_zero = y == 0
    return cnp.where(is_zero, 0.0, x / cnp.where(is_zero, 1.0, y))


def to_axis(values: Any, n_query_axes: int, axis: int) -> Any:
    """Move the axes of the query points to the interpolated axis, from the front."""
    if axis == 0:
        return values
    order = list(range(values.ndim))
    front, rest = order[:n_query_axes], order[n_query_axes:]
    return cnp.transpose(values, rest[:axis] + front + rest[axis:])
