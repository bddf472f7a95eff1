"""Casts of gradients and tangents to a dtype, and sums and broadcasts of them to a shape."""

import math

import numpy as np

import cytape.ops.shapes.known_shapes as known_shapes
from cytape.core.tape import IDENTITY
from cytape.ops.calls.operands import dtypes_of_operands, only_numpy, wide, without_layout
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import linear, multilinear, nondifferentiable, structural
from cytape.ops.shapes import shape_rules
from cytape.tensor.making import constant
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import UnknownShape, spec_like, symbolic_spec

WORTH_SHOWING = 2048  # elements above which a uniform array is not copied


def _sum_to(x, like=None, *, shape=None):
    shape = like.shape if shape is None else shape
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(lead + axis for axis, extent in enumerate(shape)
                            if extent == 1 and x.shape[lead + axis] != 1))
    total = _reduced(x, axes)
    if total.shape[lead:] != tuple(shape):  # a node that does not run may have an invalid shape
        raise ValueError(
            f"operands could not be broadcast: one of shape {tuple(shape)} to shape {x.shape}")
    return total.reshape(shape)


def _sum_extra(x, shape):
    axes = tuple([i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if m == 1 != n])
    return _reduced(x, axes)


def _reduced(x, axes):
    # In half precision rounding would lose late terms.
    total = np.add.reduce(x, axis=axes, dtype=wide(x.dtype), keepdims=True)
    return total.astype(x.dtype, copy=False)


def is_one_number(x):
    """Return whether an array repeats one number by strides of zero, as gradients of sums do."""
    return x.size > 0 and not any(x.strides)


def _cast(x, dtype):
    x = x if type(x) is np.ndarray else np.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = x.real
    if x.size > WORTH_SHOWING and is_one_number(x):  # the result is uniform, too
        return np.ndarray(x.shape, dtype, x[(0,) * x.ndim].astype(dtype), strides=(0,) * x.ndim)
    return x.astype(dtype)


def _count(x, axis, dtype, at_least):
    axes = range(x.ndim) if axis is None else axis
    return np.asarray(max(math.prod([x.shape[i] for i in axes]), at_least), dtype)


def sum_batch_to(x, shape):
    """Sum each tensor of a batch to a shape."""
    lead = x.ndim - 1 - len(shape)
    total = sum_to_op(x, shape=x.shape[:1] + (1,) * lead + tuple(shape))
    return total.reshape(x.shape[:1] + tuple(shape))


def broadcast_batch_to(x, shape):
    """Broadcast a batch of tensors, one along the first axis, each to a shape."""
    lead = len(shape) + 1 - x.ndim  # a shape may be an array
    x = x.reshape(x.shape[:1] + (1,) * lead + x.shape[1:])
    return np.broadcast_to(x, x.shape[:1] + tuple(shape))


# Without a shape, the shape is that of a second operand, which the graph does not know yet.
sum_to_op = linear(
    "SumTo", _sum_to,
    transpose=lambda op, g: broadcast_to(g, op.input_specs[0].extents),
    shape_rule=shape_rules.to_shape, moving=1, lowering="SUM",
    same_if_same_spec=True)
broadcast_to_op = structural(
    "BroadcastTo",
    lambda x, like=None, *, shape=None: np.broadcast_to(x, like.shape if shape is None else shape),
    None, transpose=lambda op, g: sum_to(g, op.input_specs[0]),
    shape_rule=known_shapes.broadcast_to, moving=1, same_if_same_spec=True)
fit_like_op = multilinear(  # sums or broadcasts each axis, as its extent at run time requires
    "FitLike", lambda x, like: np.broadcast_to(_sum_extra(x, like.shape), like.shape),
    lambda op, g, _: fit_like(g, op.input_specs[0]), None, shape_rule=shape_rules.like_second)
broadcast_outline_op = nondifferentiable(
    "BroadcastOutline",
    lambda *arrays: np.broadcast_to(False, np.broadcast_shapes(*[a.shape for a in arrays])),
    shape_rule=lambda *specs: spec_like(
        shape_rules.broadcast_specs(specs, "broadcast_arrays"), np.dtype(bool)))
