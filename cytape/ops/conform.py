"""Making gradients and tangents fit: to a shape, by summing or broadcasting, and to a dtype."""

import numpy as np

from cytape.ops.declare import linear
from cytape.ops.dispatch import install_conform
from cytape.tensor.tensor import Tensor


def _sum_to(x, shape):
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(lead + axis for axis, extent in enumerate(shape)
                            if extent == 1 and x.shape[lead + axis] != 1))
    return np.add.reduce(x, axis=axes, keepdims=True).reshape(shape)


def _cast(x, dtype):
    x = np.asarray(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = x.real
    return x.astype(dtype)


def _sum_batch_to(x, shape):
    lead = x.ndim - 1 - len(shape)
    total = sum_to_op(x, shape=x.shape[:1] + (1,) * lead + tuple(shape))
    return total.reshape(x.shape[:1] + tuple(shape))


def broadcast_batch_to(x, shape):
    """Broadcast a batch of tensors, one along the first axis, each to a shape."""
    lead = len(shape) + 1 - x.ndim  # a shape may be an array
    x = x.reshape(x.shape[:1] + (1,) * lead + x.shape[1:])
    return np.broadcast_to(x, x.shape[:1] + tuple(shape))


sum_to_op = linear(
    "SumTo", _sum_to,
    transpose=lambda op, g: broadcast_to_op(g, shape=op.input_specs[0].shape),
    batched=_sum_batch_to)
broadcast_to_op = linear(
    "BroadcastTo", lambda x, shape: np.broadcast_to(x, shape),
    transpose=lambda op, g: sum_to(g, op.input_specs[0]),
    batched=lambda x, shape: broadcast_batch_to(x, np.atleast_1d(shape)))
cast_op = linear(
    "Cast", _cast,
    transpose=lambda op, g: cast(g, op.input_specs[0].dtype),
    batched=lambda x, dtype: cast(x, dtype))


def sum_to(x, spec):
    """Sum a tensor over the axes along which the spec's shape was broadcast to its shape."""
    return x if x.shape == spec.shape else sum_to_op(x, shape=spec.shape)


def broadcast_to(x, shape):
    """Broadcast a tensor to a shape."""
    return x if x.shape == shape else broadcast_to_op(x, shape=shape)


def cast(x, dtype):
    """Convert a tensor to a dtype; a complex one to a real one by its real part."""
    return x if isinstance(x, Tensor) and x.dtype == dtype else cast_op(x, dtype=dtype)


install_conform(cast=cast, sum_to=sum_to, broadcast_to=broadcast_to)
