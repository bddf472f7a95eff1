"""Piecewise linear interpolation.

It is differentiable in `x`, in the points and in their values. At a point the derivative in `x` is
the slope on the right, at the last point the slope on the left; outside it is 0.
"""

from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import stand_in
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.comparisons import isfinite, isnan
from cytape.ops.creation import astype
from cytape.ops.cumulative import cumsum
from cytape.ops.elementwise import minimum, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, multilinear
from cytape.ops.indexing import (
    gather_op,
    getitem,
    scatter_add_op,
    take_along_axis,
)
from cytape.ops.joining import concatenate, rows_of_batch
from cytape.ops.kernels.gather import of_pieces, slopes_at
from cytape.ops.ordering import argsort, searchsorted, searchsorted_op
from cytape.ops.reductions import sum
from cytape.ops.shaping import ndim, reshape, shape, size
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.values.cached_property import cached_property
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import spec_like

__all__ = ["interp"]


def _at(points, positions):
    return gather_op(points, positions, axis=0, mode="clip")


def _stops(x, xp):
    """Return for each x the position of the right end of its piece."""
    return minimum(searchsorted(xp, x, side="right"), size(xp) - 1)


def _outside(x, xp):
    """Return whether each x is outside of all pieces; a single point has none."""
    return (x < xp[0]) | (x > xp[-1]) | (size(xp) < 2)


def _of_pieces(values, x, xp):
    found = of_pieces(values, x, xp)
    if found is not None:
        return found
    return np.where(_outside(x, xp), 0, values.take(_stops(x, xp) - 1, mode="clip"))


# -- a batch of sorted points --------------------------------------------------------------------
#
# The points of a member and its x are sorted together, which gives the number of points below each
# x.


def _places(points, x, side):
    """Return positions of the elements of the rows of `x` in the sorted rows of `points`."""
    n, m = size(points, 1), size(x, 1)
    is_left = side == "left"
    order = argsort(concatenate((x, points) if is_left else (points, x), 1), 1, kind="stable")
    n_points = cumsum(order >= m if is_left else order < n, 1)
    where_to = argsort(order, 1)
    return take_along_axis(n_points, where_to[:, :m] if is_left else where_to[:, n:], 1)


def _searched(call):
    if call.mapped == [False, True]:
        return call.again(call.inputs)
    inputs = batch_axis.repeated(call)
    if inputs is None or len(inputs) > 2:
        return NotImplemented
    points, x = inputs
    return reshape(_places(points, rows_of_batch(x), call.attrs["side"]), x.shape)


def _ends(points, x):
    """Return the positions of both ends of the piece of each element of `x`."""
    stop = minimum(_places(points, x, "right"), size(points, 1) - 1)
    return where(stop > 0, stop - 1, 0), stop


def _pieces_in_batch(call):
    if call.mapped == [False, True, False]:
        return call.again(call.inputs)
    if call.mapped == [True, False, False]:
        values, x, xp = call.inputs
        return where(_outside(x, xp), 0, gather_op(values, _stops(x, xp) - 1, axis=1, mode="clip"))
    inputs = batch_axis.repeated(call)
    if inputs is None:
        return NotImplemented
    values, x, points = map(rows_of_batch, inputs)
    found = take_along_axis(values, _ends(points, x)[0], 1)
    outside = (x < points[:, :1]) | (x > points[:, -1:]) | (size(points, 1) < 2)
    return reshape(where(outside, 0, found), inputs[1].shape)


searchsorted_op.batch = _searched
# The value of the piece of each x, given one per point for the piece on its right; 0 outside.
of_pieces_op = multilinear(
    "OfPieces", _of_pieces,
    lambda op, g, x, xp: _added(op, 0, where(_outside(x, xp), 0, g), _stops(x, xp) - 1), None, None,
    shape_rule=lambda values, x, xp: spec_like(x, values.dtype), batch=_pieces_in_batch)


