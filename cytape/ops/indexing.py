"""Indexing: reads of parts of a tensor, and their adjoints, which add into zeros."""

import operator
import sys
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.adjoints import batched_indexing
from cytape.ops.adjoints.conform import broadcast_to, cast, stand_in
from cytape.ops.adjoints.line_elements import added_at
from cytape.ops.adjoints.tangent_batches import batch_outline
from cytape.ops.calls.operands import axis_in_batch, plain
from cytape.ops.creation import array, identity_op
from cytape.ops.engine import batch_axis
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.index_op import (
    IndexOp,
    get_item,
    holds_place,
    holds_symbol,
    is_symbol,
    static,
)
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import enter, multilinear, nondifferentiable
from cytape.ops.kernels.gather import taken
from cytape.ops.kernels.scatter import added
from cytape.ops.shapes import index_shapes, shape_rules
from cytape.ops.shapes.index_shapes import filled_in
from cytape.ops.shaping import moveaxis, ndim, ravel, reshape
from cytape.tensor import convert_to_tensor
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import UnknownShape, symbolic_spec

__all__ = ["compress", "extract", "take", "take_along_axis"]


# -- x[index] ------------------------------------------------------------------------------------
#
# Tensors in the index that have no value yet are operands of the op; the index, an attribute, has a
# string in place of each: "@0", "@1", ...


def _index_add(values, *others, index, shape=None):
    if shape is None:
        *others, like = others
        shape = like.shape
    index = filled_in(index, others)
    total = added(tuple(shape), index, values)
    if total is not None:
        return total
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, np.ndarray) and part.dtype != bool for part in parts):
        return added_at(tuple(shape), index, values)
    total = np.zeros(shape, values.dtype)
    total[index] = values  # no element is selected twice
    return total


def _index_add_vjp(op, g):
    others = op.inputs[1 : len(op.input_specs) - ("shape" not in op.attrs)]
    return get_item_op(g, *others, index=op.attrs["index"])


get_item_op = enter(
    IndexOp(
        "GetItem",
        get_item,
        vjp=lambda op, g: index_add(g, op.input_specs[0], op.attrs["index"], *op.inputs[1:]),
        saved_inputs=range(1, sys.maxsize),
        linear=True,
        shape_rule=index_shapes.get_item,
    )
).described(moving=1, batch=batched_indexing.taken)
# The last operand has the shape of the result, unless the attribute tells it.
index_add_op = enter(
    GeneralOp(
        "IndexAdd",
        _index_add,
        vjp=_index_add_vjp,
        saved_inputs=range(1, sys.maxsize),
        linear=True,
        shape_rule=index_shapes.index_add,
    )
).described(moving=1, batch=batched_indexing.added, lowering="ADD_PART")


def getitem(tensor, index):
    """Return ``tensor[index]`` for every index that NumPy accepts.

    Integer and boolean tensors may be part of the index.
    """
    return get_item_op.call(tensor, index)


def index_add(values, spec, index, *others):
    """Add values to zeros of a spec at an index; `others` are the tensors in it."""
    if spec.known:
        return index_add_op(values, *others, index=index, shape=spec.shape)
    return index_add_op(values, *others, spec.extents.tensor(), index=index)


def template_of(index):
    """Return an index with strings in place of its symbolic tensors, and these tensors."""
    tensors = []
    if isinstance(index, tuple):
        return tuple([_template_of_part(part, tensors) for part in index]), tensors
    return _template_of_part(index, tensors), tensors


def _template_of_part(part, tensors):
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return slice(*[
            _template_of_part(bound, tensors) if is_symbol(bound)
            else None if bound is None else operator.index(bound) for bound in bounds])
    if isinstance(part, list) and holds_symbol(part):
        part = array(part)
    if is_symbol(part):
        tensors.append(part)
        return f"@{len(tensors) - 1}"
    part = static(part)
    if np.isscalar(part) and not isinstance(part, (int, np.integer, np.bool)):
        np.empty(0)[part]  # raises NumPy's error
    return part


def getitem_in_graph(x, index):
    parts, tensors = template_of(index)
    selected = get_item_op(x, *tensors, index=parts)
    return identity_op(selected) if not tensors and holds_place(index) else selected


# -- slices along one axis -----------------------------------------------------------------------


def _gather_transpose(op, g, indices):
    attrs, axis = op.attrs, op.attrs["axis"]
    by_slices = axis == 0 and attrs["mode"] == "raise"
    if op.input_specs[0].known and op.input_specs[1].known:
        shape, count = op.input_specs[0].shape, op.input_specs[1].size
        if not by_slices:
            return scatter_add_op(g, indices, size=shape[axis], **attrs)
    else:
        shape, count = op.input_specs[0].extents, -1
        if not by_slices or None in shape[1:] or 0 in shape[1:]:
            return scatter_add_op(g, indices, stand_in(op.input_specs[0]), **attrs)
    return IndexedSlices(reshape(g, (count, *shape[1:])), reshape(indices, (count,)), shape)


