"""Ops that move elements about: new shapes, axes in another order, repeats, parts left out."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.arguments import axis_in_batch, is_tensor, only_numpy, tensors_if_any
from cytape.ops.conform import broadcast_to_op
from cytape.ops.declare import linear

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
]


def shape(a):
    """Return the shape of an array or tensor, as `numpy.shape`.

    Examples
    --------
    >>> import cytape
    >>> np.shape(cytape.constant([1.0, 2.0]))
    (2,)
    """
    return a.shape if is_tensor(a) else np.shape(a)


def ndim(a):
    """Return the number of axes of an array or tensor, as `numpy.ndim`.

    Examples
    --------
    >>> import cytape
    >>> np.ndim(cytape.constant([1.0, 2.0]))
    1
    """
    return len(shape(a))


def size(a, axis=None):
    """Return the number of elements, in all or along the given axes, as `numpy.size`.

    Examples
    --------
    >>> import cytape
    >>> np.size(cytape.constant([1.0, 2.0]))
    2
    """
    return np.size(outline(a) if is_tensor(a) else a, axis)


def outline(tensor):
    """Return an array of the tensor's shape and of no memory, for NumPy to check arguments on."""
    return np.broadcast_to(np.empty((), bool), tensor.shape)


# -- the same elements in the same order -----------------------------------------------------------


def _reshape_back(op, g):
    return reshape(g, op.input_specs[0].shape, op.attrs.get("order", "C"))


# The methods of an ndarray do what the functions do, without looking for other kinds of arrays.
def _reshape(x, shape, order="C", **options):
    if options or type(x) is not np.ndarray:
        return np.reshape(x, shape, order, **options)
    return x.reshape(shape, order=order)


def _transpose(x, axes):
    return x.transpose(axes) if type(x) is np.ndarray else np.transpose(x, axes)


def _reshape_batch(x, shape, order, **options):
    if order == "F":  # then the directions go last
        shape = (*np.atleast_1d(shape), len(x))
        return moveaxis(reshape(moveaxis(x, 0, -1), shape, order), -1, 0)
    return reshape(x, (len(x), *np.atleast_1d(shape)))


def _reshaping(name, forward, batched=None):
    """Declare an op that changes the shape, to what `forward` makes of the shape alone."""

    def reshape_each(x, **attrs):
        one = np.broadcast_to(np.empty((), bool), x.shape[1:])
        return reshape(x, x.shape[:1] + forward(one, **attrs).shape)

    return linear(name, forward, transpose=_reshape_back, batched=batched or reshape_each)


reshape_op = _reshaping("Reshape", _reshape, _reshape_batch)
squeeze_op = _reshaping("Squeeze", np.squeeze)
expand_dims_op = _reshaping("ExpandDims", np.expand_dims)
atleast_1d_op = _reshaping("AtLeast1D", np.atleast_1d)
atleast_2d_op = _reshaping("AtLeast2D", np.atleast_2d)
atleast_3d_op = _reshaping("AtLeast3D", np.atleast_3d)


def reshape(a, /, shape, order="C", *, copy=None):
    """Arrange the same elements in another shape, as `numpy.reshape`.

    The orders "A" and "K" ask for the order in memory, which tensors do not have.

    Examples
    --------
    >>> import cytape
    >>> np.reshape(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), -1).numpy()
    array([1., 2., 3., 4.])
    """
    options = {} if copy is None else only_numpy("reshape", [a], copy=copy)
    if order in ("A", "K") and is_tensor(a):
        raise ValueError(f"reshape: order {order!r} is not defined for tensors; use 'C' or 'F'")
    return reshape_op(a, shape=shape, order=order, **options)


def ravel(a, order="C"):
    """Arrange all elements along one axis, as `numpy.ravel`.

    Examples
    --------
    >>> import cytape
    >>> np.ravel(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 2., 3., 4.])
    """
    if not is_tensor(a):
        return np.ravel(a, order)
    return reshape(a, (-1,), order)


def squeeze(a, axis=None):
    """Remove axes of length one, as `numpy.squeeze`.

    Examples
    --------
    >>> import cytape
    >>> np.squeeze(cytape.constant([[1.0, 2.0]])).shape
    (2,)
    """
    return squeeze_op(a, axis=axis)


def expand_dims(a, axis):
    """Insert axes of length one, as `numpy.expand_dims`.

    Examples
    --------
    >>> import cytape
    >>> np.expand_dims(cytape.constant([1.0, 2.0]), -1).shape
    (2, 1)
    """
    return expand_dims_op(a, axis=axis)


def _atleast(op, arys):
    results = tuple(op(a) for a in tensors_if_any(arys))
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys):
    """View with at least one axis, as `numpy.atleast_1d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_1d(cytape.constant(1.0)).shape
    (1,)
    """
    return _atleast(atleast_1d_op, arys)


def atleast_2d(*arys):
    """View with at least two axes, as `numpy.atleast_2d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_2d(cytape.constant([1.0, 2.0])).shape
    (1, 2)
    """
    return _atleast(atleast_2d_op, arys)