class _Pieces:
    """The piece of each x: positions of its ends, and the fraction of its length left of x."""

    def __init__(self, op):
        self.x, self.xp = (astype(points, np.float64, copy=False) for points in op.inputs[:2])
        self.fp = astype(op.inputs[2], op.output_specs[0].dtype, copy=False)
        self.below, self.above = self.x < self.xp[0], self.x > self.xp[-1]
        self.outside = self.below | self.above
        self.has_ends = len(op.input_specs) > 3  # given values outside of the points
        # There are fewer pieces than x; the last one, without an end, has slope 0.
        length = self.differences(self.xp)
        self.flat = length == 0
        self.length = where(self.flat, 1, length)

    @staticmethod
    def differences(points):
        return concatenate((points[1:] - points[:-1], points[:1] * 0))

    @cached_property
    def stop(self):
        return _stops(self.x, self.xp)

    @cached_property
    def start(self):
        return self.stop - 1  # -1 is taken as 0

    @cached_property
    def slope(self):
        slopes = where(self.flat, 0, self.differences(self.fp) / self.length)
        return of_pieces_op(slopes, self.x, self.xp)

    def part(self):
        """Return the fraction of the piece left of each x; outside 1 above all points, else 0."""
        # Outside, x may be infinite, and products with 0 in derivatives NaN.
        along = where(self.outside, 0, self.x - _at(self.xp, self.start))
        # The last of several equal points counts.
        part = where(_at(self.flat, self.start), self.x >= self.xp[-1],
                     along / _at(self.length, self.start))
        return where(self.above, 1, part)

    def inside(self, g):
        return where(self.outside, 0, g)


def _added(op, position, values, at):
    spec = op.input_specs[position]
    if not spec.known:
        return scatter_add_op(values, at, stand_in(spec), axis=0, mode="clip")
    return scatter_add_op(values, at, axis=0, mode="clip", size=spec.shape[0])


def _real_product(g, slope):
    return np.real(np.conj(slope) * g) if g.dtype.kind == "c" or slope.dtype.kind == "c" else (
        g * slope)


def _interp_vjp(op, g):
    if isinstance(g, np.ndarray) and not any(op.needs[1:]):
        slopes = slopes_at(*op.inputs[:3])
        if slopes is not None:
            return _real_product(g, slopes), *[None] * (len(op.needs) - 1)
    pieces, needs = _Pieces(op), op.needs
    inside = pieces.inside(g)
    gx = _real_product(inside, pieces.slope)
    gxp = gfp = None
    part = pieces.part() if needs[1] or needs[2] else None
    if needs[1]:
        gxp = _added(op, 1, gx * (part - 1), pieces.start) + _added(
            op, 1, -gx * part, pieces.stop)
    if needs[2]:
        of_values = inside if pieces.has_ends else g
        gfp = _added(op, 2, of_values * (1 - part), pieces.start) + _added(
            op, 2, of_values * part, pieces.stop)
    ends = [sum(where(side, g, 0)) if needed else None
            for side, needed in zip((pieces.below, pieces.above), needs[3:], strict=False)]
    return gx, gxp, gfp, *ends


def _interp_jvp(op, tx, txp, tfp, *ends):
    pieces = _Pieces(op)
    part = None if txp is None and tfp is None else pieces.part()
    total = 0
    if tx is not None:
        total = total + pieces.slope * tx
    if txp is not None:
        total = total - pieces.slope * (
            (1 - part) * _at(txp, pieces.start) + part * _at(txp, pieces.stop))
    of_values = 0 if tfp is None else (
        (1 - part) * _at(tfp, pieces.start) + part * _at(tfp, pieces.stop))
    total = where(pieces.outside, 0, total + of_values if ends else total)
    total = total if ends else total + of_values
    for side, t in zip((pieces.below, pieces.above), ends, strict=False):
        if t is not None:
            total = total + where(side, t, 0)
    return total


