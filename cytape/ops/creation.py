"""Functions that make tensors from tensors: casts, copies, nested lists, coordinate grids."""

import operator
from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import cast_op, identity_op
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.adjoints.memory_order import axes_in_memory, is_contiguous, order_in_memory
from cytape.ops.broadcasting import broadcast_arrays
from cytape.ops.calls.operands import is_tensor, tensors_if_any
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.joining import stack_op
from cytape.ops.python.checkpoint_policy import checked_name
from cytape.ops.shapes import shape_rules
from cytape.ops.shapes.shape_rules import may_fit
from cytape.ops.shaping import (
    expand_dims,
    ndim,
    reshape,
    shape_of_any,
    size,
    transpose,
)
from cytape.tensor import Tensor, convert_to_tensor, nest
from cytape.tensor.tensor import another, is_part
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "array",
    "asarray",
    "astype",
    "copy",
    "meshgrid",
]


# -- conversions -----------------------------------------------------------------------------------


# Casts to integers and other discrete dtypes: the derivative is zero wherever it exists.
cast_to_discrete_op = nondifferentiable(
    "CastToDiscrete", forward=lambda x, dtype: x.astype(dtype), shape_rule=shape_rules.cast,
    batch=batch_axis.aligned, lowering="CONVERTED",
)
constant_op = nondifferentiable(
    "Constant", lambda value: value.numpy(), shape_rule=lambda value: value.spec,
    lowering="CONSTANT")
# apart: an unknown shape of the output does not refer to the input as its owner.
stop_gradient_op = nondifferentiable(
    "StopGradient", forward=lambda x, apart=False: x,
    shape_rule=lambda x, apart=False: symbolic_spec(x.shape, x.dtype) if apart else x,
    batch=batch_axis.aligned, lowering="SHOWN", same_if_same_spec=True)


def astype(x, dtype, /, *, copy=True, device=None) -> Any:
    """Convert to another dtype, as `numpy.astype`.

    The gradient comes back in the dtype of `x`; integers and booleans have none.

    Examples
    --------
    >>> import cytape
    >>> np.astype(cytape.constant([1.5, 2.5]), np.float32).dtype
    dtype('float32')
    """
    if isinstance(dtype, Tensor):
        raise TypeError("astype: expected a dtype, got a tensor: pass its `dtype`")
    if type(x) is not Tensor and not is_tensor(x):
        return np.astype(x, dtype, copy=copy, device=device)
    if device is not None:
        np.astype(np.zeros(1), dtype, device=device)  # raises NumPy's error
    dtype = np.dtype(dtype)
    x = x if type(x) is Tensor else convert_to_tensor(x)
    if x.dtype == dtype:
        return identity_op(x) if copy else x  # a copy, if the result may be written to
    if x.dtype.kind == "c" and dtype.kind != "c":
        np.empty(0, x.dtype).astype(dtype)  # NumPy's warning
    op = cast_op if dtype.kind in "fc" else cast_to_discrete_op
    return op(x, dtype=dtype)


@numpy_function(np.copy)
def copy(a, order="K", subok=False) -> Any:
    """Return another tensor of the same value, as `numpy.copy`.

    Examples
    --------
    >>> import cytape
    >>> np.copy(cytape.constant([1.0, 2.0])).numpy()
    array([1., 2.])
    """
    if order != "K":
        np.copy(0, order)  # raises NumPy's error
    return in_order(a if type(a) is Tensor else convert_to_tensor(a), order)


def in_order(x, order):
    """Return a copy of a tensor that has NumPy's memory layout for an order."""
    axes = axes_in_memory(x, order)
    if axes is None:
        return identity_op(x)
    return transpose(identity_op(transpose(x, axes)), tuple(np.argsort(axes).tolist()))


def result_in_order(result, order, operands):
    """Return the result of a ufunc in order "F", also for "A" if all operands have that order."""
    if order not in ("F", "A") or order == "A" and not all(
            order_in_memory(x, order) == "F" if isinstance(x, Tensor) else np.isfortran(x)
            for x in operands if np.ndim(x) > 1):
        return result
    return in_order(result, "F")


def own_tensor(tensor):
    """Return a tensor that a function may write to without changing the caller's tensor.

    It has the same id, so recorders track it. Views are copied.
    """
    return identity_op(tensor) if is_part(tensor) else another(tensor)


def identity(x, name=None) -> Any:
    """Return another tensor of the same value.

    Parameters
    ----------
    x : array_like or Tensor
    name : str, optional
        Of the operation, if the tensor is of a graph.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", (2,))
    >>> identity(x, name="output")
    <Tensor 'output:0' (float64, shape (2,))>
    """
    result = identity_op(convert_to_tensor(x))
    if name is not None and result.graph is not None:
        result.graph.give_name(result, name)
    return result


def checkpoint_name(x, name) -> Any:
    """Name a value, for policies of `cytape.checkpoint`.

    Parameters
    ----------
    x : array_like, Tensor or structure of them
    name : str
        Any but "nothing", "everything", "dots", and what begins with a minus.

    Returns
    -------
    Tensor, array_like or structure of them
        The same values; what is no tensor is returned as it is.

    Raises
    ------
    TypeError, ValueError
        If the name is no string, or one that policies use otherwise.

    See Also
    --------
    cytape.checkpoint : Its policies.

    Examples
    --------
    >>> import cytape
    >>> @cytape.checkpoint(policy=["hidden"])
    ... def layer(x):
    ...     return np.tanh(cytape.checkpoint_name(np.sin(x), "hidden"))
    >>> round(float(cytape.grad(layer)(0.5)), 6)
    0.703187
    """
    name = checked_name(name)
    return nest.map_structure(
        lambda leaf: identity_op(convert_to_tensor(leaf), name=name) if is_tensor(leaf) else leaf,
        x)


