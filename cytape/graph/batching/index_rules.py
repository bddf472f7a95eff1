"""Batch rules of indexing ops: reads, additions and writes of parts for all members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.engine import batch_axis
from cytape.ops.engine.batch_axis import BatchedCall
from cytape.ops.engine.index_op import index_in_batch
from cytape.ops.engine.op_kinds import find
from cytape.ops.indexing import dynamic_get_item_op, dynamic_index_add_op, filled_in
from cytape.ops.shapes.index_shapes import indexed_shape
from cytape.ops.shaping import expand_dims, moveaxis
from cytape.tensor.tensor import Tensor

__all__ = ["RULES"]


def _alone(call: BatchedCall) -> Any:
    """Compute where all members share the index."""
    return batch_axis.of_factor(call.op.batched)(call)


class _OwnIndex(NamedTuple):
    """An index for all members that contains integers of each member."""

    tensors: list[Tensor]   # tensors in the index, the positions of the members last
    parts: tuple
    place: int              # axes of one member's selection in front of the arrays' axes
    depth: int              # number of the arrays' axes

    def in_front(self, x: Tensor, batch: bool = True) -> Tensor:
        """Move the arrays' axes to NumPy's position for all members: behind the batch axis."""
        return moveaxis(x, self._axes(self.place + batch), self._axes(batch))

    def in_place(self, x: Tensor) -> Tensor:
        """Move the arrays' axes to their position for one member."""
        return moveaxis(x, self._axes(1), self._axes(self.place + 1))

    def _axes(self, first: int) -> tuple[int, ...]:
        return tuple(range(first, first + self.depth))


def _indexed(call: BatchedCall) -> Any:
    """Take, clear or add at integers of each member."""
    n_operands = 2 if call.op is dynamic_index_add_op else 1
    if not any(call.mapped[n_operands:]):
        return _alone(call)
    own = _own_index(call, n_operands)
    if own is None:
        return NotImplemented
    takes = call.op is dynamic_get_item_op
    if takes and not call.mapped[0]:
        return moveaxis(call.again([call.inputs[0], *own.tensors[:-1]]), own.place, 0)
    if not all(spec.known for spec in call.input_specs[:n_operands]):
        return NotImplemented
    operands = [x if mapped else broadcast_to(x, (call.extent, *spec.shape)) for x, mapped, spec in
                list(zip(call.inputs, call.mapped, call.input_specs, strict=True))[:n_operands]]
    if n_operands == 2:
        operands[0] = own.in_front(operands[0])
    found = call.again([*operands, *own.tensors], index=own.parts)
    return own.in_place(found) if takes else found


def _own_index(call: BatchedCall, n_operands: int) -> _OwnIndex | None:
    """Return an index for all members; None if there is none."""
    index = call.attrs["index"]
    parts = index if isinstance(index, tuple) else (index,)
    if call.extent is None or any(
            spec.dtype.kind == "b" for spec in call.input_specs[n_operands:]) or any(
            isinstance(bound, str) for part in parts if isinstance(part, slice)
            for bound in (part.start, part.stop, part.step)) or any(
            isinstance(part, np.ndarray) and part.dtype.kind == "b" for part in parts):
        return None
    if any(part is Ellipsis for part in parts):
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        taken = sum(part is not None for part in parts) - 1
        whole = call.input_specs[1 if call.op is dynamic_index_add_op else 0].ndim - taken
        if not whole and _places(parts[:at]) and _places(parts[at + 1:]):  # it separates arrays
            return None
        parts = (*parts[:at], *[slice(None)] * whole, *parts[at + 1:])
    places = _places(parts)
    depth = max([spec.ndim for spec in call.input_specs[n_operands:]] + [
        part.ndim for part in parts if isinstance(part, np.ndarray)])
    others = [batch_axis.with_axes(x, depth) if mapped and spec.ndim < depth else x
              for x, mapped, spec in list(zip(
                  call.inputs, call.mapped, call.input_specs, strict=True))[n_operands:]]
    together = places[-1] - places[0] < len(places)  # else NumPy moves their axes to the front
    return _OwnIndex([*others, batch_axis.counted(call.extent, depth)], (f"@{len(others)}", *parts),
                     places[0] if together else 0, depth)


def _places(parts: Sequence[Any]) -> list[int]:
    """Return the positions of integers and arrays in an index."""
    return [i for i, part in enumerate(parts) if not (part is None or isinstance(part, slice))]


