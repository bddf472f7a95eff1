"""Padding, in all modes of `numpy.pad`: one axis after the other.

Padded elements are copies of elements ("edge", "reflect", "symmetric", "wrap"), linear functions of
them (odd reflections, "linear_ramp", "mean"), or extrema and medians, with the derivatives of these
at ties; or a user's function writes them. The mode "empty" pads with zeros.
"""

from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops import reductions
from cytape.ops.adjoints.conform import identity_op
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calculus.sequences import linspace
from cytape.ops.calls.operands import is_tensor, operand, plain
from cytape.ops.comparisons import any as any_true
from cytape.ops.comparisons import floor, isnan, rint
from cytape.ops.constants import zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable, structural
from cytape.ops.indexing import take_along_axis
from cytape.ops.joining import concatenate, stack
from cytape.ops.ordering import argsort
from cytape.ops.rearranging import flip, index_along, pad_op, pad_with_op, repeat
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis, ndim, reshape, shape, squeeze
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["pad"]

# Modes in which each padded element is a copy of one element of the array.
_COPYING_MODES = ("edge", "reflect", "symmetric", "wrap")


def _padded_positions(x, *, axis, width, mode, **kwargs):
    return np.pad(np.arange(x.shape[axis]), width, mode, **kwargs)


padded_positions_op = nondifferentiable(
    "PaddedPositions",
    _padded_positions,
    shape_rule=lambda x, *, axis, width, **_: symbolic_spec(
        (shape_rules.total((x.shape[axis], *width)),), np.intp
    ),
)


@numpy_function(np.pad, "array", "kwargs")
def pad(array, pad_width, mode="constant", **kwargs) -> Any:
    """Add elements at the ends of the axes, as `numpy.pad`.

    Examples
    --------
    >>> import cytape
    >>> np.pad(cytape.constant([1.0, 2.0]), 1, mode="edge").numpy()
    array([1., 1., 2., 2.])
    >>> cytape.grad(lambda x: np.pad(x, (0, 2), "reflect", reflect_type="odd")[-1])(np.ones(3))
    array([-1.,  0.,  2.])
    """
    array = convert_to_tensor(array)
    widths = _pad_widths(pad_width, ndim(array))
    if callable(mode):
        return _filled(array, widths, mode, kwargs)
    _check(array, widths, mode, kwargs)
    if ndim(array) == 0:
        return identity_op(array)
    if mode == "empty" or mode == "constant" and not kwargs:
        return pad_op(array, pad_width=widths)
    if mode == "constant":
        if not is_tensor([*kwargs.values()]):
            plain_array(kwargs["constant_values"])  # raises for masked arrays
            return pad_with_op(array, pad_width=widths, **kwargs)
        array, values = together(array, kwargs["constant_values"])
        return _by_parts(array, widths, _Constants(values, array))
    if mode == "linear_ramp":
        array, values = together(array, kwargs.get("end_values", 0))
        return _by_parts(array, widths, _Ramps(values, array))
    if mode in _COPYING_MODES and kwargs.get("reflect_type") != "odd":
        return _copied(array, widths, mode, kwargs)
    if mode in _COPYING_MODES:
        return _by_parts(array, widths, lambda x, axis, width: _odd_parts(x, axis, width, mode))
    lengths = kwargs.get("stat_length")
    if lengths is not None:
        lengths = np.broadcast_to(plain(lengths), (array.ndim, 2))
    return _by_parts(array, widths, lambda x, axis, width: [
        repeat(_statistic(x, axis, mode, lengths, end), n, axis) for end, n in enumerate(width)])


