"""Shapes: queries, reshapes and transposes."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import cytape.ops.shapes.known_shapes as known_shapes
from cytape.ops.adjoints.conform import count_op, identity_op
from cytape.ops.adjoints.memory_order import (
    axes_in_memory,
    is_contiguous,
    order_in_memory,
    with_memory,
)
from cytape.ops.adjoints.tangent_batches import batch_outline, reshape_batch
from cytape.ops.calls.operands import axis_in_batch, is_tensor, joined, tensors_if_any
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import structural
from cytape.ops.shapes import shape_rules
from cytape.tensor import Tensor
from cytape.tensor.values.spec import UnknownShape

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "expand_dims",
    "isscalar",
    "matrix_transpose",
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


def shape(a) -> Any:
    """Return the shape of an array or tensor, as `numpy.shape`.

    Examples
    --------
    >>> import cytape
    >>> np.shape(cytape.constant([1.0, 2.0]))
    (2,)
    """
    return a.shape if type(a) is Tensor else joined(a).shape if is_tensor(a) else np.shape(a)


def shape_of_any(a):
    """Return the shape of an array or tensor, or raise if not even its rank is known."""
    if type(a) is not Tensor and not is_tensor(a):
        return np.shape(a)
    return shape_rules.shape_of(joined(a).spec, "this function")


def ndim(a) -> Any:
    """Return the number of axes of an array or tensor, as `numpy.ndim`.

    Examples
    --------
    >>> import cytape
    >>> np.ndim(cytape.constant([1.0, 2.0]))
    1
    """
    n_axes = a.ndim if type(a) is Tensor else None
    return len(shape_of_any(a)) if n_axes is None else n_axes


def isscalar(element) -> Any:
    """Return whether an object is a scalar, as `numpy.isscalar`; a 0-d tensor is one.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as cnp
    >>> cnp.isscalar(cytape.constant(1.0)), cnp.isscalar(cytape.constant([1.0]))
    (True, False)
    """
    if isinstance(element, Tensor):
        return element.spec.shape == ()
    return np.isscalar(element)


def size(a, axis=None) -> Any:
    """Return the number of elements, in all or along the given axes, as `numpy.size`.

    A tensor for a symbolic tensor of unknown extents.

    Examples
    --------
    >>> import cytape
    >>> np.size(cytape.constant([1.0, 2.0]))
    2
    """
    a = joined(a)
    if is_tensor(a) and not a.spec.known:
        return _size_unknown(a, axis)
    return np.size(outline(a) if is_tensor(a) else a, axis)


def _size_unknown(a, axis):
    """Return the size as a number if it is known, else as a tensor."""
    axes = None if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if a.shape is not None:
        axes = shape_rules.axes_of(axes, a.ndim)
        known = shape_rules.product(a.shape[i] for i in axes)
        if known is not None:
            return known
    return count_op(a, axis=axes, dtype=np.dtype(np.intp), at_least=0)


def extents(a):
    """Return the shape of a tensor, with tensors in place of unknown extents."""
    if type(a) is Tensor and a.spec.known:
        return a.shape
    return tuple([size(a, axis) for axis in range(ndim(a))])


def outline(tensor):
    """Return an array of the tensor's shape without data, for NumPy's checks of arguments."""
    return np.broadcast_to(np.empty((), bool), tensor.shape)


# -- the same elements in the same order -----------------------------------------------------------


def _reshape_back(op, g):
    return reshape(g, op.input_specs[0].extents, op.attrs.get("order", "C"))


# Methods of ndarray, which skip the dispatch of NumPy's functions.
def _reshape(x, operand=None, *, shape=..., order="C", **options):
    if operand is not None:
        shape = operand.shape if shape is ... else operand.tolist()
    if options or type(x) is not np.ndarray:
        return np.reshape(x, shape, order, **options)
    return x.reshape(shape, order=order)


def _transpose(x, axes):
    return x.transpose(axes) if type(x) is np.ndarray else np.transpose(x, axes)


def _reshape_in_batch(call):
    x, *operands = call.inputs
    if not operands:
        return _reshape_batch(x, **call.attrs)
    [spec] = call.output_specs
    if any(call.mapped[1:]):
        return NotImplemented
    if spec.known and None not in x.shape:
        return _reshape_batch(x, spec.shape, call.attrs["order"])
    if "shape" in call.attrs or call.attrs["order"] != "C":
        return NotImplemented
    return reshape_op(x, batch_outline(x, *operands), order="C")


def _reshape_batch(x, shape, order, **options):
    if not x.shape[0] and None not in x.shape[1:]:  # the extent of one member for -1
        shape = np.broadcast_to(False, x.shape[1:]).reshape(shape).shape
    if x.shape[0] is None:
        return reshape_batch(x, shape_rules.as_shape(shape), order)
    if order == "F":  # the batch axis goes last
        shape = (*np.atleast_1d(shape), len(x))
        return moveaxis(reshape(moveaxis(x, 0, -1), shape, order), -1, 0)
    return reshape(x, (len(x), *np.atleast_1d(shape)))


def _reshaping(name, forward, shape_rule, unknown=None):
    """Declare an op that reshapes; `forward` computes the new shape from the shape alone.

    `unknown` is the function for a batch of tensors with unknown extents.
    """

    def reshape_each(x, **attrs):
        if None in x.shape[1:]:
            return NotImplemented if unknown is None else unknown(x, **attrs)
        one = np.broadcast_to(np.empty((), bool), x.shape[1:])
        return _reshape_batch(x, forward(one, **attrs).shape, "C")

    return structural(
        name, forward, None, transpose=_reshape_back, batched=reshape_each, shape_rule=shape_rule,
        same_if_same_spec=True,
    )  # fmt: skip


# The attribute `shape` is the shape of the result if there is no second operand. If there is one
# and no attribute, the result gets the shape of the operand. If there are both, the elements of the
# operand are the extents, and the attribute is the shape as far as the graph knows it, or None.
reshape_op = structural(
    "Reshape", _reshape, None, transpose=_reshape_back, shape_rule=known_shapes.reshape, moving=1,
    batch=_reshape_in_batch, same_if_same_spec=True,
)  # fmt: skip
squeeze_op = _reshaping(
    "Squeeze", np.squeeze, shape_rules.squeeze,
    unknown=lambda x, axis: (
        NotImplemented if axis is None else squeeze(x, axis_in_batch(axis, x.ndim))))
expand_dims_op = _reshaping(
    "ExpandDims", np.expand_dims, known_shapes.expand_dims,
    unknown=lambda x, axis: expand_dims(x, axis_in_batch(axis, x.ndim + np.size(axis))))
atleast_1d_op = _reshaping("AtLeast1D", np.atleast_1d, shape_rules.at_least(1))
atleast_2d_op = _reshaping("AtLeast2D", np.atleast_2d, shape_rules.at_least(2))
atleast_3d_op = _reshaping("AtLeast3D", np.atleast_3d, shape_rules.at_least(3))


def reshape(a, /, shape, order="C", *, copy=None) -> Any:
    """Arrange the same elements in another shape, as `numpy.reshape`.

    Examples
    --------
    >>> import cytape
    >>> np.reshape(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), -1).numpy()
    array([1., 2., 3., 4.])
    """
    if copy is not None or order not in ("C", "F"):
        return _reshape_memory(a, shape, order, copy)
    if shape is None and is_tensor(a):
        return reshape_op(a, a, order="C")  # as NumPy
    if type(shape) is UnknownShape and is_tensor(a):
        return reshape_unknown(a, shape, order)
    if holds_symbol(shape):
        return _reshape_dynamically(a, shape, order)
    if type(shape) is list and len(shape) != 1:  # mutable attributes are copied
        shape = tuple(shape)
    if type(shape) is tuple and len(shape) == 1 and shape[0] is not None:
        shape = shape[0]
    if order == "F" and is_tensor(a):
        return transpose(reshape(transpose(a), shape if np.ndim(shape) == 0 else shape[::-1]))
    return reshape_op(a, shape=shape, order=order)


def _reshape_memory(a, shape, order, copy):
    """Reshape with an `order` or `copy` that affects the result."""
    if not is_tensor(a):
        return np.reshape(a, shape, order, copy=copy)
    a = joined(a)
    if order not in ("C", "F", "A"):
        np.reshape(np.empty(1), 1, order)  # raises NumPy's error
    order = order_in_memory(a, order)
    if copy is not None and not copy and not is_contiguous(a, order):
        np.reshape(with_memory(a), shape, order, copy=False)  # raises if it needs a copy
    return reshape(identity_op(a) if copy else a, shape, order)


def _is_symbol(n):
    return is_tensor(n) and n.graph is not None


def holds_symbol(shape):
    if type(shape) is int:
        return False
    if not isinstance(shape, (tuple, list)):
        return _is_symbol(shape)
    for n in shape:  # no call for usual extents
        if type(n) is not int and _is_symbol(n):
            return True
    return False


def _reshape_dynamically(a, shape, order):
    """Reshape to a shape with extents that are known only when a graph runs."""
    if isinstance(shape, tuple | list):
        extents = tuple([None if _is_symbol(n) or n == -1 else int(n) for n in shape])
        shape = np.stack([n if is_tensor(n) else np.asarray(n) for n in shape])
    elif shape.ndim == 0:
        extents = (None,)
    else:
        extents = (None,) * shape.size if shape.spec.known else None
    return reshape_op(a, shape, shape=extents, order=order)


def reshape_unknown(a, shape, order="C"):
    """Reshape to the shape of another tensor, which has unknown extents."""
    if a.spec.extents is shape:
        return a
    if shape.count(None) == 1 and 0 not in shape:
        shape = tuple([-1 if n is None else n for n in shape])
        return reshape_op(a, shape=shape, order=order)
    return reshape_op(a, shape.tensor(), order=order)


def ravel(a, order="C") -> Any:
    """Arrange all elements along one axis, as `numpy.ravel`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.ravel(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 2., 3., 4.])
    """
    if type(a) is not Tensor and not is_tensor(a):
        return np.ravel(a, order)
    if order != "C":
        np.ravel(0, order)  # raises NumPy's error
        a = joined(a)
        if order == "F":
            shape_rules.shape_of(a.spec, "ravel in order 'F'")
        axes = axes_in_memory(a, order)
        a = a if axes is None else transpose(a, axes)
    return reshape_op(a, shape=(-1,), order="C")  # a tuple: NumPy copies strided arrays for it


def squeeze(a, axis=None) -> Any:
    """Remove axes of length one, as `numpy.squeeze`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.squeeze(cytape.constant([[1.0, 2.0]])).shape
    (2,)
    """
    return squeeze_op(a, axis=axis)


def expand_dims(a, axis) -> Any:
    """Insert axes of length one, as `numpy.expand_dims`.

    Examples
    --------
    >>> import cytape
    >>> np.expand_dims(cytape.constant([1.0, 2.0]), -1).shape
    (2, 1)
    """
    return expand_dims_op(a, axis=axis)


def _atleast(op, n, arys):
    if len(arys) == 1 and isinstance(arys[0], Tensor):
        return arys[0] if (arys[0].ndim or 0) >= n else op(arys[0])
    results = tuple([a if isinstance(a, Tensor) and (a.ndim or 0) >= n else op(a)
                     for a in tensors_if_any(arys)])
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys) -> Any:
    """View with at least one axis, as `numpy.atleast_1d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_1d(cytape.constant(1.0)).shape
    (1,)
    """
    return _atleast(atleast_1d_op, 1, arys)


def atleast_2d(*arys) -> Any:
    """View with at least two axes, as `numpy.atleast_2d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_2d(cytape.constant([1.0, 2.0])).shape
    (1, 2)
    """
    return _atleast(atleast_2d_op, 2, arys)


def atleast_3d(*arys) -> Any:
    """View with at least three axes, as `numpy.atleast_3d`.

    Examples
    --------
    >>> import cytape
    >>> np.atleast_3d(cytape.constant([1.0, 2.0])).shape
    (1, 2, 1)
    """
    return _atleast(atleast_3d_op, 3, arys)


# -- axes in another order -------------------------------------------------------------------------


def _transpose_back(op, g):
    axes = op.attrs["axes"]
    if axes is not None:
        axes = tuple(np.argsort(normalize_axis_tuple(axes, g.ndim)))
    return transpose(g, axes)


def _transpose_batch(x, axes):
    axes = range(x.ndim - 1)[::-1] if axes is None else normalize_axis_tuple(axes, x.ndim - 1)
    return transpose(x, (0, *[axis + 1 for axis in axes]))


transpose_op = structural(
    "Transpose", _transpose, None, transpose=_transpose_back, batched=_transpose_batch,
    shape_rule=known_shapes.transpose, stays_view=True,
)  # fmt: skip


def transpose(a, axes=None) -> Any:
    """Put the axes in another order, by default the reverse, as `numpy.transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.transpose(cytape.constant([[1.0, 2.0]])).shape
    (2, 1)
    """
    return transpose_op(a, axes=axes)


permute_dims = transpose


def _permutation(numpy_function, a, *arguments):
    """Return the axes for which `transpose` equals a function that only moves axes."""
    for x in arguments:
        if type(x) is not int:  # True == 1, for example
            return _moved_axes.__wrapped__(numpy_function, ndim(a), *arguments)
    return _moved_axes(numpy_function, ndim(a), *arguments)


@lru_cache
def _moved_axes(numpy_function, n_axes, *arguments):
    return shape_rules.order_of_axes(numpy_function, n_axes, *arguments)


swap_axes_op = structural(
    "SwapAxes", lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2), None,
    transpose=lambda op, g: swapaxes(g, **op.attrs),
    shape_rule=shape_rules.swap_axes,
    batch=batch_axis.along("axis1", "axis2"),
)  # fmt: skip


def swapaxes(a, axis1, axis2) -> Any:
    """Interchange two axes, as `numpy.swapaxes`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.swapaxes(cytape.constant([[1.0, 2.0]]), 0, 1).shape
    (2, 1)
    """
    return swap_axes_op(a, axis1=axis1, axis2=axis2)


def matrix_transpose(x, /) -> Any:
    """Interchange the last two axes, as `numpy.matrix_transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.matrix_transpose(cytape.constant([[[1.0, 2.0]]])).shape
    (1, 2, 1)
    """
    if ndim(x) < 2:
        np.matrix_transpose(np.empty((0,) * ndim(x)))  # raises NumPy's error
    return swap_axes_op(x, axis1=-2, axis2=-1)


def moveaxis(a, source, destination) -> Any:
    """Move axes to other positions, as `numpy.moveaxis`.

    Examples
    --------
    >>> import cytape
    >>> np.moveaxis(cytape.constant([[[1.0, 2.0]]]), -1, 0).shape
    (2, 1, 1)
    """
    return transpose_op(a, axes=_permutation(np.moveaxis, a, source, destination))


def rollaxis(a, axis, start=0) -> Any:
    """Move one axis in front of another, as `numpy.rollaxis`.

    Examples
    --------
    >>> import cytape
    >>> np.rollaxis(cytape.constant([[[1.0, 2.0]]]), 2).shape
    (2, 1, 1)
    """
    return transpose_op(a, axes=_permutation(np.rollaxis, a, axis, start))
