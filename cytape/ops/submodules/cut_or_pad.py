"""Truncation or zero padding of an axis to a length."""

import numpy as np

from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import structural
from cytape.tensor.values.spec import symbolic_spec


def with_extent(shape, axis, n):
    """Return a shape with another extent of one axis."""
    return (*shape[:axis], n, *shape[axis + 1 :])


def _cut_or_pad(x, *, axis, n):
    """Truncate an axis, or pad it with zeros."""
    result = np.zeros(with_extent(x.shape, axis, n), x.dtype)
    for part, of_x in _common([result], [x], axis=axis, n=n):
        part[...] = of_x
    return result


def _common(results, operands, *, axis, n):
    index = (slice(None),) * axis + (slice(min(n, operands[0].shape[axis])),)
    yield results[0][index], operands[0][index]


cut_or_pad_op = structural(
    "CutOrPad",
    _cut_or_pad,
    _common,
    shape_rule=lambda x, *, axis, n: symbolic_spec(with_extent(x.shape, axis, n), x.dtype),
    batch=batch_axis.along_axis,
)
