"""Rules of ops that take no stacks: members become more rows, columns, images or bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.graph.batching.calls import Call, repeated
from cytape.ops.elementwise import where
from cytape.ops.engine import gradients
from cytape.ops.engine.arguments import axis_in_batch
from cytape.ops.engine.structural_op import structural_op
from cytape.ops.rearranging import flip, pad_op
from cytape.ops.reductions import sum
from cytape.ops.shaping import moveaxis, reshape
from cytape.ops.shared.batches import with_axes
from cytape.ops.shared.conform import broadcast_to
from cytape.tensor.making import constant
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import Tensor

__all__ = ["RULES"]

# Up to so many products sequences are convolved as windows, which are gathered; where there are
# more, NumPy's loop over them is faster, called for one member after the other.
MOST_PRODUCTS = 512


# -- along an axis ---------------------------------------------------------------------------------


def _stacks(call: Call) -> Any:
    """Call what goes along the last axis of all its inputs."""
    inputs = repeated(call)
    return NotImplemented if inputs is None else call.again(inputs)


def _values_of_matrices(of_values: tuple[int, ...], first: int = 0) -> Callable[[Call], Any]:
    """Make a rule for inputs that are stacks of matrices, or of vectors of values, from one on."""
    def rule(call: Call) -> Any:
        ndims = {
            spec.ndim for i, spec in enumerate(call.specs) if i >= first and i not in of_values}
        inputs = repeated(call)
        if len(ndims) != 1 or inputs is None:
            return NotImplemented
        [ndim] = ndims
        return call.again([
            with_axes(x, ndim - 1) if i in of_values and call.specs[i].ndim < ndim - 1 else x
            for i, x in enumerate(inputs)])

    return rule


def _along_axis(call: Call) -> Any:
    """Go along one axis of the first input; what else there is stands still."""
    if call.mapped[0] and not any(call.mapped[1:]):
        return call.again(call.inputs, axis=axis_in_batch(call.attrs["axis"], call.inputs[0].ndim))
    return NotImplemented


def _sequences(call: Call) -> Any:
    """Make sequences, whose first axis is that of their elements."""
    ndim = max(spec.ndim for spec in call.specs)
    found = call.again([
        with_axes(x, ndim) if mapped and spec.ndim < ndim else x
        for x, mapped, spec in zip(call.inputs, call.mapped, call.specs, strict=True)])
    return moveaxis(found, 1, 0)


def _powers(call: Call) -> Any:
    (x,), (spec,) = call.inputs, call.specs
    if call.extent is None or not spec.known:
        return NotImplemented
    found = call.again([reshape(x, (call.extent * spec.size,))])
    return reshape(found, (call.extent, spec.size, found.shape[-1]))


def _pad_with(call: Call) -> Any:
    (x,), (spec,) = call.inputs, call.specs
    width, values = (
        np.broadcast_to(call.attrs[name], (spec.ndim, 2)).tolist()
        for name in ("pad_width", "constant_values"))
    return call.again([x], pad_width=((0, 0), *map(tuple, width)),
                      constant_values=((0, 0), *map(tuple, values)))


# -- order statistics ------------------------------------------------------------------------------


def _quantiles(call: Call) -> Any:
    """Compute quantiles, whose first axes are those of q."""
    x, q = call.inputs
    if call.mapped[0]:
        return NotImplemented if call.mapped[1] else (
            moveaxis(call.again([x, q]), call.specs[1].ndim, 0))
    found = call.again([x, reshape(q, (-1,))])  # which may have no more axes
    return reshape(found, (*q.shape, *found.shape[1:])) if q.spec.known else NotImplemented


def _neighbours(call: Call) -> Any:
    inputs = None if call.mapped[1] else repeated(call)
    if inputs is None:
        return NotImplemented
    x, _, y = inputs
    return call.again([x, call.inputs[1], moveaxis(y, 0, call.specs[1].ndim)])


def _weighted_positions(call: Call) -> Any:
    inputs = None if call.mapped[1] else repeated(call)
    return NotImplemented if inputs is None else call.again(
        [inputs[0], call.inputs[1], *inputs[2:]])


# -- convolutions ----------------------------------------------------------------------------------


def _convolved(call: Call) -> Any:
    """Multiply the windows of the longer sequence with the shorter."""
    specs, inputs = call.specs, call.inputs
    if call.op.name == "Correlate":
        inputs = [inputs[0], flip(inputs[1], -1)]
    if not all(spec.known for spec in specs):
        return NotImplemented
    long, short = (0, 1) if specs[0].size >= specs[1].size else (1, 0)
    n, m = specs[long].size, specs[short].size
    before, after = {
        "full": (m - 1, m - 1), "same": (m - 1 - (m - 1) // 2, (m - 1) // 2), "valid": (0, 0),
    }[call.attrs["mode"]]
    count = before + n + after - m + 1
    if count * m > MOST_PRODUCTS:
        return NotImplemented
    x = pad_op(inputs[long], pad_width=((0, 0),) * call.mapped[long] + ((before, after),))
    places = np.arange(count)[:, None] + np.arange(m)
    inside = (places >= before) & (places < before + n)
    # Infinities, say, are left out, by a zero of any dtype; nor do sums of integers widen.
    products = x[..., places] * where(inside, flip(inputs[short], -1)[..., None, :], False)
    return sum(products, -1, products.dtype)


def _cross_entropy(call: Call) -> Any:
    inputs = repeated(call)
    if inputs is None:
        return NotImplemented
    return call.again(inputs, axis=call.attrs["axis"] % call.specs[0].ndim + 1)


def _checked_extents(call: Call) -> Any:
    same = call.attrs["same"]
    if same is None:  # all axes
        if any(spec.shape is None for spec in call.specs):
            return NotImplemented
        same = tuple([(i, i) for i in range(call.specs[0].ndim)])
    if not call.mapped[0]:
        return NotImplemented
    later = {name: tuple([(i + 1, n) for i, n in call.attrs[name]])
             for name in ("least", "multiple")}
    later["same"] = tuple([(i + 1, j + call.mapped[1]) for i, j in same])
    return call.again(call.inputs, **later)


# -- images ----------------------------------------------------------------------------------------


def _merged(call: Call, place: int) -> tuple[Tensor, int] | None:
    """Return members as more images of one batch, and their number; None if others are mapped."""
    shape, n = call.specs[place].shape, call.extent
    if call.mapped != [i == place for i in range(len(call.mapped))] or n is None or (
            not call.specs[place].known):
        return None
    return reshape(call.inputs[place], (n * shape[0], *shape[1:])), n


def _parted(images: Tensor, n: int, per_member: int) -> Tensor:
    return reshape(images, (n, per_member, *images.shape[1:]))


def _of_images(place: int) -> Callable[[Call], Any]:
    """Return the rule of what is computed image by image; filters stand still."""
    def rule(call: Call) -> Any:
        merged = _merged(call, place)
        if merged is None:
            return NotImplemented
        (images, n), shape = merged, call.attrs.get("image_shape")
        attrs = {} if shape is None else {"image_shape": (
            None if shape[0] is None else n * shape[0], *shape[1:])}
        inputs = [*call.inputs[:place], images, *call.inputs[place + 1:]]
        return _parted(call.again(inputs, **attrs), n, call.specs[place].shape[0])
    return rule


def _max_pool(call: Call) -> Any:
    """Find maxima, and where in a member each of them is."""
    merged = _merged(call, 0)
    if merged is None:
        return NotImplemented
    images, n = merged
    maxima, origins = (_parted(found, n, call.specs[0].shape[0]) for found in call.again([images]))
    first = np.arange(n).reshape(-1, *(1,) * (origins.ndim - 1)) * call.specs[0].size
    return maxima, np.where(origins < 0, origins, origins - first)


def _normalised(call: Call) -> Any:
    """Normalise the channels of members as more channels."""
    inputs = repeated(call)
    if inputs is None or call.extent is None or not call.specs[0].known:
        return NotImplemented
    x, *others = inputs
    channels = (call.extent, call.specs[0].shape[-1])
    width = call.extent * channels[1]
    y, *statistics = call.again([
        reshape(moveaxis(x, 0, -2), (*call.specs[0].shape[:-1], width)),
        *[reshape(other, (width,)) for other in others]])
    return (moveaxis(reshape(y, (*call.specs[0].shape[:-1], *channels)), -2, 0),
            *[reshape(each, channels) for each in statistics])


# -- bins ------------------------------------------------------------------------------------------


def _added_to_bins(call: Call) -> Any:
    """Give each member bins of its own; one more for what is in no bin."""
    inputs = repeated(call)
    if inputs is None or call.extent is None or not call.specs[1].known:
        return NotImplemented
    (weights, bins), n = inputs, call.attrs["n"] + 1
    first = np.arange(call.extent).reshape(-1, *(1,) * call.specs[1].ndim) * n
    found = call.again([reshape(weights, (-1,)), reshape(bins + first, (-1,))], n=call.extent * n)
    return reshape(found, (call.extent, n))[:, :-1]


# -- transposes of moves ---------------------------------------------------------------------------


def _moved_back(call: Call) -> Any:
    """Transpose what moves the elements of all members."""
    op, seeds = structural_op(call.attrs["of"]), repeated(call)
    if seeds is None or call.extent is None or op.batched is None:
        return NotImplemented
    zeros = [broadcast_to(constant(0, seeds[0].dtype), (call.extent, *shape))
             for shape in call.attrs["shapes"]]
    recorder = Recorder()
    for x in zeros:
        recorder.watch(x.id)
    with recorder:
        moved = op.batched(*zeros, **dict(call.attrs["attrs"]))
    if moved is NotImplemented:
        return NotImplemented
    found = gradients.compute_gradients(
        recorder, [moved] if isinstance(moved, Tensor) else list(moved), zeros, [*seeds])
    found = [zero if x is None else x for x, zero in zip(found, zeros, strict=True)]
    return found if len(found) > 1 else found[0]


RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(["AvgPool", "AvgPoolGrad", "Conv2D"], _of_images(0)),
    **dict.fromkeys([
        "Fold", "FoldSteps", "ReduceAt",
        "ReduceStepsAt", "SpreadOverSlices", "SumsOfSlices", "Unwrap"], _along_axis),
    **dict.fromkeys(["LinearRecurrence", "Tuple"], _stacks),
    **dict.fromkeys(["BasisOfBlocks", "ValuesOfBlocks"], _values_of_matrices((0,))),
    **dict.fromkeys(["SplitVectors", "TurningVectors"], _values_of_matrices((2,))),
    "CheckedEqualValues": _values_of_matrices((1,), 2),
    "GradientOfValues": _values_of_matrices((1, 4)),
    **dict.fromkeys(["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"],
                    _cross_entropy),
    "AddToBins": _added_to_bins,
    "CheckedExtents": _checked_extents,
    "Conv2DBackpropInput": _of_images(1),
    "Convolve": _convolved,
    "Correlate": _convolved,
    "FusedBatchNorm": _normalised,
    "LinSpace": _sequences,
    "MaxPool": _max_pool,
    "PadWith": _pad_with,
    "Powers": _powers,
    "Quantile": _quantiles,
    "QuantileNeighbours": _neighbours,
    "Transposed": _moved_back,
    "WeightedQuantilePositions": _weighted_positions,
}
