"""Joins of several tensors to one, and splits of one tensor into several."""

import math
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import cytape.ops.shapes.known_shapes as known_shapes
from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.conform import stand_in
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.adjoints.tangent_batches import batch_outline
from cytape.ops.calls.operands import axis_in_batch, is_tensor, joined, plain, with_out
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import structural
from cytape.ops.shapes import joining_shapes, shape_rules
from cytape.ops.shaping import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    extents,
    moveaxis,
    ndim,
    ravel,
    reshape,
)
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.values.plain_arrays import plain_array

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "split",
    "stack",
    "unstack",
    "vsplit",
    "vstack",
]


_NUMBERS = {bool, int, float, complex}


def tensor_or_array(x):
    """Return a tensor unchanged, other objects as arrays."""
    return x if is_tensor(x) else plain_array(x)


# -- joining ---------------------------------------------------------------------------------------


def _concatenate_back(op, g):
    specs, axis, ravels = op.input_specs, op.attrs["axis"] or 0, op.attrs["axis"] is None
    if all([spec.known for spec in specs]):
        sizes = tuple([spec.size if ravels else spec.shape[axis] for spec in specs])
        parts = split_op(g, sizes=sizes, axis=axis)
    else:
        likes = [ravel(stand_in(spec)) if ravels else stand_in(spec) for spec in specs]
        parts = split_op(g, *likes, axis=axis)
    return tuple(
        reshape(part, spec.extents) if needed else None
        for part, spec, needed in zip(parts, specs, op.needs, strict=True)
    )


def rows_of_batch(batch):
    """Return a batch as a matrix with one row per member."""
    n_members, *rest = extents(batch)
    return reshape(batch, (n_members, math.prod(rest)))  # not -1, which fails for an extent of 0


def _concatenate_batches(*batches, axis, **options):
    if axis is None:
        batches = list(map(rows_of_batch, batches))
        axis = 0
    return concatenate(batches, axis_in_batch(axis, batches[0].ndim), **options)


def _side_by_side(results, operands, *, axis, casting, **_):
    """Yield the part of the result for each array."""
    np.can_cast(results[0].dtype, results[0].dtype, casting)  # raises NumPy's error
    whole = np.moveaxis(results[0], axis or 0, 0)
    stop = 0
    for x in operands:
        if axis != 0:
            x = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
        start, stop = stop, stop + len(x)
        yield whole[start:stop], x


def _upon_each_other(results, operands, *, axis, casting, **_):
    np.can_cast(results[0].dtype, results[0].dtype, casting)
    yield from zip(_views(results[0], axis), operands, strict=True)


def _views(x, axis):
    """Return the slices of an array as views; iteration over a vector would give scalars."""
    x = np.moveaxis(x, axis, 0)
    return [x[i, ...] for i in range(len(x))]


concatenate_op = structural(
    "Concatenate",
    lambda *arrays, **options: np.concatenate(arrays, **options),
    _side_by_side,
    transpose=_concatenate_back,
    batched=_concatenate_batches,
    shape_rule=known_shapes.concatenate,
)
stack_op = structural(
    "Stack",
    lambda *arrays, **options: np.stack(arrays, **options),
    _upon_each_other,
    transpose=lambda op, g: unstack_op(g, axis=op.attrs["axis"], count=len(op.input_specs)),
    batched=lambda *batches, axis, **options: stack(
        batches, axis + 1 if axis >= 0 else axis, **options
    ),
    shape_rule=joining_shapes.stack,
)


def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind") -> Any:
    """Join along an existing axis, as `numpy.concatenate`.

    Examples
    --------
    >>> import cytape
    >>> np.concatenate([cytape.constant([1.0]), [2.0, 3.0]]).numpy()
    array([1., 2., 3.])
    """
    if out is not None:
        return with_out(np.concatenate, out, arrays, axis=axis, dtype=dtype, casting=casting)
    arrays = tuple(arrays)
    return concatenate_op(*arrays, axis=axis, dtype=dtype, casting=casting)


concat = concatenate


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind") -> Any:
    """Join along a new axis, as `numpy.stack`.

    Examples
    --------
    >>> import cytape
    >>> np.stack([cytape.constant([1.0, 2.0]), [3.0, 4.0]]).numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    if out is not None:
        return with_out(np.stack, out, arrays, axis=axis, dtype=dtype, casting=casting)
    arrays = tuple(arrays)
    for x in arrays:
        if type(x) in _NUMBERS:  # as in NumPy, numbers are not weak here
            arrays = tuple(map(tensor_or_array, arrays))
            break
    return stack_op(*arrays, axis=axis, dtype=dtype, casting=casting)


def vstack(tup, *, dtype=None, casting="same_kind") -> Any:
    """Join row upon row, as `numpy.vstack`.

    Examples
    --------
    >>> import cytape
    >>> np.vstack([cytape.constant([1.0, 2.0]), [3.0, 4.0]]).numpy()
    array([[1., 2.],
           [3., 4.]])
    """
    return concatenate([atleast_2d(a) for a in together(*tup)], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind") -> Any:
    """Join side by side, as `numpy.hstack`.

    Examples
    --------
    >>> import cytape
    >>> np.hstack([cytape.constant([1.0, 2.0]), [3.0, 4.0]]).numpy()
    array([1., 2., 3., 4.])
    """
    arrays = [atleast_1d(a) for a in together(*tup)]
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return concatenate(arrays, axis, dtype=dtype, casting=casting)


def dstack(tup) -> Any:
    """Join along the third axis, as `numpy.dstack`.

    Examples
    --------
    >>> import cytape
    >>> np.dstack([cytape.constant([1.0, 2.0]), [3.0, 4.0]]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(a) for a in together(*tup)], 2)


