"""Counts in bins and histograms, differentiable in the weights.

The bin of an element is a step function of the element. Edges that are derived from the range of
the elements are differentiable in it.
"""

import math
from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops import reductions
from cytape.ops.adjoints.extent_checks import with_shape_of
from cytape.ops.adjoints.line_elements import added_at, take_along
from cytape.ops.calculus.differences import diff
from cytape.ops.calculus.sequences import linspace
from cytape.ops.calls.operands import is_tensor, operand, plain, values_of
from cytape.ops.constants import ones_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import multilinear, nondifferentiable
from cytape.ops.indexing import gather_op, scatter_add_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import (
    atleast_2d,
    ndim,
    ravel,
    reshape,
    shape,
    shape_of_any,
    transpose,
)
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = ["bincount", "histogram", "histogram2d", "histogramdd"]


bincount_op = nondifferentiable(
    "BinCount", np.bincount, shape_rule=lambda x, **_: symbolic_spec((None,), np.intp))


def _sums_of_weights(weights, x, *, minlength):
    sums = np.bincount(x, weights, minlength)
    return sums if weights.size else sums.astype(float)  # not integers, as NumPy's for no weights


def _weighted_bincount_spec(weights, x, *, minlength):
    if x.dtype.kind in "biu" and not shape_rules.may_fit(weights.shape, x.shape):
        raise ValueError("The weights and list don't have the same length.")
    return symbolic_spec((None,), float)


weighted_bincount_op = multilinear(
    "WeightedBinCount",
    _sums_of_weights,
    lambda op, g, x: gather_op(g, x, axis=0, mode="raise"),
    shape_rule=_weighted_bincount_spec,
)


def bincount(x, /, weights=None, minlength=0) -> Any:
    """Count small integers, or add up their weights, as `numpy.bincount`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda w: np.bincount([0, 1, 1], w)[1])(np.ones(3))
    array([0., 1., 1.])
    """
    if weights is None:
        return bincount_op(x, minlength=minlength)
    if not is_tensor(weights) and not is_tensor(x):
        return np.bincount(x, weights, minlength)
    x, weights = operand(x), operand(weights)
    if weights.dtype.kind == "c":
        np.bincount(np.zeros(1, int), np.ones(1, weights.dtype))  # raises NumPy's error
    places = values_of(x) if getattr(weights, "graph", None) is not None else None
    if places is not None and weights.shape == places.shape:  # they determine the number of bins
        return scatter_add_op(
            astype(weights, float, copy=False), places.astype(np.intp, copy=False), axis=0,
            mode="raise", size=np.bincount(places, minlength=minlength).size)
    return weighted_bincount_op(weights, x, minlength=minlength)


def _bins(a, edges, *, of_range=False):
    """Return the bin of each element; the number of bins for elements in none.

    of_range: the edges divide the range of the elements, which must be finite.
    """
    n = len(edges) - 1
    if of_range and not np.isfinite(edges).all():
        np.histogram_bin_edges(a)  # raises NumPy's error
    if np.any(edges[:-1] > edges[1:]):
        raise ValueError("`bins` must increase monotonically, when an array")
    found = np.searchsorted(edges, a, "right") - 1
    found[a == edges[-1]] = n - 1
    return np.where((found < 0) | (found >= n), n, found)


def _add_up(weights, bins, *, n):
    # In the dtype of the weights, as in NumPy.
    return added_at((n + 1,), bins, weights)[:n]


def _weights_back(op, g, bins):
    return take_along(np.pad(g, (0, 1)), bins)  # elements in no bin get a zero


bins_op = nondifferentiable(
    "BinsOfElements", _bins,
    shape_rule=lambda a, edges, **_: spec_like(a, np.dtype(np.intp)), batch=batch_axis.only(0))


def _added_to_bins(call):
    """Compute a batch with separate bins for each member, one of them for elements in no bin."""
    inputs = batch_axis.repeated(call)
    if inputs is None or call.extent is None or not call.input_specs[1].known:
        return NotImplemented
    (weights, bins), n = inputs, call.attrs["n"] + 1
    first = np.arange(call.extent).reshape(-1, *(1,) * call.input_specs[1].ndim) * n
    found = call.again([reshape(weights, (-1,)), reshape(bins + first, (-1,))], n=call.extent * n)
    return reshape(found, (call.extent, n))[:, :-1]


add_to_bins_op = multilinear(
    "AddToBins", _add_up, _weights_back,
    shape_rule=lambda weights, bins, *, n: symbolic_spec((n,), weights.dtype), batch=_added_to_bins)


def _edges(a, bins, range, dtype):
    """Return the edges of bins, from given edges, a number of bins, or a rule.

    Edges that are derived from a range have the dtype.
    """
    if getattr(bins, "shape", None) == ():
        bins = plain(bins)
    if is_tensor(bins) or np.ndim(bins) == 1:
        return operand(bins)
    if not isinstance(bins, str):
        if range is not None or 0 in shape_of_any(a):
            return np.histogram_bin_edges(np.empty(0, dtype), bins, range)
        if is_tensor(a):
            low, high = reductions.min(a), reductions.max(a)
            ends = values_of(low), values_of(high)
            if ends[0] is not None and not np.isfinite(ends).all():
                np.histogram_bin_edges(ends)  # raises NumPy's error
            np.histogram_bin_edges([0.0, 1.0], bins)  # the same
            is_one = low == high
            return linspace(where(is_one, low - 0.5, low), where(is_one, high + 0.5, high),
                            int(bins) + 1)
    return np.histogram_bin_edges(plain(a), bins, range)


