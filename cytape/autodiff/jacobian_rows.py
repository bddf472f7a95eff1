"""Rows of Jacobians: what is asked of a tape for each of them, and what they come to together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cytape.autodiff.backward import densify, zeros
from cytape.ops.joining import stack
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import extents, reshape
from cytape.ops.shared.conform import broadcast_to
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.unconnected_gradients import (
    UnconnectedGradients,
)

__all__ = ["stack_rows", "stack_unknown_rows", "unit_seeds"]


def unit_seeds(target: Tensor, ones: Iterable, n_seeds: int) -> Iterable[Tensor]:
    """Yield seeds of zeros with ones at the given flat positions; at least one seed."""
    for where in ones if n_seeds else [slice(0, 0)]:
        if not target.spec.known:  # but for its first extent, along which seeds are all the same
            row = np.zeros(target.shape[1:], target.dtype)
            row.reshape(-1)[where] = 1
            yield broadcast_to(tensor_of(row), target.spec.extents)
            continue
        seed = np.zeros(target.shape, target.dtype)
        seed.reshape(-1)[where] = 1
        yield tensor_of(seed)


def stack_rows(
    rows: tuple, source: Tensor, target_shape: tuple, axis: int, unconnected: UnconnectedGradients
) -> Tensor | None:
    """Put gradients of single elements of the target together, along the target's axes >= axis."""
    if None in target_shape or not source.spec.known:
        return stack_unknown_rows(rows, source, target_shape, axis, unconnected)
    shape = target_shape + source.shape[axis:]
    if all(row is None for row in rows):
        return None if unconnected is UnconnectedGradients.NONE else zeros(shape, source.dtype)
    if 0 in shape:
        return zeros(shape, source.dtype)
    dense = [zeros(source.shape, source.dtype) if row is None else densify(row) for row in rows]
    return reshape(stack(dense, axis=axis), shape)


def stack_unknown_rows(
    rows: tuple, source: Tensor, target_shape: tuple, axis: int, unconnected: UnconnectedGradients
) -> Tensor | None:
    """Do the same in a graph that does not know all extents of the source."""
    if all(row is None for row in rows) and unconnected is UnconnectedGradients.NONE:
        return None
    shape_rules.shape_of(source.spec, "a Jacobian")
    blank = zeros(source.spec.extents, source.dtype)
    dense = [blank if row is None else densify(row) for row in rows]
    stacked = stack(dense, axis=axis)
    known = target_shape if axis == 0 else target_shape[1:]
    if not rows or 0 in known:
        stacked = stacked[(slice(None),) * axis + (slice(0, 0),)]
    before, after = extents(source)[:axis], extents(source)[axis:]
    return reshape(stacked, before + known + after)
