"""Rules for an added axis: one call of an op that computes a batch of calls.

`vmap` adds an axis of members to some inputs; forward mode adds one of directions to tangents. A
rule gets a `BatchedCall` and returns the outputs with the batch axis first, or NotImplemented. An
op's declaration names its rule, ``described(batch=along("axis"))``, or the op's kind has one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.calls.operands import axis_in_batch, keeps_axes
from cytape.ops.engine.batched_call import Along, BatchedCall
from cytape.tensor import Tensor, convert_to_tensor

Rule = Callable[[BatchedCall], Any]


# -- inputs made to fit ----------------------------------------------------------------------------


def with_axes(batch: Any, ndim: int) -> Any:
    """Return a batch with axes of length one behind the batch axis: `ndim` and that one in all."""
    if ndim < 0:
        raise SymbolicTensorError("a batch of tangents needs a known number of axes")
    return batch[(slice(None), *(None,) * (ndim + 1 - batch.ndim))]


def repeated_at(call: BatchedCall, place: int) -> Any:
    """Return one input with the batch axis; None if a shape for that is not known."""
    x, spec = call.inputs[place], call.input_specs[place]
    if call.mapped[place]:
        return x
    if call.extent is None or not spec.known:
        return None
    return np.broadcast_to(x, (call.extent, *spec.shape))


def repeated(call: BatchedCall) -> list[Any] | None:
    """Return the inputs, all with the batch axis; None if a shape for that is not known."""
    inputs = [repeated_at(call, place) for place in range(len(call.inputs))]
    return None if any(x is None for x in inputs) else inputs


def counted(extent: int, ndim: int) -> Tensor:
    """Return positions along the batch axis, as an index beside others of `ndim` axes."""
    return convert_to_tensor(np.arange(extent).reshape(extent, *(1,) * ndim))


def merged(call: BatchedCall, place: int) -> Any:
    """Return one input with the batch axis joined to its first axis; None if others have one."""
    shape, is_known = call.input_specs[place].shape, call.input_specs[place].known
    alone = call.mapped == [i == place for i in range(len(call.mapped))]
    return call.inputs[place].reshape((call.extent * shape[0], *shape[1:])) if (
        alone and is_known and call.extent is not None) else None


def parted(x: Any, call: BatchedCall, place: int) -> Any:
    """Return a result of a merged input with the batch axis apart again."""
    return x.reshape((call.extent, call.input_specs[place].shape[0], *x.shape[1:]))


# -- rules -----------------------------------------------------------------------------------------


def aligned(call: BatchedCall) -> Any:
    """Broadcast: shorter inputs with a batch axis get axes of length one behind it."""
    ndim = max(spec.ndim for spec in call.input_specs)
    return call.again([
        with_axes(x, ndim) if mapped and spec.ndim < ndim else x
        for x, mapped, spec in zip(call.inputs, call.mapped, call.input_specs, strict=True)])


def stacked(call: BatchedCall) -> Any:
    """Call an op that takes stacks of the same extents: the batch axis is one of the stack."""
    inputs = repeated(call)
    return NotImplemented if inputs is None else call.again(inputs)


def product(call: BatchedCall) -> Any:
    """Call a product of stacks that broadcast: `core` axes of each operand are not of a stack."""
    depths = [spec.ndim - core for spec, core in zip(call.input_specs, call.op.core, strict=True)]
    if min(depths) < 0:  # the number of axes is not known
        return NotImplemented
    return call.again([
        with_axes(x, spec.ndim + max(depths) - depth) if mapped and depth < max(depths) else x
        for x, mapped, spec, depth in zip(
            call.inputs, call.mapped, call.input_specs, depths, strict=True)])


along = Along
along_axis = along("axis")


def of_linear(batched: Callable[..., Any]) -> Rule:
    """Make the rule of a linear op from a function of inputs that all have the batch axis."""

    def rule(call: BatchedCall) -> Any:
        inputs = repeated(call)
        return NotImplemented if inputs is None else batched(*inputs, **call.attrs)

    return rule


def of_factor(batched: Callable[..., Any]) -> Rule:
    """Make the rule of a product from a function of operands of which one has the batch axis."""

    def rule(call: BatchedCall) -> Any:
        place = call.mapped.index(True)
        if sum(call.mapped) > 1 or not call.op.is_linear_in(place):
            return NotImplemented
        return batched(call, place, *call.inputs)

    return rule


def along_lines(call: BatchedCall) -> Any:
    """Call an op along an axis of its only input; `axis=None` means the flattened input."""
    (x, *others), (spec, *_) = call.inputs, call.input_specs
    if others or not spec.ndim:
        return NotImplemented
    if call.attrs.get("axis", -1) is not None:
        return call.again([x], axis=axis_in_batch(call.attrs.get("axis", -1), x.ndim))
    if keeps_axes(call.attrs.get("keepdims", False)) or call.extent is None or not spec.known:
        return NotImplemented
    return call.again([x.reshape((call.extent, spec.size))], axis=1)


def of_one_shape(call: BatchedCall) -> Any:
    """Repeat the shared operands of an op that does not broadcast; positions stay shared."""
    moving = [spec.dtype.kind in "fc" for spec in call.input_specs]
    if any(mapped and not moves for mapped, moves in zip(call.mapped, moving, strict=True)):
        return NotImplemented
    inputs = repeated(call)
    if inputs is None:
        return NotImplemented
    inputs = [x if moves else shared for x, shared, moves in zip(
        inputs, call.inputs, moving, strict=True)]
    if "axis" not in call.attrs:
        return call.again(inputs)
    return call.again(inputs, axis=axis_in_batch(call.attrs["axis"], inputs[0].ndim))


def only(place: int) -> Rule:
    """Make the rule of an op that is elementwise in one input while all others are shared."""

    def rule(call: BatchedCall) -> Any:
        mapped = [i for i, mapped in enumerate(call.mapped) if mapped]
        return call.again(call.inputs) if mapped == [place] else NotImplemented

    return rule
