"""Rules of ops that look up numbers among sorted ones, of which each member may have its own.

Sorting a member's numbers together with those that are looked up tells how many are below each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cytape.graph.batching.calls import Call, product, repeated
from cytape.ops.creation import astype
from cytape.ops.elementwise import minimum, where
from cytape.ops.indexing import take_along_axis
from cytape.ops.joining import concatenate, rows_of_batch
from cytape.ops.ordering import argsort
from cytape.ops.products import cumsum
from cytape.ops.shaping import reshape, size
from cytape.ops.steps import isfinite, isnan
from cytape.tensor.tensor import Tensor

__all__ = ["RULES"]


def _places(points: Tensor, x: Tensor, side: str) -> Tensor:
    """Return where the elements of the rows of `x` belong in the sorted rows of `points`."""
    n, m = size(points, 1), size(x, 1)
    is_left = side == "left"
    order = argsort(concatenate((x, points) if is_left else (points, x), 1), 1, kind="stable")
    n_points = cumsum(order >= m if is_left else order < n, 1)
    where_to = argsort(order, 1)
    return take_along_axis(n_points, where_to[:, :m] if is_left else where_to[:, n:], 1)


def _searched(call: Call) -> Any:
    if call.mapped == [False, True]:
        return call.again(call.inputs)
    inputs = repeated(call)
    if inputs is None or len(inputs) > 2:
        return NotImplemented
    points, x = inputs
    return reshape(_places(points, rows_of_batch(x), call.attrs["side"]), x.shape)


def _ends(points: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the piece between two points begins that each element of `x` is on, and ends."""
    stop = minimum(_places(points, x, "right"), size(points, 1) - 1)
    return where(stop > 0, stop - 1, 0), stop


def _interpolated(call: Call) -> Any:
    if not any(call.mapped[1:]):
        return call.again(call.inputs)
    inputs = repeated(call)
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
    # At the last point exactly its value; and beside an infinite one from the other side, if any.
    is_last = x == q
    inside = where(is_last | isnan(inside), g + slope * (x - q), inside)
    is_alone = size(points, 1) == 1
    is_end = is_last | (x == p) | ((f == g) & (is_alone | ~isnan(x)))
    inside = where(isfinite(inside) | ~is_end, inside, where(is_last, g, f))
    return reshape(where(below, left, where(above, right, inside)), inputs[0].shape)


def _of_pieces(call: Call) -> Any:
    if call.mapped == [False, True, False]:
        return call.again(call.inputs)
    if call.mapped == [True, False, False]:
        return product(call)
    inputs = repeated(call)
    if inputs is None:
        return NotImplemented
    values, x, points = map(rows_of_batch, inputs)
    found = take_along_axis(values, _ends(points, x)[0], 1)
    outside = (x < points[:, :1]) | (x > points[:, -1:]) | (size(points, 1) < 2)
    return reshape(where(outside, 0, found), inputs[1].shape)


RULES: dict[str, Callable[[Call], Any]] = {
    "Interp": _interpolated, "OfPieces": _of_pieces, "SearchSorted": _searched,
}