def _scatter_add(values, indices, like=None, *, axis, mode, size=None):
    size = like.shape[axis] if size is None else size
    shape = values.shape[:axis] + (size,) + values.shape[axis + indices.ndim :]
    if mode == "wrap":
        indices = indices.astype(np.intp) % size
    elif mode == "clip":
        indices = indices.astype(np.intp).clip(0, size - 1)
    return added_at(shape, (slice(None),) * axis + (indices,), values)


def _gather(params, indices, *, axis, mode):
    found = taken(params, indices, axis, mode)
    return np.take(params, indices, axis, mode=mode) if found is None else found


def _within(call, indices, n):
    """Return positions among n with a mode applied; None if they are known only in a run."""
    mode = call.attrs["mode"]
    if mode == "raise" or n is None:
        return indices if mode == "raise" else None
    indices = cast(indices, np.intp)
    return np.mod(indices, n) if mode == "wrap" else np.clip(indices, 0, n - 1)


def _gather_in_batch(call):
    (params, indices), axis = call.inputs, call.attrs["axis"]
    if not call.mapped[1]:
        return call.again([params, indices], axis=axis + 1)
    if not call.mapped[0]:
        return moveaxis(call.again([params, indices]), axis, 0)
    indices = _within(call, indices, call.input_specs[0].shape[axis])
    if call.extent is None or indices is None:
        return NotImplemented
    ndim = call.input_specs[1].ndim
    taken = get_item_op(
        moveaxis(params, axis + 1, 1), batch_axis.counted(call.extent, ndim), indices,
        index=("@0", "@1"))
    return moveaxis(
        taken, tuple(range(ndim + 1, ndim + 1 + axis)), tuple(range(1, 1 + axis)))


def _scatter_in_batch(call):
    (values, indices, *like), axis, (spec,) = call.inputs, call.attrs["axis"], call.output_specs
    if any(call.mapped[2:]):
        return NotImplemented
    if not call.mapped[1]:
        like = [batch_outline(values, one) for one in like]
        return call.again([values, indices, *like], axis=axis + 1)
    indices = _within(call, indices, spec.shape[axis])
    if call.extent is None or indices is None or not spec.known:
        return NotImplemented
    values = values if call.mapped[0] else broadcast_to(
        values, (call.extent, *call.input_specs[0].shape))
    n = call.input_specs[1].ndim
    values = moveaxis(values, tuple(range(1, 1 + axis)), tuple(range(1 + n, 1 + n + axis)))
    shape = (spec.shape[axis], *spec.shape[:axis], *spec.shape[axis + 1 :])
    total = index_add_op(
        values, batch_axis.counted(call.extent, n), indices, index=("@0", "@1"),
        shape=(call.extent, *shape))
    return moveaxis(total, 1, 1 + axis)


gather_op = multilinear(
    "Gather", _gather, _gather_transpose,
    shape_rule=index_shapes.gather, batch=_gather_in_batch, lowering="GATHERED")
scatter_add_op = multilinear(
    "ScatterAdd", _scatter_add,
    lambda op, g, indices, *_: gather_op(
        g, indices, axis=op.attrs["axis"], mode=op.attrs["mode"]), None, None,
    shape_rule=index_shapes.scatter_add, batch=_scatter_in_batch, lowering="SCATTERED")


def scatter_add(values, indices, shape):
    """Add slices along the first axis to zeros of a shape, which may be unknown."""
    if type(shape) is UnknownShape:
        return scatter_add_op(values, indices, shape.tensor(), axis=0, mode="raise")
    return scatter_add_op(values, indices, axis=0, mode="raise", size=shape[0])


def gather(params, indices, axis=0) -> Any:
    """Take slices of `params` along an axis.

    The gradient with respect to `params` is an `IndexedSlices` where `axis` is 0.

    Parameters
    ----------
    params : array_like
        What to take from.
    indices : array_like of int
        Positions along `axis`, of any shape.
    axis : int, optional
        The axis that `indices` refer to.

    Returns
    -------
    Tensor or ndarray
        Of shape ``params.shape[:axis] + indices.shape + params.shape[axis + 1:]``.

    Raises
    ------
    IndexError
        If an index is out of bounds.

    Examples
    --------
    >>> import cytape
    >>> cytape.gather(cytape.constant([1.0, 2.0, 3.0]), [0, 2, 2]).numpy()
    array([1., 3., 3.])
    """
    return take(params, indices, axis)


@numpy_function(np.take, "a", "indices")
def take(a, indices, axis=None, out=None, mode="raise") -> Any:
    """Take elements, or slices along an axis, as `numpy.take`.

    The gradient with respect to `a` is an `IndexedSlices` where `axis` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.take(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1, 1], axis=1).numpy()
    array([[2., 2.],
           [4., 4.]])
    """
    if not hasattr(indices, "dtype"):
        indices = np.array(indices, np.intp)  # NumPy accepts a list of floats, too
    if isinstance(axis, bool):
        np.take(0, 0, axis)  # raises NumPy's error
    if axis is None or ndim(a) == 0 and axis in (0, -1):
        a, axis = ravel(a), 0
        if mode == "raise" and indices.dtype == np.intp and not is_symbol(indices):
            return getitem(a, indices)
    return gather_op(a, indices, axis=normalize_axis_index(axis, ndim(a)), mode=mode)


