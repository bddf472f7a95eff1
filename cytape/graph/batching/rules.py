"""How ops compute all members of a batch at once.

A rule gets a `Call`: the inputs of a node, those of which each member has its own with a first axis
that members lie along. It returns the outputs with such an axis, or NotImplemented. Most rules are
those of a kind of op, and follow from its declaration: elementwise functions broadcast, linear ones
take batches as they take batches of tangents. Of general functions NumPy's own stacks and axes are
used. What has no rule is called for one member after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.graph.batching import index_rules, sorted_rules, special_rules
from cytape.graph.batching.calls import Call, is_alone, product, repeated, view_of
from cytape.ops.einsum import einsum_in_batch
from cytape.ops.engine.arguments import axis_in_batch, keeps_axes
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.linalg import matmul_in_batch, tensordot_in_batch
from cytape.ops.shaping import reshape
from cytape.ops.shared.batches import with_axes
from cytape.ops.shared.draws import draw
from cytape.tensor.making import convert_to_tensor

__all__ = ["RULES", "batched"]


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
        return product
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


def _linear(call: Call) -> Any:
    inputs = repeated(call)
    return NotImplemented if inputs is None else call.op.batched(*inputs, **call.attrs)


# -- of single ops ---------------------------------------------------------------------------------


def _products_of(function: Callable) -> Callable[[Call], Any]:
    return lambda call: function(view_of(call), call.mapped, *call.inputs)


def _reduced(call: Call) -> Any:
    known = is_alone(call, "axis", "keepdims", "dtype", "ddof", "correction", "ord", "initial")
    if not known or not call.specs[0].ndim and call.op.name == "VectorNorm":
        return NotImplemented
    axis = axis_in_batch(call.attrs.get("axis"), call.inputs[0].ndim)
    if call.attrs.get("ord", 2) is None:  # NumPy takes that for all axes of any number, or for one
        return call.again(call.inputs, axis=axis, ord=2)
    return call.again(call.inputs, axis=axis)


def _along_lines(call: Call) -> Any:
    """Go along one axis, or along all elements in a row."""
    known = is_alone(call, "axis", "dtype", "keepdims", "kind", "kth", "stable")
    (x, *_), (spec, *_), axis = call.inputs, call.specs, call.attrs.get("axis", -1)
    if not known or not spec.ndim:
        return NotImplemented
    if axis is not None:
        return call.again([x], axis=axis_in_batch(axis, x.ndim))
    if keeps_axes(call.attrs.get("keepdims", False)) or call.extent is None or not spec.known:
        return NotImplemented
    return call.again([reshape(x, (call.extent, spec.size))], axis=1)


def _around_number(call: Call) -> Any:
    """Find the neighbours of one quantile in the lines of all members."""
    alone = list(call.mapped) == [True, False, True]
    return call.again(call.inputs) if alone else NotImplemented


def _of_last_axis(call: Call) -> Any:
    return call.again(call.inputs) if call.specs[0].ndim else NotImplemented


def _matrices(call: Call) -> Any:
    """Call what takes stacks of matrices itself."""
    return call.again(call.inputs) if all(call.mapped) else NotImplemented


def _of_one_shape(call: Call) -> Any:
    """Repeat shared operands for all members: the op does not broadcast. Positions stay shared."""
    moving = [spec.dtype.kind in "fc" for spec in call.specs]
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
    """Make what has an array's shape, or one that is given."""
    shape = call.attrs.get("shape")
    if not is_alone(call, "dtype", "order", "subok", "device", "fill_value", "shape"):
        return NotImplemented
    if shape is None:
        return call.again(call.inputs)
    if call.extent is None:
        return NotImplemented
    return call.again(call.inputs, shape=(call.extent, *np.atleast_1d(shape).tolist()))


def _only(place: int) -> Callable[[Call], Any]:
    """Return the rule of a function that is elementwise in one input, the others standing still."""
    def rule(call: Call) -> Any:
        return call.again(call.inputs) if (
            [i for i, mapped in enumerate(call.mapped) if mapped] == [place]) else NotImplemented
    return rule


def _drawn(call: Call) -> Any:
    """Draw for all members in one call; what is seeded itself goes on with its stream."""
    stream, (drawn,) = call.attrs["stream"], call.output_specs
    if any(call.mapped) or call.extent is None or stream.given or not drawn.known:
        return NotImplemented
    attrs = {name: x for name, x in call.attrs.items() if name != "stream"}
    attrs["size"] = (call.extent, *drawn.shape)
    return convert_to_tensor(
        draw(call.op, *call.inputs, seed=None, unseeded=stream.unseeded, **attrs))


RULES: dict[str, Callable[[Call], Any]] = {
    **index_rules.RULES,
    **special_rules.RULES,
    **sorted_rules.RULES,
    **dict.fromkeys([
        "CastToDiscrete", "ComplexSign", "Fix", "Frexp", "Isclose", "Iscomplex", "Isneginf",
        "Isposinf", "Isreal", "Modf", "NanToNum", "OverPowersOfTwo",
        "RavelMultiIndex", "Round", "StopGradient",
        "UnravelIndex", "Where", "WithoutZero"], _aligned),
    **dict.fromkeys(["EmptyLike", "FullLike", "OnesLike", "ZerosLike"], _alike),
    **dict.fromkeys([
        "All", "Any", "CountNonzero", "Extremes", "LogSoftmax", "LogSumExp", "Max", "Min", "NanMax",
        "NanMin", "Prod", "Softmax", "Std", "Var", "VectorNorm"], _reduced),
    **dict.fromkeys([
        "ArgMax", "ArgMin", "ArgPartition", "ArgSort", "Cumprod", "NanArgMax", "NanArgMin"],
        _along_lines),
    **dict.fromkeys([
        "CholeskyBack", "FoldAtExtrema", "ProductsBack", "ProductsCurvature", "ProductsTangent",
        "SpreadToExtrema"], _of_one_shape),
    **dict.fromkeys(["CountsOfLines", "Sort", "SortComplex"], _of_last_axis),
    **dict.fromkeys([
        "Cholesky", "Cofactors", "Determinant", "Eig", "Gram", "HermitianEig", "IdentityMatrices",
        "MatrixInverse", "PseudoInverse", "QR", "SVD", "SignAndLogDeterminant"], _matrices),
    **dict.fromkeys([
        "RandomIntegers", "RandomStandardExponential", "RandomStandardNormal", "RandomUniform"],
        _drawn),
    **dict.fromkeys(["BinsOfElements", "Digitize", "Isin"], _only(0)),
    "Einsum": _products_of(einsum_in_batch),
    "MatMul": _products_of(matmul_in_batch),
    "NeighboursOfNumber": _around_number,
    "PseudoInverseOfRank": lambda call: (
        call.again(call.inputs) if call.mapped[0] else NotImplemented),
    "Solve": _solved,
    "Tensordot": _products_of(tensordot_in_batch),
}
