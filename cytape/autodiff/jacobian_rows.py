"""Rows of Jacobians: the backward pass of each row, and their assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from cytape.autodiff.seeds import densify, zeros
from cytape.errors import GraphError, SymbolicTensorError
from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.joining import stack
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import extents, moveaxis, reshape
from cytape.tensor.tensor import Tensor, data_of, tensor_of
from cytape.tensor.unconnected_gradients import (
    UnconnectedGradients,
)

__all__ = [
    "MOST_AT_A_TIME", "columns", "element_seeds", "member_seeds", "stack_rows",
    "stack_unknown_rows",
]  # fmt: skip

FEW = 4  # backward passes; a batch pays for more
MOST_AT_A_TIME = 1 << 20  # elements of directions, or of gradients of rows, in one pass


def element_seeds(target: Tensor) -> Iterable[Tensor]:
    """Yield a seed for each element of a target; at least one."""
    if target.size is None:
        raise SymbolicTensorError(
            "a Jacobian takes one backward pass for each element of the target, but their number "
            f"is known only when the graph runs: the target has shape {target.shape}. Use "
            "cytape.jacfwd, whose forward mode does not need to know it; or take the Jacobian "
            "outside of the traced function, or give the arguments known shapes"
        )
    return unit_seeds(target, range(target.size), target.size)


def member_seeds(target: Tensor, source: Tensor) -> Iterable[Tensor]:
    """Yield a seed for each element of one example, over all examples of a batch."""
    shapes = [shape_rules.shape_of(x.spec, "batch_jacobian") for x in (target, source)]
    if min(map(len, shapes)) < 2 or shape_rules.differ(shapes[0][0], shapes[1][0]):
        raise ValueError(
            "target and source need at least two dimensions and the same first one, "
            f"got shapes {target.shape} and {source.shape}"
        )
    row_size = shape_rules.product(shapes[0][1:])
    if row_size is None:
        raise SymbolicTensorError(
            "batch_jacobian takes one backward pass for each element of target[0], but their "
            f"number is known only when the graph runs: the target has shape {target.shape}. Give "
            "the arguments shapes that are known but for the first extent, or take the Jacobian "
            "outside of the traced function"
        )
    return unit_seeds(target, [slice(i, None, row_size) for i in range(row_size)], row_size)


def unit_seeds(target: Tensor, ones: Iterable, n_seeds: int) -> Iterable[Tensor]:
    """Yield seeds of zeros with ones at the given flat positions; at least one seed."""
    for where in ones if n_seeds else [slice(0, 0)]:
        if not target.spec.known:  # only the first may be unknown
            row = np.zeros(target.shape[1:], target.dtype)
            row.reshape(-1)[where] = 1
            yield broadcast_to(tensor_of(row), target.spec.extents)
            continue
        seed = np.zeros(target.shape, target.dtype)
        seed.reshape(-1)[where] = 1
        yield tensor_of(seed)


def columns(
    gradients: Callable[[Tensor], list], target: Tensor, sources: list[Tensor],
    seeds: Iterable[Tensor],
) -> list[Tensor | tuple]:
    """Compute the gradients of a target by each of its seeds.

    In a graph with known extents, one backward pass is for many seeds.

    Parameters
    ----------
    gradients : callable
        Takes a seed; returns the gradient of each source, None where it is not connected.
    target : Tensor
    sources : list of Tensor
    seeds : iterable of Tensor

    Returns
    -------
    list of (Tensor or tuple)
        For each source its gradients in a tuple, or those in one tensor along the first axis.
    """
    if target.graph is None or not all(x.spec.known for x in (target, *sources)):
        return list(zip(*map(gradients, seeds), strict=True))
    seeds = list(seeds)
    largest = max(x.size for x in (target, *sources))
    at_a_time = MOST_AT_A_TIME // max(largest, 1)
    if min(len(seeds), at_a_time) > FEW:
        try:
            return _in_batches(gradients, np.stack(list(map(data_of, seeds))), at_a_time)
        except (GraphError, SymbolicTensorError):  # not possible for a batch
            pass
    return list(zip(*map(gradients, seeds), strict=True))


def _in_batches(
    gradients: Callable[[Tensor], list], seeds: np.ndarray, at_a_time: int
) -> list[Tensor | tuple]:
    from cytape.graph.batching.vmap import vmap

    connected: list[bool] = []

    def of_one(seed: Tensor) -> list[Tensor]:
        found = gradients(seed)
        connected[:] = [x is not None for x in found]
        return [densify(x) for x in found if x is not None]

    found = iter(vmap(of_one, chunk_size=at_a_time)(tensor_of(seeds)))
    return [next(found) if is_connected else (None,) * len(seeds) for is_connected in connected]


def stack_rows(
    rows: Tensor | tuple, source: Tensor, target_shape: tuple, axis: int,
    unconnected: UnconnectedGradients,
) -> Tensor | None:
    """Assemble gradients of single elements of the target along the target's axes >= axis."""
    if isinstance(rows, Tensor):
        return reshape(moveaxis(rows, 0, axis), target_shape + source.shape[axis:])
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
    """Assemble them in a graph that does not know all extents of the source."""
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
