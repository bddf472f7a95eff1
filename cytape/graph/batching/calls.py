"""Calls of ops for all members of a batch, and what rules for them have in common."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from cytape.ops.shared.batches import with_axes
from cytape.ops.shared.conform import broadcast_to
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec
from cytape.tensor.tensor import Tensor

__all__ = ["Call", "is_alone", "members", "product", "repeated", "stacked", "view_of"]


class Call(NamedTuple):
    """A call of an op for all members."""

    op: Any
    attrs: dict
    inputs: list[Tensor]
    mapped: list[bool]         # whether each member has its own, along the first axis
    specs: list[Spec]          # of the inputs of one member
    output_specs: list[Spec]   # of its outputs
    extent: int | None         # how many members there are; None: only a run tells

    def again(self, inputs: list[Tensor], **attrs: Any) -> Any:
        """Call the op with other inputs and attributes."""
        return self.op(*inputs, **{**self.attrs, **attrs})


def repeated(call: Call) -> list[Tensor] | None:
    """Return the inputs, all of them with an axis for members; None if their number is unknown."""
    if all(call.mapped):
        return call.inputs
    if call.extent is None or not all(spec.known for spec in call.specs):
        return None
    return [x if mapped else broadcast_to(x, (call.extent, *spec.shape))
            for x, mapped, spec in zip(call.inputs, call.mapped, call.specs, strict=True)]


def is_alone(call: Call, *known: str) -> bool:
    """Tell whether there is one input, and no attribute but some, or of which nothing is said."""
    return len(call.inputs) == 1 and all(
        name in known or value is None or value is np._NoValue
        for name, value in call.attrs.items())


def view_of(call: Call) -> Any:
    """Return what rules of tangents see of the call of one member."""
    return SimpleNamespace(
        op=call.op, attrs=call.attrs, inputs=tuple(call.inputs), input_specs=tuple(call.specs),
        output_specs=tuple(call.output_specs))


def members(extent: int, ndim: int) -> Tensor:
    """Return the positions of the members, as an index beside others of so many axes."""
    return convert_to_tensor(np.arange(extent).reshape(extent, *(1,) * ndim))


def product(call: Call) -> Any:
    """Compute what is linear in the one input that members do not share, or multiply stacks."""
    op = call.op
    if op.core is not None:
        return stacked(call)
    place = call.mapped.index(True)
    if sum(call.mapped) > 1 or op.batched is None or not op.is_linear_in(place):
        return NotImplemented
    return op.batched(view_of(call), place, *call.inputs)


def stacked(call: Call) -> Any:
    """Multiply stacks, which broadcast."""
    depths = [spec.ndim - core for spec, core in zip(call.specs, call.op.core, strict=True)]
    return call.again([
        with_axes(x, spec.ndim + max(depths) - depth) if mapped and depth < max(depths) else x
        for x, mapped, spec, depth in zip(
            call.inputs, call.mapped, call.specs, depths, strict=True)])
