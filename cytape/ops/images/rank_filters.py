"""Filters that choose an element of each window: extrema, medians, ranks.

Ops find where the chosen elements are; results gather them, and gradients go to the first of equal
elements. Extrema of rectangular windows are those of lines along one axis after the other.
"""

from typing import Any

import numpy as np
import scipy.ndimage as ndimage
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.choosing.padding import pad
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.images.boundaries import (
    PADDING,
    computed,
    filtered,
    filtered_axes,
    one_for_each,
)
from cytape.ops.indexing import getitem, take, take_along_axis
from cytape.ops.shaping import ndim, ravel
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d",
    "percentile_filter", "rank_filter"]


def _extended(x, widths, mode, cval):
    if not any(map(any, widths)):
        return x
    if PADDING[mode] is None:
        return pad(x, widths, constant_values=cval)
    return np.pad(x, widths, PADDING[mode])


def _is_same(x, y):
    return (x == y) | np.isnan(x) & np.isnan(y)


def _windows(shape, sizes):
    return [None if n is None else n - size + 1 for n, size in zip(shape, sizes, strict=True)]


# -- lines -----------------------------------------------------------------------------------------


def _extremum_places(x, *, axis, size, is_minimum):
    """Return the positions of extrema of windows along an axis, from pairs of shorter windows."""
    lines = np.moveaxis(x, axis, -1)
    places = np.broadcast_to(np.arange(lines.shape[-1]), lines.shape)
    length = 1
    while length < size:
        step = min(length, size - length)
        early, late = lines[..., :-step], lines[..., step:]
        is_late = late < early if is_minimum else late > early
        places = np.where(is_late, places[..., step:], places[..., :-step])
        lines = np.where(is_late, late, early)
        length += step
    if np.isnan(x).any():  # SciPy's order of comparisons decides where NaN counts
        theirs = ndimage.minimum_filter1d if is_minimum else ndimage.maximum_filter1d
        lines, n = np.moveaxis(x, axis, -1), places.shape[-1]
        found = theirs(lines, size, -1)[..., size // 2:size // 2 + n]
        for number in range(size - 1, -1, -1):
            is_found = _is_same(lines[..., number:number + n], found)
            places = np.where(is_found, np.arange(number, number + n), places)
    return np.ascontiguousarray(np.moveaxis(places, -1, axis))


extremum_op = nondifferentiable(
    "ScipyNdimageExtremum", _extremum_places,
    shape_rule=lambda x, *, axis, size, **_: symbolic_spec(_windows(
        x.shape, [size if i == axis else 1 for i in range(len(x.shape))]), np.intp))


def _extremum_along(theirs, input, size, axis, output, mode, cval, origin):
    x, cval = together(operand(input), cval)
    theirs(np.ones((1,) * ndim(x), x.dtype), size, axis, None, mode, 0.0, origin)  # its errors
    axis = normalize_axis_index(axis, ndim(x))
    before = size // 2 + origin
    widths = [(before, size - 1 - before) if i == axis else (0, 0) for i in range(ndim(x))]

    def function(x):
        x = _extended(x, widths, mode, cval)
        places = extremum_op(
            x, axis=axis, size=size, is_minimum=theirs is ndimage.minimum_filter1d)
        return take_along_axis(x, places, axis)

    return filtered(function, x, output)


@numpy_function(ndimage.minimum_filter1d, "input", "cval")
def minimum_filter1d(
        input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Any:
    """Return minima of windows along an axis, as `scipy.ndimage.minimum_filter1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import minimum_filter1d
    >>> cytape.grad(lambda x: np.sum(minimum_filter1d(x, 3)))(np.array([3.0, 1.0, 2.0]))
    array([0., 3., 0.])
    """
    return _extremum_along(ndimage.minimum_filter1d, input, size, axis, output, mode, cval, origin)


@numpy_function(ndimage.maximum_filter1d, "input", "cval")
def maximum_filter1d(
        input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Any:
    """Return maxima of windows along an axis, as `scipy.ndimage.maximum_filter1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import maximum_filter1d
    >>> cytape.grad(lambda x: np.sum(maximum_filter1d(x, 3)))(np.array([3.0, 1.0, 2.0]))
    array([2., 0., 1.])
    """
    return _extremum_along(ndimage.maximum_filter1d, input, size, axis, output, mode, cval, origin)


# -- windows of any form ---------------------------------------------------------------------------


def _choice(x, *structure, footprint, rank):
    """Return the positions of chosen elements, and the number of each in the footprint.

    `rank` is the place in the order of the window, 0 for the minimum and -1 for the maximum.
    """
    shape = np.array(footprint).shape
    offsets = np.argwhere(footprint)
    counts = _windows(x.shape, shape)
    windows = [x[tuple([slice(k, k + n) for k, n in zip(offset, counts, strict=True)])]
               for offset in offsets]
    numbers = np.zeros(counts, np.intp)
    if rank in (0, -1):
        if structure:
            weights = structure[0][tuple(offsets.T)]
            windows = [window - s if rank == 0 else window + s
                       for window, s in zip(windows, weights, strict=True)]
        best = windows[0].copy()
        for number, window in enumerate(windows[1:], 1):
            is_better = window < best if rank == 0 else window > best
            np.copyto(best, window, where=is_better)
            np.copyto(numbers, number, where=is_better)
    else:
        found = ndimage.rank_filter(np.ascontiguousarray(x), rank, footprint=np.array(footprint))
        found = found[tuple([slice(n // 2, n // 2 + m)
                             for n, m in zip(shape, counts, strict=True)])]
        for number in range(len(offsets) - 1, -1, -1):
            np.copyto(numbers, number, where=_is_same(windows[number], found))
    places = np.arange(x.size).reshape(x.shape)
    steps = places[tuple(offsets.T)] if x.size else np.zeros(len(offsets), np.intp)
    return places[tuple([slice(n) for n in counts])] + steps[numbers], numbers


def _choice_spec(x, *_, footprint, **__):
    spec = symbolic_spec(_windows(x.shape, np.array(footprint).shape), np.intp)
    return spec, spec


choice_op = nondifferentiable("ScipyNdimageChoice", _choice, shape_rule=_choice_spec)


def nested(array):
    """Return an array as nested tuples, which an attribute of an op can be."""
    return tuple(map(nested, array)) if np.ndim(array) else bool(array)


def choose(x, footprint, rank, output, mode, cval, origins, structure=None):
    """Return the elements of a rank in windows, with a structure subtracted or added."""
    before = [n // 2 + k for n, k in zip(footprint.shape, origins, strict=True)]
    widths = [(k, n - 1 - k) for n, k in zip(footprint.shape, before, strict=True)]
    options = {"footprint": nested(footprint), "rank": rank}

    def function(x):
        x = _extended(x, widths, mode, cval)
        if structure is None:
            return ravel(x)[choice_op(x, **options)[0]]
        places, numbers = choice_op(x, structure, **options)
        added = take(structure[np.nonzero(footprint)], numbers)
        return getitem(ravel(x), places) + (added if rank else -added)

    return filtered(function, x, output)


def expanded(footprint, axes, n_axes):
    """Return a footprint of some axes with an axis of length 1 for each other axis."""
    return np.expand_dims(footprint, tuple([i for i in range(n_axes) if i not in axes]))


def origins_of(origin, axes, n_axes):
    """Return the origin along each axis of an image."""
    given = dict(zip(axes, one_for_each(origin, len(axes)), strict=True))
    return [given.get(axis, 0) for axis in range(n_axes)]


def _filled(x, theirs, size, footprint, origin, axes, *args, **options):
    """Return axes, the footprint of all axes and origins, or raise the errors of SciPy."""
    theirs(np.ones((1,) * ndim(x), x.dtype), *args, size=size, footprint=footprint, origin=origin,
           axes=axes, **options)
    axes = filtered_axes(axes, ndim(x))
    if footprint is None:
        footprint = np.ones(one_for_each(size, len(axes)), bool)
    footprint = expanded(np.asarray(footprint, bool), axes, ndim(x))
    return axes, footprint, origins_of(origin, axes, ndim(x))


def _extrema(theirs, of_lines, rank, input, size, footprint, output, mode, cval, origin, axes):
    x, cval = together(operand(input), cval)
    axes, filled, origins = _filled(x, theirs, size, footprint, origin, axes, mode=mode)
    if not filled.all():
        return choose(x, filled, rank, output, mode, cval, origins)
    # In the order of `axes`, unlike an incomplete footprint.
    sizes = one_for_each(size, len(axes)) if footprint is None else np.shape(footprint)
    modes = one_for_each(mode, len(axes))
    is_changed = False
    for axis, n, mode_of_axis in zip(axes, sizes, modes, strict=True):
        if n > 1:
            x = of_lines(x, n, axis, output, mode_of_axis, cval, origins[axis])
            is_changed = True
    return x if is_changed else computed(lambda x: x + 0, x, output)


@numpy_function(ndimage.minimum_filter, "input", "cval")
def minimum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0,
                   origin=0, *, axes=None) -> Any:
    """Return minima of windows, as `scipy.ndimage.minimum_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import minimum_filter
    >>> cytape.grad(lambda x: minimum_filter(x, 2)[1, 1])(np.arange(4.0).reshape(2, 2))
    array([[1., 0.],
           [0., 0.]])
    """
    return _extrema(ndimage.minimum_filter, minimum_filter1d, 0, input, size, footprint, output,
                    mode, cval, origin, axes)


@numpy_function(ndimage.maximum_filter, "input", "cval")
def maximum_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0,
                   origin=0, *, axes=None) -> Any:
    """Return maxima of windows, as `scipy.ndimage.maximum_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import maximum_filter
    >>> cytape.grad(lambda x: maximum_filter(x, 2)[1, 1])(np.arange(4.0).reshape(2, 2))
    array([[0., 0.],
           [0., 1.]])
    """
    return _extrema(ndimage.maximum_filter, maximum_filter1d, -1, input, size, footprint, output,
                    mode, cval, origin, axes)


def _of_rank(theirs, rank_of, args, input, size, footprint, output, mode, cval, origin, axes):
    x, cval = together(operand(input), cval)
    axes, footprint, origins = _filled(
        x, theirs, size, footprint, origin, axes, *args, mode=mode)
    count = int(footprint.sum())
    rank = rank_of(count)
    rank += count if rank < 0 else 0
    if rank in (0, count - 1):
        function = maximum_filter if rank else minimum_filter
        return function(x, footprint=footprint, output=output, mode=mode, cval=cval, origin=origins)
    return choose(x, footprint, rank, output, mode, cval, origins)


@numpy_function(ndimage.rank_filter, "input", "cval")
def rank_filter(input, rank, size=None, footprint=None, output=None, mode="reflect", cval=0.0,
                origin=0, *, axes=None) -> Any:
    """Return elements of a rank in windows, as `scipy.ndimage.rank_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import rank_filter
    >>> cytape.grad(lambda x: rank_filter(x, 1, 3)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    return _of_rank(ndimage.rank_filter, lambda n: int(rank), (rank,), input, size, footprint,
                    output, mode, cval, origin, axes)


@numpy_function(ndimage.median_filter, "input", "cval")
def median_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0,
                  origin=0, *, axes=None) -> Any:
    """Return medians of windows, as `scipy.ndimage.median_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import median_filter
    >>> cytape.grad(lambda x: median_filter(x, 3)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    return _of_rank(ndimage.median_filter, lambda n: n // 2, (), input, size, footprint, output,
                    mode, cval, origin, axes)


@numpy_function(ndimage.percentile_filter, "input", "cval")
def percentile_filter(input, percentile, size=None, footprint=None, output=None, mode="reflect",
                      cval=0.0, origin=0, *, axes=None) -> Any:
    """Return percentiles of windows, as `scipy.ndimage.percentile_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import percentile_filter
    >>> cytape.grad(lambda x: percentile_filter(x, 50, 3)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    if is_tensor(percentile):
        raise TypeError("percentile_filter: expected a number as percentile, got a tensor")
    share = percentile + 100.0 if percentile < 0 else percentile
    return _of_rank(
        ndimage.percentile_filter, lambda n: n - 1 if share == 100 else int(n * share / 100.0),
        (percentile,), input, size, footprint, output, mode, cval, origin, axes)
