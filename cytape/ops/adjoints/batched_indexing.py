"""Rules of index ops for a batch axis: parts read, cleared, added up and written for all members.

Members share an index, or have integers of their own in it: then positions along the batch axis are
one more array of the index.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.adjoints.tangent_batches import batch_outline
from cytape.ops.engine import batch_axis
from cytape.ops.engine.batch_axis import BatchedCall
from cytape.ops.engine.index_op import index_in_batch
from cytape.ops.shapes.index_shapes import filled_in, indexed_shape
from cytape.tensor.values.spec import Spec


def taken(call: BatchedCall) -> Any:
    """Read a part."""
    if not any(call.mapped[1:]):
        index, n = _shared_index(call, call.input_specs[1:])
        part = call.again(call.inputs, index=index)
        return np.moveaxis(part, n, 0) if n else part
    own = _own_index(call, call.input_specs[0], 1, len(call.inputs))
    if own is None:
        return NotImplemented
    if not call.mapped[0]:
        return np.moveaxis(call.again([call.inputs[0], *own.tensors[:-1]]), own.place, 0)
    return own.in_place(call.again([call.inputs[0], *own.tensors], index=own.parts))


def cleared(call: BatchedCall) -> Any:
    """Write zeros to a part."""
    if not any(call.mapped[1:]):
        return call.again(call.inputs, index=_shared_index(call, call.input_specs[1:])[0])
    x, spec = _repeated(call, 0), call.input_specs[0]
    own = _own_index(call, spec, 1, len(call.inputs))
    return NotImplemented if own is None or x is None else (
        call.again([x, *own.tensors], index=own.parts))


def added(call: BatchedCall) -> Any:
    """Add a part to zeros; without the attribute `shape` the last input has their shape."""
    (spec,), has_like = call.output_specs, "shape" not in call.attrs
    stop = len(call.inputs) - has_like
    if any(call.mapped[1:stop]):
        own, values = _own_index(call, spec, 1, stop), _repeated(call, 0)
        return NotImplemented if own is None or values is None or not spec.known else call.op(
            own.in_front(values), *own.tensors, index=own.parts,
            shape=(call.extent, *spec.shape))
    if any(call.mapped[1:]):
        return NotImplemented
    values, *others = call.inputs[:stop]
    index, n = _shared_index(call, call.input_specs[1:stop])
    moved = np.moveaxis(values, 0, n) if n else values
    if spec.known and call.extent is not None:
        return call.op(moved, *others, index=index, shape=(call.extent, *spec.shape))
    like = batch_outline(values, call.inputs[-1] if has_like else spec)
    return call.op(moved, *others, like, index=index)


def written(call: BatchedCall) -> Any:
    """Write a part."""
    x = _repeated(call, 0)
    if x is None or call.input_specs[0].shape is None:
        return NotImplemented
    (_, part, *others), (spec, of_part, *specs) = call.inputs, call.input_specs
    shape = indexed_shape(spec.shape, filled_in(call.attrs["index"], specs))
    if call.mapped[1] and of_part.ndim < len(shape):
        part = batch_axis.with_axes(part, len(shape))
    if any(call.mapped[2:]):
        own = _own_index(call, spec, 2, len(call.inputs))
        if own is None or own.place and own.depth and None in shape:
            return NotImplemented
        if own.place and own.depth:
            part = broadcast_to(part, (call.extent, *shape) if call.mapped[1] else shape)
            part = own.in_front(part, call.mapped[1])
        return call.again([x, part, *own.tensors], index=own.parts)
    index, n = _shared_index(call, specs)
    if n and (call.extent is None or None in shape):
        return NotImplemented
    if n:
        part = broadcast_to(part, (call.extent, *shape) if call.mapped[1] else shape)
        part = np.moveaxis(part, 0, n) if call.mapped[1] else np.expand_dims(part, n)
    return call.again([x, part, *others], index=index)


def _repeated(call: BatchedCall, place: int) -> Any:
    """Return an input with the batch axis; None if its shape is not known."""
    x, spec = call.inputs[place], call.input_specs[place]
    if call.mapped[place]:
        return x
    return broadcast_to(x, (call.extent, *spec.shape)) if (
        spec.known and call.extent is not None) else None


# -- an index that members share -------------------------------------------------------------------


def _shared_index(call: BatchedCall, specs: Sequence[Spec]) -> tuple[Any, int]:
    """Return an index for all members, and where it puts the batch axis of what it selects.

    Axes of arrays with a slice between them come first.
    """
    index = call.attrs["index"]
    in_batch = index_in_batch(index)
    if in_batch is not None:
        return in_batch, 0
    return (slice(None), *index), max(
        [_n_axes(part) for part in filled_in(index, specs) if hasattr(part, "dtype")
         or isinstance(part, bool)], default=0)


def _n_axes(part: Any) -> int:
    """Return the number of axes of the result that come from an array in an index."""
    return 1 if isinstance(part, bool) or part.dtype == bool else part.ndim


# -- an index with integers of each member's own ---------------------------------------------------


class _OwnIndex(NamedTuple):
    """An index that has integers of each member's own, for all members."""

    tensors: list           # tensors in the index, the positions of the members last
    parts: tuple
    place: int              # axes before those of arrays, in the selection of one member
    depth: int              # the number of axes of arrays

    def in_front(self, x: Any, batch: bool = True) -> Any:
        """Put the axes of arrays where NumPy has them for all members: behind that of members."""
        return np.moveaxis(x, self._axes(self.place + batch), self._axes(batch))

    def in_place(self, x: Any) -> Any:
        """Put them where they are for one member."""
        return np.moveaxis(x, self._axes(1), self._axes(self.place + 1))

    def _axes(self, first: int) -> tuple[int, ...]:
        return tuple(range(first, first + self.depth))


def _own_index(call: BatchedCall, spec: Spec, first: int, stop: int) -> _OwnIndex | None:
    """Return an index of arrays of a spec, for all members; None if there is none.

    Inputs between `first` and `stop` are the tensors in it.
    """
    index, specs = call.attrs["index"], call.input_specs[first:stop]
    parts = index if isinstance(index, tuple) else (index,)
    if call.extent is None or any(one.dtype.kind == "b" for one in specs) or any(
            isinstance(bound, str) for part in parts if isinstance(part, slice)
            for bound in (part.start, part.stop, part.step)) or any(
            isinstance(part, np.ndarray) and part.dtype.kind == "b" for part in parts):
        return None
    if any(part is Ellipsis for part in parts):
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        whole = spec.ndim - sum(part is not None for part in parts) + 1
        if not whole and _places(parts[:at]) and _places(parts[at + 1:]):
            return None  # NumPy puts the axes of arrays first on account of the ellipsis
        parts = (*parts[:at], *[slice(None)] * whole, *parts[at + 1:])
    places = _places(parts)
    depth = max([one.ndim for one in specs] + [
        part.ndim for part in parts if isinstance(part, np.ndarray)])
    others = [batch_axis.with_axes(x, depth) if mapped and one.ndim < depth else x
              for x, mapped, one in zip(
                  call.inputs[first:stop], call.mapped[first:stop], specs, strict=True)]
    together = places[-1] - places[0] < len(places)  # else NumPy puts their axes first
    return _OwnIndex([*others, batch_axis.counted(call.extent, depth)], (f"@{len(others)}", *parts),
                     places[0] if together else 0, depth)


def _places(parts: Sequence[Any]) -> list[int]:
    """Return the positions of integers and arrays in an index."""
    return [i for i, part in enumerate(parts) if not (part is None or isinstance(part, slice))]
