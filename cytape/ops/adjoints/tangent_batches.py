"""Batches of tangents with extents that are known only when a graph runs.

A batch has an axis of directions in front of its primal's axes. If an extent or the number of
directions is unknown, ops that need a shape read it from an outline: a tensor of that shape whose
elements take no memory.
"""

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.conform import (
    broadcast_batch_to,
    broadcast_to_op,
    count_op,
    fit_like_op,
    stand_in,
    sum_batch_to,
    sum_to_op,
)
from cytape.ops.engine.batch_axis import of_factor, with_axes
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.tensor.making import constant
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec


def _outline(batch, like, *, lead=0):
    return np.broadcast_to(False, batch.shape[:1] + (1,) * lead + like.shape)


def _outline_spec(batch, like, *, lead=0):
    if batch.shape is None or like.shape is None:
        return symbolic_spec(None, np.dtype(bool))
    return symbolic_spec((batch.shape[0], *(1,) * lead, *like.shape), np.dtype(bool))


def _units(*sources, place):
    sizes = [source.size for source in sources]
    start, source = sum(sizes[:place]), sources[place]
    units = np.zeros((sum(sizes), source.size), source.dtype)
    units[start : start + source.size] = np.eye(source.size)
    return units.reshape(-1, *source.shape) if source.size else units.reshape(
        len(units), *source.shape)


batch_outline_op = nondifferentiable("BatchOutline", _outline, shape_rule=_outline_spec)
unit_directions_op = nondifferentiable(
    "UnitDirections", _units,
    shape_rule=lambda *sources, place: symbolic_spec(
        (None, *sources[place].shape), sources[place].dtype))


def is_known(x):
    """Return whether all extents of an array or tensor are known."""
    return not isinstance(x, Tensor) or x.spec.known


def batch_outline(batch, like, lead=0):
    """Return a tensor in the shape of a batch of tensors like another one.

    Parameters
    ----------
    batch : Tensor
        Has the right number of directions.
    like : Tensor or Spec
    lead : int
        How many axes of length one to put between.
    """
    return batch_outline_op(batch, stand_in(like) if hasattr(like, "extents") else like, lead=lead)


def broadcast_batch_like(batch, like):
    """Broadcast each tensor of a batch to the shape of a tensor or spec."""
    return broadcast_to_op(with_axes(batch, like.ndim), batch_outline(batch, like))


def zeros_in_batch(batch, like):
    """Return zeros like a tensor, one for each direction of a batch."""
    return broadcast_to_op(constant(0, like.dtype), batch_outline(batch, like))


def sum_batch_like(batch, like):
    """Sum each tensor of a batch over the axes along which `like` was broadcast to its shape."""
    lead = batch.ndim - 1 - like.ndim
    total = sum_to_op(batch, batch_outline(batch, like, lead))
    return total.reshape(batch_outline(batch, like).spec.extents) if lead else total


def reshape_batch(batch, shape, order="C"):
    """Reshape each tensor of a batch to a shape, given as a tuple."""
    if None in shape:
        raise SymbolicTensorError(f"cannot give each tensor of a batch the shape {shape}")
    if batch.shape[0] is not None:
        return batch.reshape((batch.shape[0], *shape), order=order)
    if -1 in shape or 0 in shape:
        return batch.reshape(
            (count_op(batch, axis=(0,), dtype=np.dtype(np.intp), at_least=0), *shape), order=order)
    return batch.reshape((-1, *shape), order=order)


# -- batches in ops that read the shape of another tensor ------------------------------------------


def _to_shape(in_batch, like_in_batch):
    """Return the rule of an op with a shape for its attribute, or an operand of that shape."""

    def rule(call):
        x, *like = call.inputs
        if call.mapped != [True] + [False] * len(like):
            return NotImplemented
        [spec] = call.output_specs
        if spec.known and is_known(x):
            return in_batch(x, spec.shape)
        return like_in_batch(x, *like or [spec])

    return rule


sum_to_op.batch = _to_shape(sum_batch_to, sum_batch_like)
broadcast_to_op.batch = _to_shape(
    lambda x, shape: broadcast_batch_to(x, np.atleast_1d(shape)), broadcast_batch_like)
fit_like_op.batch = of_factor(lambda op, _, t, like: fit_like_op(t, batch_outline(t, like)))