count_op = nondifferentiable(
    "Count", _count, shape_rule=lambda x, dtype, **_: symbolic_spec((), dtype))
# late: control inputs delay it until gradients have arrived; recomputed ops read its output.
identity_op = linear(
    IDENTITY, forward=lambda x, name=None, late=False: x, transpose=lambda op, g: g,
    shape_rule=shape_rules.same, batch=lambda call: call.inputs[0], lowering="SHOWN",
    same_if_same_spec=True, passes_gradients=True)
cast_op = linear(
    "Cast", _cast,
    transpose=lambda op, g: cast(g, op.input_specs[0].dtype),
    shape_rule=shape_rules.cast, batch=batch_axis.aligned, lowering="CONVERTED",
    same_if_same_spec=True, is_passed_over=True)


def sum_to(x, spec):
    """Sum a tensor over the axes along which the spec's shape was broadcast to its shape."""
    if not spec.known:
        if isinstance(x, Tensor) and x.spec.extents is spec.extents:
            return x
        return sum_to_op(x, spec.extents.tensor())
    return x if x.shape == spec.shape else sum_to_op(x, shape=spec.shape)


def broadcast_to(x, shape):
    """Broadcast a tensor to a shape."""
    if isinstance(shape, UnknownShape):
        if isinstance(x, Tensor) and x.spec.extents is shape:
            return x
        return broadcast_to_op(x, shape.tensor())
    return x if x.shape == shape else broadcast_to_op(x, shape=shape)


def fill_like(tensor, number):
    """Return a tensor in the shape and dtype of another one, whose extents may be unknown."""
    scalar = constant(number, tensor.dtype)
    if tensor.spec.known:
        return broadcast_to(scalar, tensor.spec.shape)
    return broadcast_to_op(scalar, tensor)


def fit_like(x, spec):
    """Sum or broadcast a tensor along each axis to the shape of a spec."""
    if not isinstance(x, Tensor):
        return fit_like_op(x, np.broadcast_to(np.empty((), spec.dtype), spec.shape))
    return x if x.spec.extents is spec.extents else fit_like_op(x, stand_in(spec))


def widened(x):
    """Return a tensor in a precision for counts or sums of many elements."""
    dtype = wide(x.dtype)
    return x if x.dtype == dtype else cast(x, dtype)


def widely(add_up, x):
    """Return ``add_up(x)`` in the dtype of `x`, half precision summed in single precision."""
    if x.dtype == wide(x.dtype):
        return add_up(x)
    return cast(add_up(widened(x)), x.dtype)


def countable(n, dtype):
    """Return a count as a divisor for a dtype; in half precision it might overflow."""
    return n if wide(dtype) == dtype else np.float32(n)


def count(spec, axis, at_least=0):
    """Return the number of elements along axes of a spec of unknown extents, as a tensor."""
    dtype = wide(np.empty(0, spec.dtype).real.dtype)
    return count_op(spec.extents.tensor(), axis=axis, dtype=dtype, at_least=at_least)


def stand_in(spec):
    """Return a tensor of a shape, known or not, for ops that only read its shape."""
    if not spec.known:
        return spec.extents.tensor()
    return broadcast_to_op(constant(0, spec.dtype), shape=spec.shape)


def cast(x, dtype):
    """Convert a tensor to a dtype; a complex one to a real one by its real part."""
    if type(x) is np.ndarray:
        return _cast(x, dtype)
    return x if isinstance(x, Tensor) and x.dtype == dtype else cast_op(x, dtype=dtype)


def as_operands(ufunc, operands, keywords):
    """Return the operands of a ufunc call without `out`, cast by `dtype` and `casting`."""
    if not keywords:
        return operands
    keywords = without_layout(keywords)
    dtype, casting = keywords.pop("dtype", None), keywords.pop("casting", "same_kind")
    only_numpy(ufunc.__name__, operands, **keywords)
    if dtype is None and casting == "same_kind":
        return operands
    dtypes = dtypes_of_operands(ufunc, operands, dtype, casting)
    return [cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=True)]