def column_stack(tup) -> Any:
    """Join vectors as columns, and matrices side by side, as `numpy.column_stack`.

    Examples
    --------
    >>> import cytape
    >>> np.column_stack([cytape.constant([1.0, 2.0]), [3.0, 4.0]]).numpy()
    array([[1., 3.],
           [2., 4.]])
    """
    columns = [reshape(a, (-1, 1)) if ndim(a) < 2 else a for a in together(*tup)]
    return concatenate(columns, 1)


def append(arr, values, axis=None) -> Any:
    """Join values to the end, as `numpy.append`.

    Examples
    --------
    >>> import cytape
    >>> np.append(cytape.constant([1.0, 2.0]), 3.0).numpy()
    array([1., 2., 3.])
    """
    if axis is None:
        arr, values = together(arr, values)
        return concatenate((ravel(arr), ravel(values)))
    return concatenate((arr, values), axis)


# -- splitting -------------------------------------------------------------------------------------


def _parted(a, *likes, sizes=None, axis):
    if isinstance(sizes, (int, np.integer)):
        return tuple(np.array_split(a, sizes, axis))
    sizes = [like.shape[axis] for like in likes] if sizes is None else sizes
    return tuple(np.split(a, list(accumulate(sizes[:-1])), axis))


def _split_back(op, *gs):
    whole = concatenate(gs, op.attrs["axis"])
    return whole if op.input_specs[0].known else reshape(whole, op.input_specs[0].extents)


def _split_in_batch(call):
    x, *likes = call.inputs
    if call.mapped != [True] + [False] * len(likes):
        return NotImplemented
    return call.again([x, *[batch_outline(x, like) for like in likes]],
                      axis=axis_in_batch(call.attrs["axis"], x.ndim))


# Into parts of the shapes of further operands, or by `sizes`: a number of parts, or their lengths.
split_op = structural(
    "Split",
    _parted,
    lambda results, operands, **attrs: zip(results, _parted(operands[0], **attrs), strict=True),
    transpose=_split_back,
    views=True,
    shape_rule=joining_shapes.split,
    batch=_split_in_batch,
    moving=1,
)
unstack_op = structural(
    "Unstack",
    lambda x, *, axis, count=None: tuple(np.moveaxis(x, axis, 0)),
    lambda results, operands, *, axis, count=None: zip(
        results, _views(operands[0], axis), strict=True
    ),
    transpose=lambda op, *gs: stack(gs, op.attrs["axis"]),
    views=True,
    shape_rule=joining_shapes.unstack,
    batch=batch_axis.along_axis,
)


def _parts(ary, indices_or_sections, axis, uneven=False, n_axes=1):
    """Split a tensor with a few integer operations in usual cases; else return None."""
    if type(ary) is not Tensor or type(axis) is not int:
        return None
    shape = ary.shape
    if shape is None or None in shape or (
            len(shape) < n_axes or not -len(shape) <= axis < len(shape)):
        return None
    if type(indices_or_sections) is int:
        sizes = _even_sizes(shape[axis], indices_or_sections, uneven)
    elif type(indices_or_sections) in (list, tuple) and all(
            [type(i) is int for i in indices_or_sections]):
        sizes = _sizes_between(shape[axis], tuple(indices_or_sections))
    else:
        return None
    return None if sizes is None else list(split_op(ary, sizes=sizes, axis=axis))


def _even_sizes(extent, sections, uneven):
    if sections <= 0 or extent % sections and not uneven:
        return None  # NumPy raises
    size, n_larger = divmod(extent, sections)
    return (size + 1,) * n_larger + (size,) * (sections - n_larger)


@lru_cache(maxsize=16)
def _sizes_between(extent, indices):
    """Return the lengths of parts; None if parts overlap."""
    bounds = [0, *indices, extent]
    sizes = tuple([len(range(extent)[start:stop]) for start, stop in pairwise(bounds)])
    return sizes if sum(sizes) == extent else None


