"""Ops that take elements along the last axis by an array of indices, and put them back."""

import math

import numpy as np

from cytape.ops.adjoints.conform import stand_in
from cytape.ops.adjoints.tangent_batches import batch_outline
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.kernels.gather import are_alike, taken
from cytape.ops.kernels.scatter import added
from cytape.ops.shapes import shape_rules
from cytape.tensor.values.spec import symbolic_spec


def added_at(shape, index, values):
    """Add values into zeros; indices may repeat."""
    values = np.asarray(values)
    total = added(shape, index, values)
    if total is not None:
        return total
    if values.dtype == np.float16:  # rounding would lose late terms
        return added_at(shape, index, values.astype(np.float32)).astype(values.dtype)
    total = np.zeros(shape, values.dtype)
    np.add.at(total, index, values)
    return total


def put_elements(values, indices, like=None, *, size=None, unique):
    """Put, or add, values into lines of `size` zeros."""
    size = like.shape[-1] if size is None else size
    shape = values.shape[:-1] + (size,)
    if not size:  # nothing was taken from there
        return np.zeros(shape, values.dtype)
    if indices.shape != values.shape:
        indices = np.broadcast_to(indices, values.shape)
    if unique:
        if values.shape[-1] == size and are_alike(values):
            return values
        total = np.zeros(shape, values.dtype)
        if values.ndim == 1:
            total[indices] = values
        else:
            np.put_along_axis(total, indices, values, -1)
        return total
    if values.ndim == 1:
        return added_at(shape, indices, values)
    n_elements = math.prod(shape)
    lines = np.arange(0, n_elements, max(size, 1)).reshape(*shape[:-1], 1)
    return added_at((n_elements,), (lines + indices).reshape(-1), values.reshape(-1)).reshape(shape)


def take_elements(x, indices, *, unique):
    """Take the elements at indices of lines."""
    if not x.shape[-1]:  # the derivative of a line without elements is zero
        lead = np.broadcast_shapes(x.shape[:-1], indices.shape[:-1])
        return np.zeros((*lead, indices.shape[-1]), x.dtype)
    if x.ndim == indices.ndim == 1:
        found = taken(x, indices, 0, "raise")
        return x[indices] if found is None else found
    return np.take_along_axis(x, indices, -1)


def _spec(x, indices, **_):
    lead = shape_rules.broadcast(x.shape[:-1], indices.shape[:-1], what="indices of lines")
    return symbolic_spec((*lead, indices.shape[-1]), x.dtype)


def lines_in_batch(call):
    """Match lines by their position in the batch; shared ones broadcast."""
    if len({spec.ndim for spec in call.input_specs}) > 1:
        return NotImplemented
    if call.mapped == [True, False]:
        return call.again([call.inputs[0], call.inputs[1][None]])
    return batch_axis.stacked(call)


def _put_in_batch(call):
    values, indices, *like = call.inputs
    if not like:
        return lines_in_batch(call)
    return call.again([values, indices[None], batch_outline(values, *like)]) if (
        call.mapped == [True, False, False]) else NotImplemented


def _put_spec(values, indices, like=None, *, size=None, **_):
    if like is not None:
        return shape_rules.like_second(values, like)
    return symbolic_spec((*values.shape[:-1], size), values.dtype)


take_along_op = multilinear(
    "TakeAlong", take_elements,
    lambda op, g, indices: put_along(g, indices, op.input_specs[0], **op.attrs),
    shape_rule=_spec, batch=lines_in_batch)
put_along_op = multilinear(
    "PutAlong", put_elements,
    lambda op, g, indices, *_: take_along_op(g, indices, unique=op.attrs["unique"]), None, None,
    shape_rule=_put_spec, batch=_put_in_batch)


def take_along(x, indices, unique=False):
    """Take the elements at indices (not negative) along the last axis.

    unique: whether no index occurs twice in a line.
    """
    return take_along_op(x, indices, unique=unique)


def put_along(values, indices, spec, unique=False):
    """Put, or add, values into zeros of a spec's last extent, at indices along the last axis."""
    if spec.shape[-1] is None:
        return put_along_op(values, indices, stand_in(spec), unique=unique)
    return put_along_op(values, indices, size=spec.shape[-1], unique=unique)
