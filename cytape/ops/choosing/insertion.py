"""Insertion and deletion of elements, `resize`, `trim_zeros`, and arrays of blocks."""

import itertools
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.conform import identity_op
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import is_tensor, operand, plain
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import structural
from cytape.ops.indexing import getitem
from cytape.ops.joining import concatenate, split_op
from cytape.ops.rearranging import diag, index_along
from cytape.ops.shapes import joining_shapes, shape_rules
from cytape.ops.shaping import (
    expand_dims,
    moveaxis,
    ndim,
    ravel,
)
from cytape.tensor import convert_to_tensor, nest
from cytape.tensor.tensor import data_of
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["block", "delete", "diagflat", "insert", "resize", "trim_zeros"]


def _line(arr, axis, name):
    """Return the array (flattened if the axis is None), the axis, and its length."""
    arr = convert_to_tensor(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis_index(axis, ndim(arr))
    n = arr.shape[axis]
    if n is None:
        raise SymbolicTensorError(
            f"{name}: the length of axis {axis} is not known: give the placeholder a shape, or "
            "reshape the tensor to a known one")
    return arr, axis, n


def _place(obj, n):
    """Return the position among n if `obj` is a single number, else None."""
    obj = plain_array(obj)
    if obj.ndim or obj.dtype.kind not in "iu" or not -n <= obj < n:
        return None
    return int(obj) % n


def delete(arr, obj, axis=None) -> Any:
    """Remove slices along an axis, as `numpy.delete`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.delete(x, 1)))(np.ones(3))
    array([1., 0., 1.])
    """
    obj = plain(obj)
    if not is_tensor(arr):
        return np.delete(arr, obj, axis)
    arr, axis, n = _line(arr, axis, "delete")
    place = _place(obj, n)
    if place is not None:
        before, _, after = split_op(arr, sizes=(place, 1, n - place - 1), axis=axis)
        return concatenate((before, after), axis)
    left = np.zeros(n, bool)
    left[np.delete(np.arange(n), obj)] = True
    edges = np.flatnonzero(np.diff(left, prepend=False, append=False))
    if len(edges) == 2:  # one slice
        return identity_op(getitem(arr, index_along(axis, slice(*edges.tolist()))))
    return getitem(arr, index_along(axis, left))


def insert(arr, obj, values, axis=None) -> Any:
    """Insert values before given positions along an axis, as `numpy.insert`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.insert(x, 1, x[0] ** 2)))(np.array([2.0, 3.0]))
    array([5., 1.])
    """
    obj = plain(obj)
    if not any(map(is_tensor, (arr, values))):
        return np.insert(arr, obj, values, axis)
    given = operand(values)
    if not is_tensor(values):
        given = np.asarray(values, arr.dtype)  # raises for integers that it cannot hold
    arr, values = together(operand(arr), given)
    arr, axis, n = _line(arr, axis, "insert")
    values = convert_to_tensor(values).astype(arr.dtype)
    if ndim(values) < ndim(arr):
        values = expand_dims(values, tuple(range(ndim(arr) - ndim(values))))
    place = _place(obj, n)
    count = 1 if place is not None else len(np.insert(np.arange(n), obj, -1)) - n
    if count == 1:  # NumPy inserts all values there
        if not isinstance(obj, slice) and np.ndim(obj) == 0:
            values = moveaxis(values, 0, axis)
        values, _, count = _line(values, axis, "insert")
    values = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    if place is not None:
        before, after = split_op(arr, sizes=(place, n - place), axis=axis)
        return concatenate((before, values, after), axis)
    # In NumPy's order, that of obj, which need not be sorted.
    order = np.insert(np.arange(n), obj, np.arange(n, n + count))
    whole = concatenate((arr, values), axis)
    return _in_order(whole, axis, order)


def _in_order(whole, axis, order):
    """Take slices in an order, by joining contiguous runs if these are few."""
    cuts = np.flatnonzero(np.diff(order) != 1) + 1
    if len(cuts) > 16:
        return getitem(whole, index_along(axis, order))
    starts = [0, *cuts.tolist()]
    parts = [
        getitem(whole, index_along(axis, slice(int(order[i]), int(order[i]) + j - i)))
        for i, j in itertools.pairwise([*starts, len(order)])
    ]
    return concatenate(parts, axis)


@numpy_function(np.resize)
def resize(a, new_shape) -> Any:
    """Repeat the elements to fill a new shape, as `numpy.resize`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.resize(x, 3)))(np.ones(2))
    array([2., 1.])
    """
    new_shape = shape_rules.known_extents(plain(new_shape), "resize to")
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat, _, n = _line(a, None, "resize")
    if n == 0 or 0 in new_shape:
        nothing = convert_to_tensor(np.zeros(new_shape, flat.dtype))
        return nothing + 0 * np.sum(flat) if flat.dtype.kind in "fc" else nothing
    return resize_op(flat, new_shape=new_shape)


def _again_and_again(results, operands, *, new_shape):
    y, x = results[0].reshape(-1), operands[0]
    times, rest = divmod(y.size, x.size)
    yield y[:y.size - rest].reshape(times, x.size), x
    yield y[y.size - rest:], x[:rest]


resize_op = structural(
    "Resize", lambda x, *, new_shape: np.resize(x, new_shape), _again_and_again,
    batched=lambda x, *, new_shape: x[:, np.resize(np.arange(x.shape[1]), new_shape)],
    shape_rule=lambda x, *, new_shape: symbolic_spec(new_shape, x.dtype))


@numpy_function(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None) -> Any:
    """Remove zeros at the ends, as `numpy.trim_zeros`.

    Symbolic tensors raise an error, since values are unknown.

    Examples
    --------
    >>> import cytape
    >>> np.trim_zeros(cytape.constant([0.0, 1.0, 2.0, 0.0])).numpy()
    array([1., 2.])
    """
    trim = trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        np.trim_zeros(np.zeros(1), trim)  # raises NumPy's error
    filt = convert_to_tensor(filt)
    if filt.graph is not None:
        raise SymbolicTensorError(
            "trim_zeros: which elements are zero is not known before a graph runs; call it through "
            "cytape.numpy_function, which runs with the graph")
    values, n_axes = data_of(filt), ndim(filt)
    axes = range(n_axes) if axis is None else normalize_axis_tuple(axis, n_axes)
    if not axes:
        return filt
    index = [slice(None)] * n_axes
    for i in axes:
        line = values if n_axes == 1 else np.any(
            values, axis=tuple([j for j in range(n_axes) if j != i]))
        before = _zeros_before(line)
        # If all are zero, NumPy removes all, for either end.
        index[i] = slice(0, 0) if before == len(line) else slice(
            before if "f" in trim else None,
            len(line) - _zeros_before(line[::-1]) if "b" in trim else None)
    return getitem(filt, tuple(index))


def _zeros_before(line):
    """Return the number of leading zeros of a line, without reading all elements."""
    start, count = 0, 64
    while start < len(line):
        found = line[start:start + count].nonzero()[0]
        if found.size:
            return start + int(found[0])
        start, count = start + count, 2 * count
    return len(line)


def diagflat(v, k=0) -> Any:
    """Return the matrix with the elements on a diagonal, as `numpy.diagflat`.

    Examples
    --------
    >>> import cytape
    >>> np.diagflat(cytape.constant([1.0, 2.0])).numpy()
    array([[1., 0.],
           [0., 2.]])
    """
    return diag(ravel(convert_to_tensor(v)), k) if is_tensor(v) else np.diagflat(v, k)


# -- blocks ----------------------------------------------------------------------------------------


def _depth(arrays, path=()):
    """Return the depth of nested lists, raise if it varies, and the largest `ndim` of an array."""
    if isinstance(arrays, tuple):
        raise TypeError(
            f"arrays{''.join(f'[{i}]' for i in path)} is a tuple. Only lists can be used to "
            "arrange blocks, and np.block does not allow implicit conversion from tuple to "
            "ndarray.")
    if not isinstance(arrays, list):
        return 0, ndim(arrays)
    if not arrays:
        raise ValueError("List at arrays cannot be empty")
    depths, ndims = zip(*[_depth(part, (*path, i)) for i, part in enumerate(arrays)], strict=True)
    if len(set(depths)) > 1:
        raise ValueError(
            f"List depths are mismatched: some have depth {min(depths)}, others {max(depths)}")
    return depths[0] + 1, max(ndims)


@numpy_function(np.block)
def block(arrays) -> Any:
    """Assemble an array from nested lists of blocks, as `numpy.block`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0]])
    >>> np.block([[x, 2.0], [3.0, x]]).numpy()
    array([[1., 2.],
           [3., 1.]])
    """
    depth, n_axes = _depth(arrays)
    n_axes = max(depth, n_axes)
    leaves = nest.flatten(arrays) if isinstance(arrays, list) else [arrays]
    leaves = [_with_axes(x, n_axes) for x in together(*map(operand, leaves))]
    if depth == 0:
        return identity_op(leaves[0])
    arrangement = _arranged(arrays, iter(range(len(leaves))))
    if depth > 1 and all(x.spec.known for x in leaves):
        return block_op(*leaves, arrangement=arrangement)
    return _joined(arrangement, -depth, leaves, concatenate)


def _with_axes(x, n_axes):
    x = convert_to_tensor(x)
    missing = n_axes - ndim(x)
    return expand_dims(x, tuple(range(missing))) if missing > 0 else x


def _arranged(arrays, places):
    """Return nested tuples with the number of each array, for nested lists of arrays."""
    return tuple([_arranged(part, places) for part in arrays]) if isinstance(
        arrays, list) else next(places)


def _joined(arrangement, axis, arrays, join):
    """Join the arrays of nested tuples: those of the outer one along an axis, inner ones behind."""
    return join([_joined(part, axis + 1, arrays, join) for part in arrangement], axis) if (
        isinstance(arrangement, tuple)) else arrays[arrangement]


def _depth_of(arrangement):
    return 1 + _depth_of(arrangement[0]) if isinstance(arrangement, tuple) else 0


def _in_blocks(results, operands, *, arrangement):
    """Yield the part of the result for each array."""
    def extent(part, axis):
        while isinstance(part, tuple):  # all blocks of it have the same
            part = part[0]
        return operands[part].shape[axis]

    def lay(part, whole, axis):
        if not isinstance(part, tuple):
            yield whole, operands[part]
            return
        stop = 0
        for inner in part:
            start, stop = stop, stop + extent(inner, axis)
            yield from lay(inner, whole[..., start:stop, *[slice(None)] * (-axis - 1)], axis + 1)

    return lay(arrangement, results[0], -_depth_of(arrangement))


block_op = structural(
    "Block",
    lambda *arrays, arrangement: _joined(
        arrangement, -_depth_of(arrangement), arrays, np.concatenate),
    _in_blocks,
    shape_rule=lambda *specs, arrangement: _joined(
        arrangement, -_depth_of(arrangement), specs,
        lambda parts, axis: joining_shapes.concatenate(*parts, axis=axis)),
    batch=batch_axis.stacked)