def _split(numpy_split, ary, indices_or_sections, axis, uneven=False):
    indices_or_sections = joined(indices_or_sections)
    if is_tensor(indices_or_sections) and indices_or_sections.graph is not None:
        return _split_at_tensor(convert_to_tensor(ary), indices_or_sections, axis)
    indices_or_sections = plain(indices_or_sections)
    if not is_tensor(ary):
        return numpy_split(ary, indices_or_sections)
    ary = joined(ary)
    shape = shape_rules.shape_of(ary.spec, "split")
    along = axis, axis + len(shape)
    lengths = [(0 if i in along else 1) if n is None else n for i, n in enumerate(shape)]
    outlines = numpy_split(np.broadcast_to(False, lengths), indices_or_sections)  # or its error
    axis = normalize_axis_index(axis, len(shape))
    if shape[axis] is not None:
        sizes = tuple(part.shape[axis] for part in outlines)
        if sum(sizes) == shape[axis]:
            return list(split_op(ary, sizes=sizes, axis=axis))
    elif np.ndim(indices_or_sections) == 0:
        if not uneven:
            ary = with_extents(
                ary, ValueError, "array split does not result in an equal division",
                multiple=((axis, np.asarray(indices_or_sections).item()),))
        return list(split_op(ary, sizes=len(outlines), axis=axis))
    # Parts may overlap, by decreasing indices.
    return _slices(ary, np.asarray(indices_or_sections).tolist(), axis)


def _split_at_tensor(ary, indices, axis):
    """Split at indices that are known only when a graph runs."""
    if not indices.spec.known or indices.ndim != 1:
        raise SymbolicTensorError(
            f"split at indices of shape {indices.shape}: into how many parts is not known"
        )
    axis = normalize_axis_index(axis, ndim(ary))
    return _slices(ary, [indices[i] for i in range(indices.size)], axis)


def _slices(ary, indices, axis):
    before = (slice(None),) * axis
    return [ary[(*before, slice(start, stop))] for start, stop in pairwise([None, *indices, None])]


def split(ary, indices_or_sections, axis=0) -> Any:
    """Split into equal parts or at given indices, as `numpy.split`.

    Examples
    --------
    >>> import cytape
    >>> [part.shape for part in np.split(cytape.constant([1.0, 2.0, 3.0]), [1])]
    [(1,), (2,)]
    """
    parts = _parts(ary, indices_or_sections, axis)
    if parts is not None:
        return parts
    return _split(partial(np.split, axis=axis), ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0) -> Any:
    """Split into nearly equal parts or at given indices, as `numpy.array_split`.

    Examples
    --------
    >>> import cytape
    >>> [part.shape for part in np.array_split(cytape.constant([1.0, 2.0, 3.0]), 2)]
    [(2,), (1,)]
    """
    parts = _parts(ary, indices_or_sections, axis, uneven=True)
    if parts is not None:
        return parts
    return _split(
        partial(np.array_split, axis=axis), ary, indices_or_sections, axis, uneven=True)


def hsplit(ary, indices_or_sections) -> Any:
    """Split into parts side by side, as `numpy.hsplit`.

    Examples
    --------
    >>> import cytape
    >>> [part.shape for part in np.hsplit(cytape.constant([[1.0, 2.0]]), 2)]
    [(1, 1), (1, 1)]
    """
    axis = 1 if ndim(ary) > 1 else 0
    parts = _parts(ary, indices_or_sections, axis)
    return _split(np.hsplit, ary, indices_or_sections, axis) if parts is None else parts


def vsplit(ary, indices_or_sections) -> Any:
    """Split into rows of parts, as `numpy.vsplit`.

    Examples
    --------
    >>> import cytape
    >>> [part.shape for part in np.vsplit(cytape.constant([[1.0], [2.0]]), 2)]
    [(1, 1), (1, 1)]
    """
    parts = _parts(ary, indices_or_sections, 0, n_axes=2)
    return _split(np.vsplit, ary, indices_or_sections, 0) if parts is None else parts


def dsplit(ary, indices_or_sections) -> Any:
    """Split along the third axis, as `numpy.dsplit`.

    Examples
    --------
    >>> import cytape
    >>> [part.shape for part in np.dsplit(cytape.constant([[[1.0, 2.0]]]), 2)]
    [(1, 1, 1), (1, 1, 1)]
    """
    parts = _parts(ary, indices_or_sections, 2)
    return _split(np.dsplit, ary, indices_or_sections, 2) if parts is None else parts


@numpy_function(np.unstack)
def unstack(x, /, *, axis=0) -> Any:
    """Split into the slices along an axis, as `numpy.unstack`.

    Examples
    --------
    >>> import cytape
    >>> [float(part) for part in np.unstack(cytape.constant([1.0, 2.0]))]
    [1.0, 2.0]
    """
    if ndim(x) == 0:
        raise ValueError("Input array must be at least 1-d.")
    if isinstance(axis, (tuple, list, np.ndarray)):
        return unstack_op(moveaxis(x, axis, 0), axis=0)
    return unstack_op(x, axis=axis)
