"""How ops compute all members of a batch at once.

A rule gets a `Call`: the inputs of a node, those of which each member has its own with a first axis
that members lie along. It returns the outputs with such an axis, or NotImplemented. Most rules are
those of a kind of op, and follow from its declaration: elementwise functions broadcast, linear ones
take batches as they take batches of tangents. Of general functions NumPy's own stacks and axes are
used. What has no rule is called for one member after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from cytape.ops.einsum import einsum_in_batch
from cytape.ops.engine.arguments import axis_in_batch, keeps_axes
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.indexing import dynamic_get_item_op, dynamic_index_add_op
from cytape.ops.linalg import matmul_in_batch, tensordot_in_batch
from cytape.ops.shaping import moveaxis, reshape
from cytape.ops.shared.batches import with_axes
from cytape.ops.shared.conform import broadcast_to
from cytape.ops.shared.draws import draw
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.spec import Spec
from cytape.tensor.tensor import Tensor

__all__ = ["RULES", "Call", "batched"]


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


def batched(call: Call) -> Any:
    """Compute the outputs of all members, or return NotImplemented."""
    if any(spec.ndim < 0 for spec in call.specs):  # a number of axes is not known
        return NotImplemented
    rule = RULES.get(call.op.name) or _rule_of_kind(call.op)
    return NotImplemented if rule is None else rule(call)


def _rule_of_kind(op: Any) -> Callable[[Call], Any] | None:
    if isinstance(op, ElementwiseOp):
        return _aligned
    if isinstance(op, MultilinearOp):
        return _product
    if isinstance(op, GeneralOp) and op.linear and op.batched is not None:
        return _linear
    return None


# -- by the kind of op -----------------------------------------------------------------------------


def _aligned(call: Call) -> Any:
    """Broadcast: members with fewer axes get axes of length one before their own."""
    ndim = max(spec.ndim for spec in call.specs)
    return call.again([
        with_axes(x, ndim) if mapped and spec.ndim < ndim else x
        for x, mapped, spec in zip(call.inputs, call.mapped, call.specs, strict=True)])


def _repeated(call: Call) -> list[Tensor] | None:
    """Return the inputs, all of them with an axis for members; None if their number is unknown."""
    if all(call.mapped):
        return call.inputs
    if call.extent is None or not all(spec.known for spec in call.specs):
        return None
    return [x if mapped else broadcast_to(x, (call.extent, *spec.shape))
            for x, mapped, spec in zip(call.inputs, call.mapped, call.specs, strict=True)]


def _linear(call: Call) -> Any:
    inputs = _repeated(call)
    return NotImplemented if inputs is None else call.op.batched(*inputs, **call.attrs)


def _product(call: Call) -> Any:
    op = call.op
    if op.core is not None:
        return _stacked(call)
    place = call.mapped.index(True)
    if sum(call.mapped) > 1 or op.batched is None or not op.is_linear_in(place):
        return NotImplemented
    return op.batched(_view(call), place, *call.inputs)


def _stacked(call: Call) -> Any:
    """Multiply stacks, which broadcast."""
    depths = [spec.ndim - core for spec, core in zip(call.specs, call.op.core, strict=True)]
    return call.again([
        with_axes(x, spec.ndim + max(depths) - depth) if mapped and depth < max(depths) else x
        for x, mapped, spec, depth in zip(
            call.inputs, call.mapped, call.specs, depths, strict=True)])


def _view(call: Call) -> Any:
    """Return what rules of tangents see of the call of one member."""
    return SimpleNamespace(
        op=call.op, attrs=call.attrs, input_specs=tuple(call.specs),
        output_specs=tuple(call.output_specs))


# -- of single ops ---------------------------------------------------------------------------------


def _products_of(function: Callable) -> Callable[[Call], Any]:
    return lambda call: function(_view(call), call.mapped, *call.inputs)


def _is_alone(call: Call, *known: str) -> bool:
    """Tell whether there is one input, and no attribute but some, or of which nothing is said."""
    return len(call.inputs) == 1 and all(
        name in known or value is None or value is np._NoValue
        for name, value in call.attrs.items())


def _reduced(call: Call) -> Any:
    known = _is_alone(call, "axis", "keepdims", "dtype", "ddof", "correction", "ord")
    if not known or not call.specs[0].ndim:
        return NotImplemented
    axis = axis_in_batch(call.attrs.get("axis"), call.inputs[0].ndim)
    if call.attrs.get("ord", 2) is None:  # NumPy takes that for all axes of any number, or for one
        return call.again(call.inputs, axis=axis, ord=2)
    return call.again(call.inputs, axis=axis)


def _along_lines(call: Call) -> Any:
    """Go along one axis, or along all elements in a row."""
    known = _is_alone(call, "axis", "dtype", "keepdims", "kind", "kth", "stable")
    (x, *_), (spec, *_), axis = call.inputs, call.specs, call.attrs.get("axis", -1)
    if not known or not spec.ndim:
        return NotImplemented
    if axis is not None:
        return call.again([x], axis=axis_in_batch(axis, x.ndim))
    if keeps_axes(call.attrs.get("keepdims", False)) or call.extent is None or not spec.known:
        return NotImplemented
    return call.again([reshape(x, (call.extent, spec.size))], axis=1)


def _of_last_axis(call: Call) -> Any:
    return call.again(call.inputs) if call.specs[0].ndim else NotImplemented


def _matrices(call: Call) -> Any:
    """Call what takes stacks of matrices itself."""
    return call.again(call.inputs) if all(call.mapped) else NotImplemented


def _solved(call: Call) -> Any:
    (a, b), (a_spec, b_spec), (_, b_mapped) = call.inputs, call.specs, call.mapped
    if b_spec.ndim > 1:
        ndim = max(a_spec.ndim, b_spec.ndim)
        return call.again([
            with_axes(x, ndim) if mapped and spec.ndim < ndim else x
            for x, mapped, spec in zip(call.inputs, call.mapped, call.specs, strict=True)])
    if not b_mapped:
        return call.again([a, b])
    if a_spec.ndim > 2:
        return NotImplemented
    return call.again([a, b[..., None]])[..., 0]


def _alike(call: Call) -> Any:
    return call.again(call.inputs) if _is_alone(call, "dtype", "order", "subok", "device") or (
        len(call.inputs) == 1 and "fill_value" in call.attrs and call.attrs.get("shape") is None
    ) else NotImplemented


def _only(place: int) -> Callable[[Call], Any]:
    """Return the rule of a function that is elementwise in one input, the others standing still."""
    def rule(call: Call) -> Any:
        return call.again(call.inputs) if (
            [i for i, mapped in enumerate(call.mapped) if mapped] == [place]) else NotImplemented
    return rule


def _along(call: Call) -> Any:
    """Take from lines, or put there, which are matched by the axes before."""
    inputs = _repeated(call)
    if inputs is None or len({spec.ndim for spec in call.specs}) > 1:
        return NotImplemented
    return call.again(inputs)


def _gathered(call: Call) -> Any:
    (params, indices), axis = call.inputs, call.attrs["axis"]
    if call.mapped == [False, True]:
        return moveaxis(call.again([params, indices]), axis, 0)
    if call.mapped == [True, False]:
        return _product(call)
    if call.extent is None or call.attrs["mode"] != "raise":
        return NotImplemented
    taken = dynamic_get_item_op(
        moveaxis(params, axis + 1, 1), _members(call.extent, call.specs[1].ndim), indices,
        index=("@0", "@1"))
    first = call.specs[1].ndim + 1
    return moveaxis(taken, tuple(range(first, first + axis)), tuple(range(1, 1 + axis)))


def _scattered(call: Call) -> Any:
    values, indices = call.inputs
    if not call.mapped[1]:
        return _product(call)
    if call.extent is None or call.attrs["axis"] or call.attrs["mode"] != "raise" or (
            not call.output_specs[0].known):
        return NotImplemented
    values = values if call.mapped[0] else broadcast_to(
        values, (call.extent, *call.specs[0].shape))
    like = np.zeros((call.extent, *call.output_specs[0].shape), values.dtype)
    return dynamic_index_add_op(
        values, convert_to_tensor(like), _members(call.extent, call.specs[1].ndim), indices,
        index=("@0", "@1"))


def _members(extent: int, ndim: int) -> Tensor:
    """Return the positions of the members, as an index beside others of so many axes."""
    return convert_to_tensor(np.arange(extent).reshape(extent, *(1,) * ndim))


def _indexed(call: Call) -> Any:
    """Take or add at integers of each member's own, for the first axes."""
    n_operands = 1 if call.op is dynamic_get_item_op else 2
    index = call.attrs["index"]
    parts = index if isinstance(index, tuple) else (index,)
    places = [i for i, part in enumerate(parts)
              if not (part is None or part is Ellipsis or isinstance(part, slice))]
    if not any(call.mapped[n_operands:]):
        return _product(call)
    if places != list(range(len(places))) or call.extent is None or any(
            spec.dtype.kind == "b" for spec in call.specs[n_operands:]) or any(
            isinstance(bound, str) for part in parts if isinstance(part, slice)
            for bound in (part.start, part.stop, part.step)) or any(
            isinstance(part, np.ndarray) and part.dtype.kind == "b" for part in parts):
        return NotImplemented
    depth = max([spec.ndim for spec in call.specs[n_operands:]] + [
        part.ndim for part in parts if isinstance(part, np.ndarray)])
    others = [with_axes(x, depth) if mapped and spec.ndim < depth else x
              for x, mapped, spec in list(zip(
                  call.inputs, call.mapped, call.specs, strict=True))[n_operands:]]
    if n_operands == 1 and not call.mapped[0]:
        return call.again([call.inputs[0], *others])
    if not all(spec.known for spec in call.specs[:n_operands]):
        return NotImplemented
    operands = [x if mapped else broadcast_to(x, (call.extent, *spec.shape)) for x, mapped, spec in
                list(zip(call.inputs, call.mapped, call.specs, strict=True))[:n_operands]]
    return call.again([*operands, *others, _members(call.extent, depth)],
                      index=(f"@{len(others)}", *parts))


