"""Reading parts of a tensor, and the adjoint: adding into parts of zeros."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.arguments import is_tensor, only_numpy, tensors_if_any
from cytape.ops.declare import enter, general, linear
from cytape.ops.index_op import IndexOp, index_in_batch, static
from cytape.ops.shaping import ndim, ravel, reshape
from cytape.tensor.indexed_slices import IndexedSlices

__all__ = ["compress", "extract", "take", "take_along_axis"]


# -- x[index] ------------------------------------------------------------------------------------


def _index_add(values, *, index, shape):
    total = np.zeros(shape, values.dtype)
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, np.ndarray) and part.dtype != bool for part in parts):
        np.add.at(total, index, values)
    else:  # no entry can be named twice
        total[index] = values
    return total


def _get_items(x, *, index):
    index = index_in_batch(index)
    return NotImplemented if index is None else getitem(x, index)


def _add_items(values, *, index, shape):
    index = index_in_batch(index)
    if index is None:
        return NotImplemented
    return index_add_op(values, index=index, shape=values.shape[:1] + tuple(shape))


get_item_op = enter(
    IndexOp(
        "GetItem",
        lambda x, *, index: x[index],
        vjp=lambda op, g: index_add_op(
            g, index=op.attrs["index"], shape=op.input_specs[0].shape),
        saved_inputs=(),
        batched=_get_items,
        linear=True,
    )
)

index_add_op = linear(
    "IndexAdd",
    forward=_index_add,
    transpose=lambda op, g: get_item_op(g, index=op.attrs["index"]),
    batched=_add_items,
)


def getitem(tensor, index):
    """Return ``tensor[index]`` for every index that NumPy knows.

    Integer and boolean tensors may be part of the index.
    """
    return get_item_op(tensor, index=static(index))


# -- slices along one axis -----------------------------------------------------------------------


def _gather_vjp(op, g):
    indices, attrs = op.inputs[1], op.attrs
    (shape, count) = op.input_specs[0].shape, op.input_specs[1].size
    if attrs["axis"] == 0 and attrs["mode"] == "raise":
        values = reshape(g, (count, *shape[1:]))
        return IndexedSlices(values, reshape(indices, (count,)), shape), None
    return scatter_add_op(g, indices, size=shape[attrs["axis"]], **attrs), None


def _scatter_add(values, indices, *, axis, mode, size):
    shape = values.shape[:axis] + (size,) + values.shape[axis + indices.ndim :]
    total = np.zeros(shape, values.dtype)
    if mode == "wrap":
        indices = indices % size
    elif mode == "clip":
        indices = indices.clip(0, size - 1)
    np.add.at(total, (slice(None),) * axis + (indices,), values)
    return total


def _along_later_axis(op, product, t):
    return product(t, op.inputs[1], **{**op.attrs, "axis": op.attrs["axis"] + 1})


gather_op = general(
    "Gather",
    forward=lambda params, indices, *, axis, mode: np.take(params, indices, axis=axis, mode=mode),
    vjp=_gather_vjp,
    jvp=lambda op, t, _: gather_op(t, op.inputs[1], **op.attrs),
    saved_inputs=(1,),
    batched=lambda op, t, _: _along_later_axis(op, gather_op, t),
)

scatter_add_op = general(
    "ScatterAdd",
    forward=_scatter_add,
    vjp=lambda op, g: (
        gather_op(g, op.inputs[1], axis=op.attrs["axis"], mode=op.attrs["mode"]),
        None,
    ),
    jvp=lambda op, t, _: scatter_add_op(t, op.inputs[1], **op.attrs),
    saved_inputs=(1,),
    batched=lambda op, t, _: _along_later_axis(op, scatter_add_op, t),
)


def gather(params, indices, axis=0):
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


def take(a, indices, axis=None, out=None, mode="raise"):
    """Take elements, or slices along an axis, as `numpy.take`.

    The gradient with respect to `a` is an `IndexedSlices` where `axis` is 0.

    Examples
    --------
    >>> import cytape
    >>> np.take(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1, 1], axis=1).numpy()
    array([[2., 2.],
           [4., 4.]])
    """
    if not any(map(is_tensor, (a, indices))):
        return np.take(a, indices, axis, out, mode)
    only_numpy("take", [a, indices], out=out)
    if not hasattr(indices, "dtype"):
        indices = np.array(indices, np.intp)  # NumPy takes a list of floats, too
    if axis is None:
        a, axis = ravel(a), 0
    return gather_op(a, indices, axis=normalize_axis_index(axis, ndim(a)), mode=mode)


# -- the rest: NumPy finds the positions in the flattened array ----------------------------------


def _positions(tensor):
    return np.arange(tensor.size).reshape(tensor.shape)


def take_along_axis(arr, indices, axis=-1):
    """Take one element for each index, from the line along `axis` it stands in.

    See `numpy.take_along_axis`; the indices may come from `argmax` or `argsort`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [4.0, 3.0]])
    >>> np.take_along_axis(x, np.array([[1], [0]]), axis=1).numpy()
    array([[2.],
           [4.]])
    """
    if not any(map(is_tensor, (arr, indices))):
        return np.take_along_axis(arr, indices, axis)
    arr, indices = tensors_if_any([arr, indices])
    positions = np.take_along_axis(_positions(arr), indices.numpy(), axis)
    return getitem(ravel(arr), positions)


def compress(condition, a, axis=None, out=None):
    """Take the slices along an axis for which the condition holds, as `numpy.compress`.

    Examples
    --------
    >>> import cytape
    >>> np.compress([True, False], cytape.constant([[1.0, 2.0], [3.0, 4.0]]), axis=0).numpy()
    array([[1., 2.]])
    """
    if not any(map(is_tensor, (condition, a))):
        return np.compress(condition, a, axis, out)
    only_numpy("compress", [condition, a], out=out)
    condition, a = tensors_if_any([condition, a])
    return getitem(ravel(a), np.compress(condition.numpy(), _positions(a), axis))


def extract(condition, arr):
    """Take the elements for which the condition holds, as `numpy.extract`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([1.0, -2.0, 3.0])
    >>> np.extract(x > 0, x).numpy()
    array([1., 3.])
    """
    if not any(map(is_tensor, (condition, arr))):
        return np.extract(condition, arr)
    condition, arr = tensors_if_any([condition, arr])
    return getitem(ravel(arr), np.extract(condition.numpy(), _positions(arr)))


NUMPY_FUNCTIONS = {
    np.compress: compress,
    np.extract: extract,
    np.take: take,
    np.take_along_axis: take_along_axis,
}