def atleast_3d(*arys):
    """View with at least three axes, as `numpy.atleast_3d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_3d(cytape.constant([1.0, 2.0])).shape
    (1, 2, 1)
    """
    return _atleast(atleast_3d_op, arys)


# -- axes in another order -------------------------------------------------------------------------


def _transpose_back(op, g):
    axes = op.attrs["axes"]
    if axes is not None:
        axes = tuple(np.argsort(normalize_axis_tuple(axes, g.ndim)))
    return transpose(g, axes)


def _transpose_batch(x, axes):
    axes = range(x.ndim - 1, 0, -1) if axes is None else axis_in_batch(tuple(axes), x.ndim)
    return transpose(x, (0, *axes))


transpose_op = linear(
    "Transpose", forward=_transpose, transpose=_transpose_back, batched=_transpose_batch
)


def transpose(a, axes=None):
    """Put the axes in another order, by default the reverse, as `numpy.transpose`.

    Examples
    --------
    >>> import cytape
    >>> np.transpose(cytape.constant([[1.0, 2.0]])).shape
    (2, 1)
    """
    return transpose_op(a, axes=axes)


permute_dims = transpose


def _permutation(numpy_function, a, *arguments):
    """Return the axes by which `transpose` does the same as a function that only moves axes."""
    numbered = np.empty(tuple(range(ndim(a))), bool)
    return numpy_function(numbered, *arguments).shape


def swapaxes(a, axis1, axis2):
    """Interchange two axes, as `numpy.swapaxes`.

    Examples
    --------
    >>> import cytape
    >>> np.swapaxes(cytape.constant([[1.0, 2.0]]), 0, 1).shape
    (2, 1)
    """
    return transpose(a, _permutation(np.swapaxes, a, axis1, axis2))


def matrix_transpose(x, /):
    """Interchange the last two axes, as `numpy.matrix_transpose`.

    Examples
    --------
    >>> import cytape
    >>> np.matrix_transpose(cytape.constant([[[1.0, 2.0]]])).shape
    (1, 2, 1)
    """
    return transpose(x, _permutation(np.matrix_transpose, x))


def moveaxis(a, source, destination):
    """Move axes to other positions, as `numpy.moveaxis`.

    Examples
    --------
    >>> import cytape
    >>> np.moveaxis(cytape.constant([[[1.0, 2.0]]]), -1, 0).shape
    (2, 1, 1)
    """
    return transpose(a, _permutation(np.moveaxis, a, source, destination))


def rollaxis(a, axis, start=0):
    """Move one axis in front of another, as `numpy.rollaxis`.

    Examples
    --------
    >>> import cytape
    >>> np.rollaxis(cytape.constant([[[1.0, 2.0]]]), 2).shape
    (2, 1, 1)
    """
    return transpose(a, _permutation(np.rollaxis, a, axis, start))


# -- broadcasting ----------------------------------------------------------------------------------


def broadcast_to(array, shape, subok=False):
    """Broadcast to a shape, as `numpy.broadcast_to`.

    Examples
    --------
    >>> import cytape
    >>> np.broadcast_to(cytape.constant([1.0, 2.0]), (2, 2)).numpy()
    array([[1., 2.],
           [1., 2.]])
    """
    options = only_numpy("broadcast_to", [array], subok=subok or None)
    return broadcast_to_op(array, shape=shape, **options)


def broadcast_arrays(*args, subok=False):
    """Broadcast against each other, as `numpy.broadcast_arrays`.

    Examples
    --------
    >>> import cytape
    >>> [a.shape for a in np.broadcast_arrays(cytape.constant([[1.0], [2.0]]), 3.0)]
    [(2, 1), (2, 1)]
    """
    if not any(map(is_tensor, args)):
        return np.broadcast_arrays(*args, subok=subok)
    common = np.broadcast_shapes(*map(shape, args))
    return tuple(broadcast_to(a, common) for a in tensors_if_any(args))


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinate grids from coordinate vectors, as `numpy.meshgrid`.

    Examples
    --------
    >>> import cytape
    >>> x, y = np.meshgrid(cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0, 5.0]))
    >>> x.shape
    (3, 2)
    """
    if not any(map(is_tensor, xi)):
        return np.meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing)
    outlines = np.meshgrid(*(np.empty(size(x)) for x in xi), sparse=True, indexing=indexing)
    grids = tuple(
        reshape(x, outline.shape) for x, outline in zip(tensors_if_any(xi), outlines, strict=True)
    )
    return grids if sparse else broadcast_arrays(*grids)


NUMPY_FUNCTIONS = {
    np.atleast_1d: atleast_1d,
    np.atleast_2d: atleast_2d,
    np.atleast_3d: atleast_3d,
    np.broadcast_arrays: broadcast_arrays,
    np.broadcast_to: broadcast_to,
    np.expand_dims: expand_dims,
    np.matrix_transpose: matrix_transpose,
    np.meshgrid: meshgrid,
    np.moveaxis: moveaxis,
    np.ndim: ndim,
    np.ravel: ravel,
    np.reshape: reshape,
    np.rollaxis: rollaxis,
    np.shape: shape,
    np.size: size,
    np.squeeze: squeeze,
    np.swapaxes: swapaxes,
    np.transpose: transpose,
}
