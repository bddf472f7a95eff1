"""Median, quantiles and percentiles, with and without NaN.

A quantile is an element or lies between two adjacent ones in sorted order. The gradient goes to
these; among equal elements any one gets it. If a NaN makes the result NaN, there is no gradient. In
`q` a quantile is piecewise linear; at kinks the derivative is the slope on the right.

The dtype of a quantile does not depend on values, which are unknown when functions are traced:
unlike in NumPy, a single quantile that is NaN has the same dtype as other quantiles.
"""

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.adjoints.line_elements import put_along, take_along
from cytape.ops.calls.operands import operand, wide
from cytape.ops.comparisons import isnan
from cytape.ops.constants import full, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.joining import concatenate
from cytape.ops.reductions import sum
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import (
    expand_dims,
    extents,
    moveaxis,
    ndim,
    ravel,
    reshape,
    shape,
    size,
    transpose,
)
from cytape.ops.statistics.averages import weights_along
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec
from cytape.tensor.values.user_warnings import warning_user

__all__ = [
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

# By Hyndman and Fan, "Sample quantiles in statistical packages" (1996): alpha and beta, where the
# position of q among n elements is n*q + alpha + q*(1 - alpha - beta) - 1.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


FEW = 1 << 13  # elements of a line


def _rows(a, axis):
    """Return `a` with the elements of each slice along the last axis, and the reduced axes."""
    a = convert_to_tensor(a)
    n_axes = ndim(a)
    if axis is None:
        return ravel(a), tuple(range(n_axes))
    axes = normalize_axis_tuple(axis, n_axes)
    if len(axes) == 1:
        return (a if axes == (n_axes - 1,) else moveaxis(a, axes, (-1,))), axes
    rest = tuple([i for i in range(n_axes) if i not in axes])
    lengths = [size(a, i) for i in rest]
    length = math.prod([size(a, i) for i in axes])  # not -1, which fails for an extent of 0
    return reshape(transpose(a, (*rest, *axes)), (*lengths, length)), axes


def _with_axes(result, axes, lead, keepdims):
    """Insert the reduced axes, of length one, behind the axes of `q`."""
    return expand_dims(result, tuple([lead + axis for axis in axes])) if keepdims else result


# -- positions of quantiles in lines ---------------------------------------------------------------


def _neighbours(x, q, y, *, method, skip_nan):
    """Return the positions of both elements around each quantile, and the rank of the lower one.

    x has lines along the last axis; the quantiles y have q's axes in front of the axes of lines.
    """
    y = np.moveaxis(y.reshape(q.size, *x.shape[:-1]), 0, -1)
    n = x.shape[-1]
    if n == 0:
        position = np.zeros(y.shape, np.intp)
        return position, position, np.zeros(y.shape)
    if method not in (*_CONTINUOUS, "averaged_inverted_cdf", "midpoint"):  # an element
        position = np.empty(y.shape, np.intp)
        for i in range(q.size):
            position[..., i] = (x == y[..., i, None]).argmax(-1)
        return position, position, np.zeros(y.shape)
    counts = np.full(x.shape[:-1], n) if not skip_nan else n - np.isnan(x).sum(-1)
    rank = _rank(q.reshape(-1), counts[..., None], method)
    lower = np.floor(rank).astype(np.intp)
    last = np.maximum(counts[..., None] - 1, 0)
    step = 1 if method in _CONTINUOUS else rank > lower
    low, high = np.clip(lower, 0, last), np.clip(lower + step, 0, last)
    if method == "averaged_inverted_cdf":  # halfway, or the next element
        low = np.where(rank > lower, high, low)
        high = np.where(rank > lower, high, np.clip(lower + 1, 0, last))
    order = _order(x, np.unique([low, high]))
    return (np.take_along_axis(order, low, -1), np.take_along_axis(order, high, -1),
            low.astype(float))


def _order(x, ranks):
    """Return positions that partition lines at the given ranks."""
    return x.argpartition(ranks) if 0 < len(ranks) < 16 else x.argsort(-1)


def _places(x, low, high):
    """Return the positions of the elements of lines with given ranks, `lower` and `upper`.

    Partitions values if lines are long, which is several times as fast as partitioning positions.
    """
    if x.shape[-1] > FEW:
        values = np.partition(x, low)
        lower, upper = values[..., low, None], np.fmin.reduce(values[..., high:], -1, keepdims=True)
    if x.shape[-1] <= FEW or low < high and (lower == upper).any():  # distinct positions are needed
        return x.argpartition((low, high))[..., (low, high)]
    places = np.empty((*x.shape[:-1], 2), np.intp)
    places[..., 0], places[..., 1] = (x == lower).argmax(-1), (x == upper).argmax(-1)
    return places


def _neighbours_of_number(x, q, y, *, method, skip_nan):
    """Return the positions of both elements around one quantile, and their weights.

    As `_neighbours` and `_Parts`, for lines with the same number of elements.
    """
    if x.size == 0:
        shape = (*x.shape[:-1], 2)
        return np.zeros(shape, np.intp), np.zeros(shape, wide(np.result_type(x.dtype, y.dtype)))
    if skip_nan and x.ndim > 1:  # lines may differ in their number of elements
        found = [_neighbours_of_number(line, q, part, method=method, skip_nan=True)
                 for line, part in zip(x.reshape(-1, x.shape[-1]), y.reshape(-1), strict=True)]
        return tuple(np.stack(parts).reshape(*x.shape[:-1], 2)
                     for parts in zip(*found, strict=True))
    n = x.shape[-1] - (int(np.isnan(x).sum()) if skip_nan else 0)
    rank = _rank(float(q), n, method)
    lower = math.floor(rank)
    low, high = (max(min(i, n - 1), 0) for i in (lower, lower + 1))
    positions = _places(x, low, high)
    parts = np.empty(positions.shape, wide(np.result_type(x.dtype, y.dtype)))
    alpha, beta = _CONTINUOUS[method]
    above = float(q) * (n + (1 - alpha - beta)) + (alpha - 1) - lower
    parts[..., 0], parts[..., 1] = 1 - above, above
    parts[np.isnan(y)] = 0
    return positions, parts


def _rank(q, n, method):
    if method == "averaged_inverted_cdf":
        return n * q - 1
    alpha, beta = _CONTINUOUS["linear" if method == "midpoint" else method]
    return n * q + (alpha + q * (1 - alpha - beta)) - 1


def _neighbours_specs(x, q, y, **_):
    lines = (*x.shape[:-1], shape_rules.product(q.shape))
    positions = symbolic_spec(lines, np.intp)
    return positions, positions, symbolic_spec(lines, float)


def _of_number_specs(x, q, y, **_):
    shape = (*x.shape[:-1], 2)
    return symbolic_spec(shape, np.intp), symbolic_spec(
        shape, wide(np.result_type(x.dtype, y.dtype)))


def _neighbours_in_batch(call):
    inputs = None if call.mapped[1] else batch_axis.repeated(call)
    if inputs is None:
        return NotImplemented
    x, _, y = inputs
    return call.again([x, call.inputs[1], moveaxis(y, 0, call.input_specs[1].ndim)])


neighbours_of_number_op = nondifferentiable(
    "NeighboursOfNumber", _neighbours_of_number, shape_rule=_of_number_specs,
    batch=lambda call: call.again(call.inputs) if call.mapped == [True, False, True] else (
        NotImplemented))
neighbours_op = nondifferentiable(
    "QuantileNeighbours", _neighbours, shape_rule=_neighbours_specs, batch=_neighbours_in_batch)
line_counts_op = nondifferentiable(
    "CountsOfLines",
    lambda x, *, skip_nan: np.asarray(
        (~np.isnan(x)).sum(-1, keepdims=True) if skip_nan
        else np.full((*x.shape[:-1], 1), x.shape[-1]), float),
    shape_rule=lambda x, **_: symbolic_spec((*x.shape[:-1], 1), float), batch=batch_axis.stacked)


class _Parts:
    """Both elements around the quantiles of a call, and their weights in the results."""

    def __init__(self, op):
        x, q, y = op.inputs[0], op.inputs[1], op.outputs[0]
        method, skip_nan = op.attrs["method"], op.attrs["skip_nan"]
        self.op, self.dtype = op, wide(np.result_type(x.dtype, y.dtype))
        self.low, self.high, rank = neighbours_op(x, q, y, method=method, skip_nan=skip_nan)
        self.slope = None  # of the rank in q
        if method in _CONTINUOUS:
            alpha, beta = _CONTINUOUS[method]
            counts = line_counts_op(x, skip_nan=skip_nan)
            self.slope = counts + (1 - alpha - beta)
            q = astype(reshape(q, (-1,)), np.float64, copy=False)
            part = q * self.slope + (alpha - 1) - rank
        else:
            part = 0.5 if method in ("midpoint", "averaged_inverted_cdf") else 0.0
        invalid = self.by_line(isnan(y))
        self.above = astype(where(invalid, 0, part), self.dtype, copy=False)
        self.below = astype(where(invalid, 0, 1 - part), self.dtype, copy=False)

    def by_line(self, y):
        """Move the axes of q to the end, joined to one."""
        q_spec = self.op.input_specs[1]
        if q_spec.ndim == 0:
            return expand_dims(y, -1)
        if q_spec.ndim > 1:
            y = reshape(y, (size(self.op.inputs[1]), *extents(y)[q_spec.ndim:]))
        return moveaxis(y, 0, -1)

    def by_quantile(self, lines):
        """Move the axes of q back to the front."""
        q_spec, y = self.op.input_specs[1], moveaxis(lines, -1, 0)
        if q_spec.ndim == 0:
            return y[0]
        if q_spec.ndim == 1:
            return y
        return reshape(y, (*extents(self.op.inputs[1]), *extents(y)[1:]))

    def steps(self):
        """Return the derivative of the result in q."""
        x = self.op.inputs[0]
        return (take_along(x, self.high) - take_along(x, self.low)) * self.slope


def _by_number(op):
    """Return the positions of a result and their weights, if q is a number."""
    x, attrs = op.input_specs[0], op.attrs
    if attrs["function"] == "quantile" or attrs["method"] not in _CONTINUOUS or (
            attrs["skip_nan"] and x.ndim != 1):
        return None
    return neighbours_of_number_op(
        *op.inputs, op.outputs[0], method=attrs["method"], skip_nan=attrs["skip_nan"])


def _quantile_vjp(op, g):
    of_number = _by_number(op)
    if of_number is not None:
        positions, parts = of_number
        return put_along(parts * g[..., None], positions, op.input_specs[0]), None
    parts = _Parts(op)
    g = parts.by_line(g)
    needs_x, needs_q = op.needs
    gx = gq = None
    if needs_x:
        spec = op.input_specs[0]
        gx = put_along(parts.below * g, parts.low, spec) + put_along(
            parts.above * g, parts.high, spec)
    if needs_q and parts.slope is not None:
        steps = where(isnan(g), 0, g) * parts.steps()
        lines = tuple(range(len(shape(steps)) - 1))
        gq = reshape(sum(steps, lines), op.input_specs[1].extents)
    elif needs_q:
        gq = 0 * op.inputs[1]
    return gx, gq


def _quantile_jvp(op, t, tq):
    of_number = _by_number(op)
    if of_number is not None:
        positions, parts = of_number
        return sum(parts * take_along(t, positions), -1)
    parts = _Parts(op)
    total = None
    if t is not None:
        total = parts.below * take_along(t, parts.low) + parts.above * take_along(t, parts.high)
    if tq is not None and parts.slope is not None:
        by_q = parts.steps() * reshape(tq, (-1,))
        total = by_q if total is None else total + by_q
    if total is None:
        return zeros_like(op.outputs[0])
    return parts.by_quantile(total)


def _quantile_spec(x, q, **attrs):
    if attrs["skip_nan"] and 0 in x.shape:  # a mean of no elements
        dtype = _dtype_of_mean(x)
    else:
        dtype = _dtype(x, q, **attrs)
    return symbolic_spec((*q.shape, *x.shape[:-1]), dtype)


def _dtype_of_mean(x):
    return np.mean(np.ones(1, x.dtype)).dtype


def _dtype(x, q, *, function, **attrs):
    """Return the dtype of quantiles of numbers."""
    return np.asarray(
        _FORWARD[function](np.ones(2, x.dtype), np.zeros((), q.dtype), **attrs)).dtype


_FORWARD = {
    "quantile": lambda x, q, method, skip_nan: (
        np.nanquantile if skip_nan else np.quantile)(x, q, -1, method=method),
    # A Python number is weak: the result has the dtype of x.
    "quantile of a number": lambda x, q, method, skip_nan: (
        np.nanquantile if skip_nan else np.quantile)(x, q.item(), -1, method=method),
    "median": lambda x, q, method, skip_nan: (np.nanmedian if skip_nan else np.median)(x, -1),
}


def _quantiles(x, q, *, function, **attrs):
    forward, shape = _FORWARD[function], (*q.shape, *x.shape[:-1])
    if x.size and not (attrs["skip_nan"] and np.isnan(x).all(-1).any()):
        y = forward(x, q, **attrs)
    else:
        y = warning_user(forward, x, q, **attrs)
    if np.shape(y) != shape:  # NumPy drops the axes of q if there are no elements
        return np.broadcast_to(y, shape)
    if y.dtype == x.dtype != q.dtype and x.size and np.isnan(y).any():  # and the dtype for NaN
        return y.astype(_dtype(x, q, function=function, **attrs))
    return y


def _quantiles_in_batch(call):
    """Compute quantiles, whose first axes are those of q."""
    x, q = call.inputs
    if call.mapped[0]:
        return NotImplemented if call.mapped[1] else (
            moveaxis(call.again([x, q]), call.input_specs[1].ndim, 0))
    found = call.again([x, reshape(q, (-1,))])  # q may have one axis at most
    return reshape(found, (*q.shape, *found.shape[1:])) if q.spec.known else NotImplemented


quantile_op = general(
    "Quantile", _quantiles,
    vjp=_quantile_vjp, jvp=_quantile_jvp, saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=_quantile_spec,
    batch=_quantiles_in_batch,
)  # fmt: skip
def _weighted_in_batch(call):
    inputs = None if call.mapped[1] else batch_axis.repeated(call)
    return NotImplemented if inputs is None else call.again(
        [inputs[0], call.inputs[1], *inputs[2:]])


weighted_positions_op = nondifferentiable(
    "WeightedQuantilePositions",
    lambda x, q, weights, *, skip_nan: _weighted_positions(x, q, weights, skip_nan),
    shape_rule=lambda x, q, *_, **__: symbolic_spec(
        (*x.shape[:-1], shape_rules.product(q.shape)), np.intp), batch=_weighted_in_batch)


def _weighted_positions(x, q, weights, skip_nan):
    function = np.nanquantile if skip_nan else np.quantile
    y = function(x, q.reshape(-1), -1, weights=weights, method="inverted_cdf")
    y = np.broadcast_to(y, (q.size, *x.shape[:-1]))  # without elements NumPy drops q's axis
    position = np.empty((*x.shape[:-1], q.size), np.intp)
    for i, part in enumerate(y[..., None]):
        position[..., i] = ((x == part) | np.isnan(x) & np.isnan(part)).argmax(-1)
    return position


# -- the functions ---------------------------------------------------------------------------------


def _quantile(
        name, a, q, weak, axis, method, keepdims, weights, interpolation, skip_nan):
    if interpolation is not None:
        raise TypeError(f"{name}: interpolation= is deprecated; say method={interpolation!r}")
    a, q = together(convert_to_tensor(a), q)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    lead = ndim(q)  # raises if it is unknown
    if lead > 2:
        raise ValueError("q must be a scalar or 1d")
    if weights is not None:
        return _weighted(name, a, q, axis, method, keepdims, weights, skip_nan)
    rows, axes = _rows(a, axis)
    result = quantile_op(rows, q, method=method, skip_nan=skip_nan,
                         function="quantile of a number" if weak else "quantile")
    return _with_axes(result, axes, lead, keepdims)


def _weighted(name, a, q, axis, method, keepdims, weights, skip_nan):
    if method != "inverted_cdf":
        raise ValueError(
            f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    weights, _ = _rows(weights_along(a, axis, weights), axis)
    rows, axes = _rows(a, axis)
    if skip_nan and shape(rows)[-1] == 0:  # one NaN has the same quantiles
        one = (*extents(rows)[:-1], 1)
        rows = concatenate([rows, full(one, np.nan, _dtype_of_mean(rows))], -1)
        weights = full(one, 1.0)
    positions = weighted_positions_op(rows, q, weights, skip_nan=skip_nan)
    lines = take_along(rows, positions)
    if lines.dtype.kind == "f":
        lines = where(isnan(lines), np.nan, lines)  # constants, without a gradient
    if ndim(q) == 0:
        result = lines[..., 0]
    else:
        result = moveaxis(lines, -1, 0)
        if ndim(q) > 1:
            result = reshape(result, (*extents(q), *extents(lines)[:-1]))
    return _with_axes(result, axes, ndim(q), keepdims)


def _make(name, skip_nan, percent):
    def function(a, q, axis=None, out=None, overwrite_input=False, method="linear",
                 keepdims=False, *, weights=None, interpolation=None):
        weak = type(q) in (int, float)
        q = operand(q)
        return _quantile(name, a, q / 100 if percent else q, weak, axis, method, keepdims,
                         weights, interpolation, skip_nan)

    function.__name__ = function.__qualname__ = name
    of_all = "" if skip_nan else "50" if percent else "0.5"
    q = of_all or ("50" if percent else "0.5")
    function.__doc__ = f"""Return {"percentiles" if percent else "quantiles"}{
        " of what is not NaN" if skip_nan else ""}, as `numpy.{name}`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.{name}(x, {q}))(np.array([3.0, 1.0, 2.0, 7.0]))
    array([0.5, 0. , 0.5, 0. ])
    """
    return numpy_function(getattr(np, name), "a", "q", "weights")(function)


quantile = _make("quantile", skip_nan=False, percent=False)
percentile = _make("percentile", skip_nan=False, percent=True)
nanquantile = _make("nanquantile", skip_nan=True, percent=False)
nanpercentile = _make("nanpercentile", skip_nan=True, percent=True)


def _median(a, axis, keepdims, skip_nan):
    rows, axes = _rows(a, axis)
    half = np.asarray(0.5)
    result = quantile_op(rows, half, method="linear", skip_nan=skip_nan, function="median")
    return _with_axes(result, axes, 0, keepdims)


@numpy_function(np.median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False) -> Any:
    """Return the median over the given axes, as `numpy.median`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.median)(np.array([3.0, 1.0, 2.0, 7.0]))
    array([0.5, 0. , 0.5, 0. ])
    """
    return _median(a, axis, keepdims, skip_nan=False)


@numpy_function(np.nanmedian)
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=np._NoValue) -> Any:
    """Return the median of what is not NaN, as `numpy.nanmedian`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.nanmedian)(np.array([3.0, np.nan, 2.0, 7.0]))
    array([1., 0., 0., 0.])
    """
    return _median(a, axis, keepdims is not np._NoValue and bool(keepdims),
                   skip_nan=True)