def _divide_range(bins, range):
    """Return whether the edges are found from the range of the elements."""
    return range is None and np.ndim(bins) == 0


@numpy_function(np.histogram, "a", "bins", "weights")
def histogram(a, bins=10, range=None, density=None, weights=None) -> Any:
    """Count in bins, or add up weights there, as `numpy.histogram`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda w: np.histogram([0.5, 2.5, 1.5], [0, 2, 3], weights=w)[0][0])(np.ones(3))
    array([1., 0., 1.])
    """
    a = operand(a)
    if isinstance(bins, str) and weights is not None:
        np.histogram(np.empty(0), bins, weights=np.empty(0))  # raises NumPy's error
    edges = _edges(a, bins, range, a.dtype)
    if weights is not None:
        weights = operand(weights)
        weights = ravel(with_shape_of(
            a, weights, ValueError, "weights should have the same shape as a."))
    else:
        weights = ones_like(ravel(a), dtype=np.intp)
    if ndim(edges) != 1:
        raise ValueError(f"`bins` must be 1d, when an array, got shape {shape(edges)}")
    if shape(edges)[0] is None:
        raise SymbolicTensorError(
            "histogram: how many bins there are is not known: give the placeholder of the edges a "
            "shape, or reshape it to a known one")
    n = shape(edges)[0] - 1
    found = bins_op(ravel(convert_to_tensor(a)), edges, of_range=_divide_range(bins, range))
    counts = add_to_bins_op(weights, found, n=n)
    if density:
        return counts / diff(edges) / reductions.sum(counts), edges
    return counts, edges


@numpy_function(np.histogramdd, "sample", "bins", "weights")
def histogramdd(sample, bins=10, range=None, density=None, weights=None) -> Any:
    """Count points in cells, or add up weights there, as `numpy.histogramdd`.

    Examples
    --------
    >>> from cytape import grad
    >>> points = np.array([[0.5, 0.5], [1.5, 1.5], [1.6, 1.7]])
    >>> grad(lambda w: np.histogramdd(points, 2, weights=w)[0][1, 1])(np.ones(3))
    array([0., 1., 1.])
    """
    is_table = len(getattr(sample, "shape", ())) == 2  # else a sequence of coordinates
    sample = operand(sample) if is_table else transpose(atleast_2d(operand(sample)))
    depth = shape(sample)[1]
    if depth is None:
        raise SymbolicTensorError(
            f"the points of a histogram need a known number of coordinates, got {shape(sample)}")
    try:
        bins = list(bins)
    except TypeError:  # a number
        bins = [bins] * depth
    if range is not None or len(bins) != depth or not all(
            type(part) is int and part > 0 for part in bins):
        # NumPy's checks of bins and ranges.
        np.histogramdd(np.empty((0, depth)), [_known_bins(part) for part in bins], range)
    cell, outside, edges = 0, False, []
    for i, part in enumerate(bins):
        coordinates = sample[:, i]
        limits = None if range is None else range[i]
        edges.append(_edges(coordinates, part, limits, float))
        found = bins_op(coordinates, edges[i], of_range=_divide_range(part, limits))
        n = len(edges[i]) - 1
        outside = outside | (found == n)
        cell = cell * n + found
    lengths = [len(edge) - 1 for edge in edges]
    n_cells = math.prod(lengths)
    weights = ones_like(sample[:, 0], dtype=float) if weights is None else with_shape_of(
        sample[:, 0], operand(weights), ValueError,
        "The weights and list don't have the same length.")
    if not np.can_cast(weights.dtype, float):
        np.bincount([0], np.ones(1, weights.dtype))  # raises NumPy's error
    counts = reshape(add_to_bins_op(  # in NumPy's dtype of counts
        convert_to_tensor(weights).astype(float), where(outside, n_cells, cell), n=n_cells),
        lengths)
    if density:
        total = reductions.sum(counts)
        for axis, edge in enumerate(edges):
            sides = [1] * depth
            sides[axis] = -1
            counts = counts / reshape(diff(edge), sides)
        counts = counts / total
    return counts, edges


def _known_bins(bins):
    """Return bins for NumPy's checks: increasing numbers in place of symbolic edges."""
    if not is_tensor(bins) or getattr(bins, "shape", None) == ():
        return plain(bins)
    values = values_of(bins)
    return np.arange(shape(bins)[0]) if values is None else values


@numpy_function(np.histogram2d, "x", "y", "bins", "weights")
def histogram2d(x, y, bins=10, range=None, density=None, weights=None) -> Any:
    """Count points of a plane in cells, or add up weights, as `numpy.histogram2d`.

    Examples
    --------
    >>> from cytape import grad
    >>> x, y = np.array([0.5, 1.5, 1.6]), np.array([0.5, 1.5, 1.7])
    >>> grad(lambda w: np.histogram2d(x, y, 2, weights=w)[0][1, 1])(np.ones(3))
    array([0., 1., 1.])
    """
    if shape_rules.differ(*[None if shape(part)[:1] == (None,) else len(part) for part in (x, y)]):
        raise ValueError("x and y must have the same length.")
    try:
        is_shared = len(bins) not in (1, 2)
    except TypeError:  # a number
        is_shared = False
    if is_shared:  # one array of edges for both
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]