def _check(array, widths, mode, options):
    """Raise NumPy's errors for invalid widths, modes and options."""
    numbers = {"stat_length": 1, "constant_values": 0, "end_values": 0}
    options = {name: numbers.get(name, value) for name, value in options.items()}
    least = np.minimum(np.array(widths, int).reshape(-1, 2), 1)
    np.pad(np.ones((1,) * array.ndim), least if array.ndim else 0, mode, **options)
    if mode in _COPYING_MODES or mode in _STATISTICS:
        for n, width in zip(array.shape or (), widths, strict=True):
            if n == 0 and any(width):
                np.pad(np.ones(0), width, mode, **options)


def _pad_widths(pad_width, ndim):
    """Return one row (before, after) for each axis from any form that NumPy accepts."""
    if isinstance(pad_width, dict):
        widths = np.zeros((ndim, 2), int)
        for axis, width in pad_width.items():
            widths[axis] = width
        pad_width = widths
    pad_width = np.asarray(pad_width)
    if pad_width.dtype.kind != "i":
        raise TypeError(f"`pad_width` must be of integral type, got {pad_width.dtype}")
    return tuple(map(tuple, np.broadcast_to(pad_width, (ndim, 2)).tolist()))


def _by_parts(array, widths, make):
    """Join the padding of both ends of each axis, if there is any."""
    for axis, width in enumerate(widths):
        if any(width):
            before, after = make(array, axis, width)
            array = concatenate([before, array, after], axis=axis)
    return array


def _filled(array, widths, fill, options):
    """Call a user's function that writes the ends of each line, axis by axis, as NumPy does."""
    array = pad_op(array, pad_width=widths)
    for axis, width in enumerate(widths):
        rows = moveaxis(array, axis, -1)
        lead = rows.shape[:-1]
        if None in lead:
            raise SymbolicTensorError(
                "pad: a function as the mode is called for each line, and how many there are is "
                "not known while a graph is built: give the placeholder or the signature extents")
        lines = [identity_op(rows[index]) for index in np.ndindex(*lead)]
        for line in lines:
            fill(line, width, axis, options)
        if lines:
            array = moveaxis(reshape(stack(lines), (*lead, -1)), -1, axis)
    return array


# -- copies ----------------------------------------------------------------------------------------


def runs_of_positions(positions):
    """Yield runs of padded positions whose source elements have equal steps, and these."""
    start, count = 0, len(positions)
    while start < count:
        first, stop = positions[start], start + 1
        step = positions[stop] - first if stop < count else 0
        while stop < count and positions[stop] - positions[stop - 1] == step:
            stop += 1
        end = first + (stop - start) * step
        taken = slice(first, None if end < 0 else end, step) if step else slice(first, first + 1)
        yield slice(start, stop), taken
        start = stop


def _copies(results, operands, *, axis, width, mode):
    """Yield the pieces: the array in the middle, and the copies at either end."""
    whole, x = np.moveaxis(results[0], axis, 0), np.moveaxis(operands[0], axis, 0)
    width = tuple(map(int, width))
    middle, after = slice(width[0], width[0] + len(x)), slice(width[0] + len(x), None)
    yield whole[middle], x
    positions = np.pad(np.arange(len(x)), width, mode)
    for end in slice(width[0]), after:
        for run, taken in runs_of_positions(positions[end].tolist()):
            yield whole[end][run], x[taken]


pad_copies_op = structural(
    "PadCopies",
    lambda x, *, axis, width, mode: np.pad(x, _along_one(x.ndim, axis, width), mode),
    _copies,
    shape_rule=lambda x, *, axis, width, mode: shape_rules.pad(
        x, pad_width=_along_one(x.ndim, axis, width)),
    batch=batch_axis.along_axis,
)


def _along_one(n_axes, axis, width):
    return tuple([tuple(map(int, width)) if i == axis else (0, 0) for i in range(n_axes)])


def _copied(array, widths, mode, options):
    for axis, (n, width) in enumerate(zip(array.shape, widths, strict=True)):
        if n is None:
            positions = padded_positions_op(array, axis=axis, width=width, mode=mode, **options)
            array = array[index_along(axis, positions)]
        elif any(width):
            array = pad_copies_op(array, axis=axis, width=width, mode=mode)
    return array