def _interpolated(call):
    if not any(call.mapped[1:]):
        return call.again(call.inputs)
    inputs = batch_axis.repeated(call)
    if inputs is None:
        return NotImplemented
    x, points, values, *ends = map(rows_of_batch, inputs)
    x, points = (astype(y, float, copy=False) for y in (x, points))
    values = astype(values, call.output_specs[0].dtype, copy=False)
    start, stop = _ends(points, x)
    left, right = ends or (values[:, :1], values[:, -1:])
    below, above = x < points[:, :1], x > points[:, -1:]
    p, q, f, g = (take_along_axis(y, at, 1) for y in (points, values) for at in (start, stop))
    slope = where(p == q, 0, (g - f) / where(p == q, 1, q - p))
    inside = f + slope * (x - p)
    # Exactly the value at the last point; next to an infinite value, from the finite side.
    is_last = x == q
    inside = where(is_last | isnan(inside), g + slope * (x - q), inside)
    is_alone = size(points, 1) == 1
    is_end = is_last | (x == p) | ((f == g) & (is_alone | ~isnan(x)))
    inside = where(isfinite(inside) | ~is_end, inside, where(is_last, g, f))
    return reshape(where(below, left, where(above, right, inside)), inputs[0].shape)


interp_op = general(
    "Interp",
    lambda x, xp, fp, *ends: np.interp(x, xp, fp, *[end.item() for end in ends]),
    vjp=_interp_vjp, jvp=_interp_jvp, saved_inputs=(0, 1, 2),
    optional_tangents=range(5),
    shape_rule=lambda x, xp, fp, *_: spec_like(
        x, np.dtype(complex if fp.dtype.kind == "c" else float)),
    batch=_interpolated,
)  # fmt: skip


@numpy_function(np.interp, "x", "xp", "fp", "left", "right", "period")
def interp(x, xp, fp, left=None, right=None, period=None) -> Any:
    """Interpolate between points, as `numpy.interp`.

    At a point the derivative in `x` is that to the right.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.interp(x, [0.0, 1.0, 2.0], [0.0, 5.0, 7.0]))(0.5)
    np.float64(5.0)
    """
    if type(x) is Tensor and left is right is period is None and x.graph is None and not (
            is_tensor(xp) or is_tensor(fp)):
        return interp_op(x, plain_array(xp), plain_array(fp))  # NumPy checks them there
    x, xp, fp, left, right, period = together(*[
        y if y is None else operand(y) for y in (
            x, xp, fp, left, right, period)])
    if ndim(xp) != 1 or ndim(fp) != 1:
        raise ValueError("Data points must be 1-D sequences")
    if 0 in shape(fp):
        raise ValueError("array of sample points is empty")
    xp = with_extents(
        xp, ValueError, "fp and xp are not of the same length.", like=fp, same=[(0, 0)])
    xp = with_extents(xp, ValueError, "array of sample points is empty", least=[(0, 1)])
    if period is not None:
        x, xp, fp = _wrapped(x, xp, fp, period)
        left = right = None
    if left is right is None:
        return interp_op(x, xp, fp)
    fp = convert_to_tensor(fp)
    left = getitem(fp, 0) if left is None else left
    right = getitem(fp, -1) if right is None else right
    return interp_op(x, xp, fp, left, right)


def _wrapped(x, xp, fp, period):
    if ndim(period) == 0 and not is_tensor(period) and period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    x, xp, fp = convert_to_tensor(x) % period, convert_to_tensor(xp) % period, (
        convert_to_tensor(fp))
    order = argsort(xp)
    xp, fp = getitem(xp, order), getitem(fp, order)
    # Two points after the period: if x is the first of them, it needs a slope on the right.
    return (x, concatenate((xp[-1:] - period, xp, xp[:2] + period)),
            concatenate((fp[-1:], fp, fp[:2])))
