"""Functions of NumPy that write to their first argument, as assignments if it is a tensor."""

from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.calls.operands import operand
from cytape.ops.choosing.insertion import resize
from cytape.ops.cumulative import cumsum
from cytape.ops.elementwise import where as select
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.indexing import take
from cytape.ops.ordering import unravel_index
from cytape.ops.shaping import ravel, reshape, shape, size
from cytape.ops.updates.in_place import replaced
from cytape.ops.updates.part_updates import accumulate_into
from cytape.tensor import Variable, convert_to_tensor

__all__ = ["at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]

_NAMES = {
    np.add: "add", np.subtract: "subtract", np.multiply: "multiply", np.divide: "divide",
    np.power: "power", np.minimum: "min", np.maximum: "max",
}  # fmt: skip


def at(op, x, indices, *values):
    """Apply a ufunc to elements of a tensor, one after the other, as `numpy.ufunc.at`."""
    ufunc = op.forward
    if len(values) != ufunc.nin - 1:
        ufunc.at(np.zeros(1), [0], *values)  # raises NumPy's error
    if ufunc in _NAMES:
        result = getattr(x.at[indices], _NAMES[ufunc])(*values)
    else:
        tensor = convert_to_tensor(x)
        values = [value if _is_weak(value) else convert_to_tensor(value) for value in values]
        dtypes = [type(value) if _is_weak(value) else value.dtype for value in values]
        _require_castable(
            ufunc.resolve_dtypes((tensor.dtype, *dtypes, None))[-1], tensor.dtype, "same_kind")
        result = accumulate_into(
            tensor, indices, *(values or [0]), op if values else lambda part, _: op(part),
            None, None)
    if isinstance(x, Variable):
        x[...] = result
    else:
        replaced(x, result, op)


@numpy_function(np.copyto)
def copyto(dst, src, casting="same_kind", where=True) -> Any:
    """Write values to an array, as `numpy.copyto`, or `x[...] = values` if it is a tensor.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> x = np.zeros(3)
    >>> np.copyto(x, 2.0, where=[True, False, True])
    >>> x
    array([2., 0., 2.])
    """
    src = src if _is_weak(src) else operand(src)
    dtype = np.result_type(src, dst.dtype) if _is_weak(src) else src.dtype
    _require_castable(dtype, dst.dtype, casting)
    dst[...] = src if where is True else select(where, src, dst)


@numpy_function(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False) -> Any:
    """Write to the diagonal of an array, as `numpy.fill_diagonal`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> np.fill_diagonal(x, 0.0)
    >>> x.numpy()
    array([[0., 2.],
           [3., 0.]])
    """
    is_diagonal = np.zeros(_known_shape(a, "fill_diagonal"), bool)
    np.fill_diagonal(is_diagonal, True, wrap)
    index = is_diagonal.nonzero()
    a[index] = _as_many(val, len(index[0]))


@numpy_function(np.place)
def place(arr, mask, vals) -> Any:
    """Write values one by one where a mask is true, as `numpy.place`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([1.0, 2.0, 3.0])
    >>> np.place(x, x > 1, [7.0, 8.0])
    >>> x
    Tensor([1., 7., 8.])
    """
    mask, vals = _mask(arr, mask, "place"), ravel(operand(vals))
    _known_shape(vals, "place")
    if not vals.size:
        np.place(np.zeros(1), [True], [])  # raises NumPy's error
    values = take(vals, (cumsum(ravel(mask)) - 1) % vals.size)
    arr[...] = select(mask, reshape(values, arr.shape), arr)


@numpy_function(np.put)
def put(a, ind, v, mode="raise") -> Any:
    """Write values at positions in the flattened array, as `numpy.put`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> np.put(x, [0, -1], 0.0)
    >>> x.numpy()
    array([[0., 2.],
           [3., 0.]])
    """
    extents = _known_shape(a, "put")
    positions = ravel(take(np.arange(a.size), ind, mode=mode))
    if size(v):
        a[unravel_index(positions, extents)] = _as_many(v, *_known_shape(positions, "put"))


@numpy_function(np.put_along_axis)
def put_along_axis(arr, indices, values, axis) -> Any:
    """Write one element for each index, to the line along `axis` at the index's place.

    See `numpy.put_along_axis`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [4.0, 3.0]])
    >>> np.put_along_axis(x, np.argmax(x, 1, keepdims=True), 0.0, axis=1)
    >>> x.numpy()
    array([[1., 0.],
           [0., 3.]])
    """
    extents, indices = _known_shape(arr, "put_along_axis"), operand(indices)
    outline = np.broadcast_to(np.zeros(()), extents)
    others = np.broadcast_to(np.zeros((), indices.dtype), [n or 0 for n in shape(indices)])
    np.take_along_axis(outline, others, axis)  # raises NumPy's error
    if axis is None:
        arr[unravel_index(take(np.arange(arr.size), indices), extents)] = values
        return None
    index = list(np.ogrid[tuple([slice(n) for n in extents])])
    index[axis] = indices
    arr[tuple(index)] = values


@numpy_function(np.putmask)
def putmask(a, mask, values) -> Any:
    """Write values to the elements where a mask is true, as `numpy.putmask`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([1.0, 2.0, 3.0])
    >>> np.putmask(x, x > 1, x**2)
    >>> x
    Tensor([1., 4., 9.])
    """
    mask = _mask(a, mask, "putmask")
    if size(values):
        a[...] = select(mask, reshape(_as_many(values, a.size), a.shape), a)


def _is_weak(x):
    return type(x) in (bool, int, float, complex)


def _require_castable(dtype, target, casting):
    if not np.can_cast(dtype, target, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype!r} to {target!r} according to the rule "
            f"{casting!r}: convert the tensor by astype first")


def _known_shape(x, function):
    if x.shape is None or None in x.shape:
        raise SymbolicTensorError(
            f"{function} has to know the shape of the tensor {x!r} while a graph is built: give "
            "the placeholder or the signature of the function its extents, or write x[index] = "
            "values")
    return x.shape


def _mask(x, mask, function):
    """Return a mask as booleans, reshaped to the shape of a tensor."""
    extents, mask = _known_shape(x, function), operand(mask)
    if size(mask) != x.size:
        raise ValueError(f"{function}: mask and data must be the same size")
    return reshape(mask, extents) != 0


def _as_many(values, n):
    """Return as many values as are written, repeated or truncated; a number stays one."""
    return resize(operand(values), (n,))