# -- numbers that are given ------------------------------------------------------------------------


class _Given:
    """Pad with numbers, one for each end of each axis, in any form that NumPy accepts."""

    def __init__(self, values, array):
        self.values = broadcast_to(operand(values), (array.ndim, 2))

    def __call__(self, x, axis, width):
        return [self.part(x, axis, end, n) for end, n in enumerate(width)]


class _Constants(_Given):
    def part(self, x, axis, end, n):
        zeros = reductions.sum(zeros_like(x), axis, x.dtype, keepdims=True)
        return repeat(zeros + astype(self.values[axis, end], x.dtype), n, axis)


class _Ramps(_Given):
    def part(self, x, axis, end, n):
        edge = squeeze(x[index_along(axis, slice(-1, None) if end else slice(1))], axis)
        ramp = linspace(self.values[axis, end], edge, n, endpoint=False, axis=axis)
        if x.dtype.kind in "iu":
            ramp = floor(ramp)
        return astype(flip(ramp, axis) if end else ramp, x.dtype)


# -- reflections and statistics --------------------------------------------------------------------


def _extent(x, axis, mode):
    n = shape(x)[axis]
    if n is None:
        raise SymbolicTensorError(
            f"pad: the mode {mode!r} needs to know the extent of axis {axis} while a graph is "
            "built. Give the placeholder or the signature of the function that extent")
    return n


def _odd_parts(x, axis, width, mode):
    """Return odd reflections: plus or minus an element, plus multiples of the two edges."""
    n = _extent(x, axis, mode)
    odd = {"mode": mode, "reflect_type": "odd"}
    first, last = (np.pad(np.eye(1, n, k)[0], width, **odd) for k in (0, n - 1))
    positions = np.pad(np.arange(n), width, mode)
    is_edge = (positions == 0) | (positions == n - 1)
    signs = np.where(is_edge, 0, 1 - first - last)
    if n == 1:
        last = 0 * last
    factors = [np.reshape(f, [-1 if i == axis else 1 for i in range(ndim(x))]).astype(
        x.dtype if x.dtype.kind != "u" else np.int64) for f in (signs, first, last)]
    ends = [x[index_along(axis, slice(k, k + 1))] for k in (0, n - 1)]
    parts = []
    for part in (slice(0, width[0]), slice(len(positions) - width[1], None)):
        inner, a, b = (f[index_along(axis, part)] for f in factors)
        copies = x[index_along(axis, positions[part])]
        parts.append(astype(copies * inner + ends[0] * a + ends[1] * b, x.dtype))
    return parts


def _median(x, axis, *, keepdims):
    """Average the two middle elements; for an odd number of elements they are the same."""
    n = _extent(x, axis, "median")
    order = argsort(x, axis=axis)
    middle = order[index_along(axis, slice((n - 1) // 2, n // 2 + 1))]
    result = reductions.mean(take_along_axis(x, middle, axis), axis, keepdims=keepdims)
    return where(any_true(isnan(x), axis, keepdims=keepdims), np.nan, result)


_STATISTICS = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean,
    "median": _median,
}  # fmt: skip


def _statistic(x, axis, mode, lengths, end):
    if lengths is not None:
        length = int(lengths[axis][end])
        if length <= 0:
            np.pad(np.ones(1), 1, mode, stat_length=length)  # NumPy's errors, and warnings for NaN
        x = x[index_along(axis, slice(-length, None) if end and length else slice(length))]
    x = with_extents(
        x, ValueError, f"can't extend empty axis {axis} using modes other than 'constant' or "
        "'empty'", least=((axis, 1),))
    result = _STATISTICS[mode](x, axis=axis, keepdims=True)
    if x.dtype.kind in "iu" and mode in ("mean", "median"):
        result = rint(result)
    return result if result.dtype == x.dtype else astype(result, x.dtype)