# -- functions whose positions in the flattened array NumPy computes -----------------------------


def _positions(x):
    return np.arange(x.size).reshape(x.shape)


def _must_wait(index, x):
    """Return whether the elements that an index selects are known only when a graph runs."""
    return is_symbol(index) or (is_symbol(x) and not x.spec.known)


def _along_axis_spec(arr, indices, *, axis):
    shape = shape_rules.shape_of(arr, "take_along_axis")
    given = shape_rules.shape_of(indices, "take_along_axis")
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis: indices must be integers, got {indices.dtype}")
    if axis is None:
        return indices
    axis = normalize_axis_index(axis, len(shape))
    if len(shape) != len(given):
        raise ValueError(f"take_along_axis: indices of shape {given} do not fit shape {shape}")
    try:
        others = shape_rules.broadcast(
            (*shape[:axis], 1, *shape[axis + 1 :]), (*given[:axis], 1, *given[axis + 1 :]),
            what="take_along_axis")
    except ValueError as error:
        raise IndexError(str(error)) from None
    return symbolic_spec((*others[:axis], given[axis], *others[axis + 1 :]), np.intp)


def _compressed_spec(a, condition, *, axis):
    shape = shape_rules.shape_of(a, "compress")
    if axis is None:
        return symbolic_spec((None,), np.intp)
    axis = normalize_axis_index(axis, max(len(shape), 1))  # NumPy lets a 0-d array have an axis 0
    return symbolic_spec((*shape[:axis], None, *shape[axis + 1 :]), np.intp)


def _positions_in_batch(call):
    """Compute positions in an array of the shape of one member."""
    (x, indices), axis = call.inputs, call.attrs["axis"]
    if not call.mapped[1] or not call.input_specs[0].known:
        return NotImplemented
    x = x[:1] if call.mapped[0] else x[None]
    if axis is None:
        return call.again([reshape(x, (1, -1)), indices], axis=1)
    return call.again([x, indices], axis=axis_in_batch(axis, indices.ndim))


positions_along_axis_op = nondifferentiable(
    "PositionsAlongAxis",
    lambda arr, indices, *, axis: np.take_along_axis(_positions(arr), indices, axis),
    shape_rule=_along_axis_spec,
    batch=_positions_in_batch,
)
compressed_positions_op = nondifferentiable(
    "CompressedPositions",
    lambda a, condition, *, axis: np.compress(condition, _positions(a), axis),
    shape_rule=_compressed_spec,
)
extracted_positions_op = nondifferentiable(
    "ExtractedPositions",
    lambda arr, condition: np.extract(condition, _positions(arr)),
    shape_rule=lambda arr, condition: symbolic_spec((None,), np.intp),
)


@numpy_function(np.take_along_axis, "arr", "indices")
def take_along_axis(arr, indices, axis=-1) -> Any:
    """Take one element for each index, from the line along `axis` at the index's place.

    See `numpy.take_along_axis`; the indices may come from `argmax` or `argsort`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [4.0, 3.0]])
    >>> np.take_along_axis(x, np.array([[1], [0]]), axis=1).numpy()
    array([[2.],
           [4.]])
    """
    arr = convert_to_tensor(arr)
    if _must_wait(indices, arr):
        return getitem(ravel(arr), positions_along_axis_op(arr, indices, axis=axis))
    positions = np.take_along_axis(_positions(arr), plain_array(plain(indices)), axis)
    return getitem(ravel(arr), positions)


@numpy_function(np.compress, "condition", "a")
def compress(condition, a, axis=None, out=None) -> Any:
    """Take the slices along an axis for which the condition holds, as `numpy.compress`.

    Examples
    --------
    >>> import cytape
    >>> np.compress([True, False], cytape.constant([[1.0, 2.0], [3.0, 4.0]]), axis=0).numpy()
    array([[1., 2.]])
    """
    a = convert_to_tensor(a)
    if _must_wait(condition, a):
        return getitem(ravel(a), compressed_positions_op(a, condition, axis=axis))
    condition = plain_array(plain(condition))
    if condition.ndim != 1:
        np.compress(condition, np.empty(0))  # raises NumPy's error
    return take(a, condition.nonzero()[0], axis)


@numpy_function(np.extract, "condition", "arr")
def extract(condition, arr) -> Any:
    """Take the elements for which the condition holds, as `numpy.extract`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([1.0, -2.0, 3.0])
    >>> np.extract(x > 0, x).numpy()
    array([1., 3.])
    """
    arr = convert_to_tensor(arr)
    if _must_wait(condition, arr):
        return getitem(ravel(arr), extracted_positions_op(arr, condition))
    return getitem(ravel(arr), plain_array(plain(condition)).ravel().nonzero()[0])