def _join(nested):
    if not is_tensor(nested):
        return plain_array(nested)
    if not isinstance(nested, (list, tuple)):
        return convert_to_tensor(nested)
    return _stacked([_join(part) for part in nested])


def _stacked(parts):
    if not all([may_fit(part.shape, parts[0].shape) for part in parts]):
        np.array([np.empty(part.shape) for part in parts])  # raises NumPy's error on ragged lists
    return stack_op(*parts, axis=0, dtype=None, casting="same_kind")


def _are_of_one_shape(parts):
    """Return whether all parts are tensors of one shape."""
    if not parts or type(parts[0]) is not Tensor:
        return False
    shape = parts[0].shape
    for part in parts:
        if type(part) is not Tensor or part.shape != shape:
            return False
    return True


def _refuse_unknown(function, options):
    """Raise NumPy's errors for invalid parameters of memory: order, copy, device, like."""
    if options:
        function(np.zeros(1), **options)


def array(object, dtype=None, *, copy=True, order="K", ndmin=0, **options) -> Any:
    """Make a tensor of a tensor or of nested sequences that hold tensors, as `numpy.array`.

    `copy` and `order` decide, as in NumPy, whether the result is a copy. With an object dtype it is
    an array of NumPy's whose elements are tensors; another dtype makes a tensor of such an array.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.creation import array
    >>> x = cytape.constant([1.0, 2.0])
    >>> array([[x[0], 0.0], [0.0, x[1]]]).numpy()
    array([[1., 0.],
           [0., 2.]])
    """
    if (dtype is None and not ndmin and order == "K" and copy is True and not options
            and type(object) in (list, tuple) and _are_of_one_shape(object)):
        return stack_op(*object, axis=0, dtype=None, casting="same_kind")
    if (dtype is not None and type(object) is np.ndarray and object.dtype == np.object_
            and np.dtype(dtype) != np.object_ and is_tensor(elements := object.tolist())):
        object = elements
    if not is_tensor(object):
        return np.array(object, dtype, copy=copy, order=order, ndmin=ndmin, **options)
    if order != "K" or copy is not None and type(copy) is not bool or options:
        np.array(np.zeros(1), order=order, copy=copy or None, **options)  # raises NumPy's error
    ndmin = operator.index(ndmin)
    if dtype is not None and np.dtype(dtype) == np.object_:
        return _of_objects(_array(object, None, ndmin))
    result = _array(object, dtype, ndmin)
    needs_copy = order in ("C", "F") and not is_contiguous(result, order)
    if isinstance(object, (list, tuple)) or result.dtype != object.dtype:
        must_copy, needs_copy = True, needs_copy and order == "F"
    else:
        must_copy, needs_copy = needs_copy, needs_copy or copy
    if must_copy and copy is not None and not copy:
        np.array([1], float, copy=False)  # raises NumPy's error
    return in_order(result, order) if needs_copy else result


def snapshot(result):
    """Return a copy of a result of a user's function, which may fill the same buffer again."""
    return array(result) if is_tensor(result) else np.array(result, subok=True)


def _of_objects(tensor):
    """Return NumPy's object array of the elements of a tensor, each a tensor."""
    result = np.empty(tensor.shape, np.object_)
    for index in np.ndindex(tensor.shape):
        result[index] = tensor[index]
    return result


def _array(object, dtype, ndmin=0):
    if isinstance(object, (list, tuple)) and (
            any(isinstance(part, (list, tuple)) for part in object)):
        object = nest.pack_sequence_as(object, list(together(*nest.flatten(object))))
    result = _join(object)
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if ndmin > 0 and ndim(result) < ndmin:
        result = expand_dims(result, tuple(range(ndmin - result.ndim)))
    return result


@numpy_function(np.asarray)
def asarray(a, dtype=None, order=None, **options) -> Any:
    """Return a tensor unchanged, or make one of nested sequences, as `numpy.asarray`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.creation import asarray
    >>> x = cytape.constant([1.0, 2.0])
    >>> asarray(x) is x
    True
    """
    if order is None and not options:
        return _array(a, dtype)
    _refuse_unknown(np.asarray, options)
    return array(a, dtype, order=order or "K", copy=options.get("copy"))


# -- coordinate grids ------------------------------------------------------------------------------


def _grids(xi, swapped):
    """Return several vectors, the i-th of them along axis i."""
    ndim = len(xi)
    order = [1, 0, *range(2, ndim)] if swapped and ndim > 1 else range(ndim)
    return tuple(
        expand_dims(reshape(x, -1), tuple([i for i in range(ndim) if i != axis]))
        for x, axis in zip(xi, order, strict=True)
    )


@numpy_function(np.meshgrid, "xi")
def meshgrid(*xi, copy=True, sparse=False, indexing="xy") -> Any:
    """Coordinate grids from coordinate vectors, as `numpy.meshgrid`.

    Examples
    --------
    >>> import cytape
    >>> x, y = np.meshgrid(cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0, 5.0]))
    >>> x.shape
    (3, 2)
    """
    copied = identity_op if copy else lambda x: x
    if any([None in shape_of_any(x) for x in xi]):
        np.meshgrid(indexing=indexing)  # raises NumPy's error
        grids = _grids(tensors_if_any(xi), swapped=indexing == "xy")
    else:
        outlines = np.meshgrid(*(np.empty(size(x)) for x in xi), sparse=True, indexing=indexing)
        grids = tuple(
            reshape(x, outline.shape)
            for x, outline in zip(tensors_if_any(xi), outlines, strict=True)
        )
    return tuple(map(copied, grids if sparse else broadcast_arrays(*grids)))