def _cross_entropy(call: Call) -> Any:
    inputs = _repeated(call)
    if inputs is None:
        return NotImplemented
    return call.again(inputs, axis=call.attrs["axis"] % call.specs[0].ndim + 1)


def _of_images(call: Call) -> Any:
    """Take members for more images of one batch; the filters stand still."""
    image, *others = call.inputs
    shape = call.specs[0].shape
    if any(call.mapped[1:]) or call.extent is None or not call.specs[0].known:
        return NotImplemented
    found = call.again([reshape(image, (call.extent * shape[0], *shape[1:])), *others])
    return reshape(found, (call.extent, shape[0], *found.shape[1:]))


def _drawn(call: Call) -> Any:
    """Draw for all members in one call; what is seeded itself goes on with its stream."""
    if call.inputs or call.extent is None or call.attrs["stream"].given:
        return NotImplemented
    attrs = {name: x for name, x in call.attrs.items() if name != "stream"}
    attrs["size"] = (call.extent, *call.output_specs[0].shape)
    return convert_to_tensor(draw(call.op, seed=None, **attrs))


RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys([
        "CastToDiscrete", "ComplexSign", "Fix", "Frexp", "Isclose", "Iscomplex", "Isneginf",
        "Isposinf", "Isreal", "Modf", "NanToNum", "Round", "StopGradient", "Where"], _aligned),
    **dict.fromkeys(["EmptyLike", "FullLike", "OnesLike", "ZerosLike"], _alike),
    **dict.fromkeys([
        "All", "Any", "CountNonzero", "LogSoftmax", "LogSumExp", "Max", "Min", "Prod", "Softmax",
        "Std", "Var", "VectorNorm"], _reduced),
    **dict.fromkeys(["ArgMax", "ArgMin", "ArgPartition", "ArgSort", "Cumprod"], _along_lines),
    **dict.fromkeys(["Partition", "Sort"], _of_last_axis),
    **dict.fromkeys([
        "Cholesky", "Cofactors", "Determinant", "Eig", "HermitianEig", "IdentityMatrices",
        "MatrixInverse", "QR", "SVD", "SignAndLogDeterminant"], _matrices),
    **dict.fromkeys(["AvgPool", "Conv2D"], _of_images),
    **dict.fromkeys([
        "RandomIntegers", "RandomStandardExponential", "RandomStandardNormal", "RandomUniform"],
        _drawn),
    **dict.fromkeys(["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"],
                    _cross_entropy),
    "Digitize": _only(0),
    "Einsum": _products_of(einsum_in_batch),
    "DynamicGetItem": _indexed,
    "DynamicIndexAdd": _indexed,
    "Gather": _gathered,
    "Interp": _only(0),
    "MatMul": _products_of(matmul_in_batch),
    "PutAlong": _along,
    "ScatterAdd": _scattered,
    "SearchSorted": _only(1),
    "Solve": _solved,
    "TakeAlong": _along,
    "Tensordot": _products_of(tensordot_in_batch),
}