def _written(call: BatchedCall) -> Any:
    """Write parts at places that all members share, or at integers of each member."""
    if call.extent is None or not call.input_specs[0].known:
        return NotImplemented
    (x, part, *values), (x_spec, part_spec, *others) = call.inputs, call.input_specs
    index = call.attrs["index"]
    x = x if call.mapped[0] else broadcast_to(x, (call.extent, *x_spec.shape))
    if call.mapped[1]:
        ndim = len(indexed_shape(x_spec.shape, filled_in(index, others)))
        part = batch_axis.with_axes(part, ndim) if part_spec.ndim < ndim else part
    if any(call.mapped[2:]):
        own = _own_index(call, 2)
        if own is None:
            return NotImplemented
        if own.place and own.depth:
            shape = indexed_shape(x_spec.shape, filled_in(index, others))
            if None in shape:
                return NotImplemented
            part = broadcast_to(part, (call.extent, *shape) if call.mapped[1] else shape)
            part = own.in_front(part, call.mapped[1])
        return call.again([x, part, *own.tensors], index=own.parts)
    in_batch = index_in_batch(index)
    if in_batch is not None:
        return call.again([x, part, *values], index=in_batch)
    if values:
        return NotImplemented
    shape = indexed_shape(x_spec.shape, index)
    part = broadcast_to(part, (call.extent, *shape) if call.mapped[1] else shape)
    n = _n_axes_in_front(index)
    return call.again([x, moveaxis(part, 0, n) if call.mapped[1] else expand_dims(part, n)],
                      index=(slice(None), *index))


def _shared(call: BatchedCall) -> Any:
    """Take, clear or add at places that all members share."""
    (x,), index = call.inputs, call.attrs["index"]
    in_batch = index_in_batch(index)
    if in_batch is not None or call.op.name == "ClearItem":
        return batch_axis.of_linear(call.op.batched)(call) if in_batch else (
            call.again([x], index=(slice(None), *index)))
    n = _n_axes_in_front(index)
    if call.op.name != "IndexAdd":
        return moveaxis(call.again([x], index=(slice(None), *index)), n, 0)
    if call.extent is None:
        return NotImplemented
    return call.again([moveaxis(x, 0, n)], index=(slice(None), *index),
                      shape=(call.extent, *call.attrs["shape"]))


def _n_axes_in_front(index: tuple) -> int:
    """Return the number of the arrays' axes in a result; separated by a slice, they are first."""
    return max(1 if np.asarray(part).dtype == bool else np.ndim(part)  # one axis
               for part in index if isinstance(part, np.ndarray | bool | np.bool_))


# Ops of rows in graphs, with the op for members that have row numbers of their own, and the inputs
# with these numbers.
OF_ROWS = {
    "ClearRows": ("DynamicClearItem", 1),
    "TakeRows": ("DynamicGetItem", 1),
    "UpdateRows": ("DynamicSetItem", 2),
}


def _of_rows(call: BatchedCall) -> Any:
    axis, (name, place) = call.attrs["axis"], OF_ROWS[call.op.name]
    if not call.mapped[place]:
        if call.op.name != "UpdateRows":
            return _alone(call)
        inputs = batch_axis.repeated(call)
        return NotImplemented if inputs is None else call.again(
            [*inputs[:2], *call.inputs[2:]], axis=axis + 1)
    inputs, n = batch_axis.repeated(call), call.input_specs[place].ndim
    if inputs is None or call.extent is None:
        return NotImplemented
    x, *rows = inputs[:place]
    before, behind = tuple(range(1, 1 + axis)), tuple(range(1 + n, 1 + n + axis))
    found = find(name)(
        moveaxis(x, axis + 1, 1), *[moveaxis(one, before, behind) for one in rows],
        batch_axis.counted(call.extent, n), inputs[place], index=("@0", "@1"))
    return moveaxis(found, behind, before) if name == "DynamicGetItem" else (
        moveaxis(found, 1, axis + 1))


RULES: dict[str, Callable[[BatchedCall], Any]] = {
    **dict.fromkeys(["DynamicClearItem", "DynamicGetItem", "DynamicIndexAdd"], _indexed),
    **dict.fromkeys(["DynamicSetItem", "SetItem"], _written),
    **dict.fromkeys(["ClearItem", "GetItem", "IndexAdd", "TakeItem"], _shared),
    **dict.fromkeys(OF_ROWS, _of_rows),
}
