"""Discrete derivatives and integrals along an axis: `diff`, `gradient`, `trapezoid`, `unwrap`.

The steps that `unwrap` adds are constants: its derivative in `p` is 1.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cytape.ops import cumulative, reductions
from cytape.ops.adjoints.conform import is_one_number
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import SMALL, is_tensor, operand, plain
from cytape.ops.comparisons import not_equal
from cytape.ops.constants import ones_like, zeros_like
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, linear
from cytape.ops.indexing import getitem, index_add
from cytape.ops.joining import concatenate
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import ndim, ravel, reshape, shape
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "cumulative_prod", "cumulative_sum", "diff", "ediff1d", "gradient", "trapezoid", "unwrap",
]  # fmt: skip

_NoValue = np._NoValue


def _slice(x, axis, *bounds):
    """Take a slice along one axis."""
    return getitem(x, (slice(None),) * axis + (slice(*bounds),))


# -- differences -----------------------------------------------------------------------------------


def _differences(a, *, axis):
    before = (slice(None),) * axis
    return a[(*before, slice(1, None))] - a[(*before, slice(None, -1))]


def _differences_back(g, *, axis, extent):
    """Return the transpose of `_differences`: the predecessor of g minus g, zeros at the ends."""
    shape, before = list(g.shape), (slice(None),) * axis
    shape[axis] = extent
    if not g.shape[axis]:
        return np.zeros(shape, g.dtype)
    result = np.empty(shape, g.dtype)
    first, middle, last = ((*before, slice(*bounds)) for bounds in ((1,), (1, -1), (-1, None)))
    np.subtract(0, g[first], out=result[first])
    result[last] = g[last]
    if is_one_number(g):
        result[middle] = np.subtract(g.flat[0], g.flat[0])
    else:
        np.subtract(g[(*before, slice(-1))], g[(*before, slice(1, None))], out=result[middle])
    return result


def _with_extent(x, axis, change):
    extents = list(shape_rules.shape_of(x, "diff"))
    extents[axis] = change(extents[axis])
    return symbolic_spec(extents, x.dtype)


def _diff_transpose(op, g):
    spec, axis = op.input_specs[0], op.attrs["axis"]
    if spec.shape[axis] is not None:
        return diff_back_op(g, axis=axis, extent=spec.shape[axis])
    after, before = (
        index_add(g, spec, (slice(None),) * axis + (part,))
        for part in (slice(1, None), slice(None, -1)))
    return after - before


diff_op = linear(
    "Diff", _differences, transpose=_diff_transpose,
    shape_rule=lambda a, axis: _with_extent(
        a, axis, lambda n: None if n is None else max(n - 1, 0)),
    composition=_differences,
    batch=batch_axis.along_axis,
)  # fmt: skip
diff_back_op = linear(
    "DiffBack", _differences_back,
    transpose=lambda op, g: diff_op(g, axis=op.attrs["axis"]),
    shape_rule=lambda g, axis, extent: _with_extent(g, axis, lambda n: extent),
    batch=batch_axis.along_axis,
)  # fmt: skip


def _diff(a, axis):
    if a.dtype == bool:
        return not_equal(_slice(a, axis, 1, None), _slice(a, axis, None, -1))
    if a.spec.known and a.size <= SMALL:
        return _slice(a, axis, 1, None) - _slice(a, axis, None, -1)
    return diff_op(a, axis=axis)


def _edge(x, a, axis):
    """Return the operand that `diff` joins to `a`; a number becomes one element per line."""
    x = operand(x)
    if ndim(x):
        return x
    first = _slice(a, axis, 0, 1)
    if None in shape(first):
        return x + zeros_like(first, dtype=x.dtype)
    return broadcast_to(x, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))


@numpy_function(np.diff, "a", "prepend", "append")
def diff(a, n=1, axis=-1, prepend=_NoValue, append=_NoValue) -> Any:
    """Return differences of neighbours along an axis, as `numpy.diff`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.diff(x)[0])(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    if n == 0:
        return convert_to_tensor(operand(a))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if prepend is append is _NoValue:
        a = operand(a)
    else:
        a, prepend, append = together(*[
            x if x is _NoValue else operand(x) for x in (a, prepend, append)])
    if ndim(a) == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, ndim(a))
    parts = [] if prepend is _NoValue else [_edge(prepend, a, axis)]
    parts.append(a)
    if append is not _NoValue:
        parts.append(_edge(append, a, axis))
    a = convert_to_tensor(concatenate(parts, axis) if len(parts) > 1 else a)
    for _ in range(n):
        a = _diff(a, axis)
    return a


def ediff1d(ary, to_end=None, to_begin=None) -> Any:
    """Return differences of consecutive elements of the flat array, as `numpy.ediff1d`.

    Examples
    --------
    >>> import cytape
    >>> np.ediff1d(cytape.constant([1.0, 3.0]), to_end=7.0).numpy()
    array([2., 7.])
    """
    if to_end is to_begin is None and type(ary) is Tensor and ary.dtype != bool:
        return _diff(ary if ary.ndim == 1 else ravel(ary), 0)
    if not any(map(is_tensor, (ary, to_end, to_begin))):
        return np.ediff1d(ary, to_end, to_begin)
    ary, to_begin, to_end = together(*[
        x if x is None else operand(x) for x in (ary, to_begin, to_end)])
    flat = ravel(convert_to_tensor(ary))
    if flat.dtype == bool:
        np.ediff1d([True, True])  # raises NumPy's error
    differences = _diff(flat, 0)
    if to_end is to_begin is None:
        return differences
    parts = []
    for x, name in ((to_begin, "to_begin"), (differences, ""), (to_end, "to_end")):
        if x is not None:
            if not np.can_cast(x.dtype, flat.dtype, "same_kind"):
                raise TypeError(
                    f"dtype of `{name}` must be compatible with input `ary` under the "
                    "`same_kind` rule.")
            parts.append(ravel(x).astype(flat.dtype))
    return concatenate(parts)


# -- gradient --------------------------------------------------------------------------------------


def _spacings(f, varargs, axes):
    """Return for each axis a number, or the distances of adjacent points."""
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and ndim(varargs[0]) == 0:
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for x, axis in zip(varargs, axes, strict=True):
        if ndim(x) == 0:
            spacings.append(x)
            continue
        if ndim(x) != 1:
            raise ValueError("distances must be either scalars or 1d")
        x = operand(x)
        x = with_extents(
            x, ValueError, "when 1d, distances must match the length of the corresponding "
            "dimension", like=f, same=[(0, axis)])
        if x.dtype.kind in "biu":
            x = x.astype(np.float64)
        spacings.append(diff(x))
    return spacings


def _gradient_along(f, h, axis, edge_order):
    """Return central differences, and one-sided ones of a given order at both ends."""

    def at(*bounds):
        return _slice(f, axis, *bounds)

    def line(x):
        return reshape(x, (-1,) + (1,) * (ndim(f) - 1 - axis)) if ndim(x) == 1 else x

    if ndim(h) == 0:
        inside = (at(2, None) - at(None, -2)) / (2.0 * h)
        first, last = h, h
        second, before_last = h, h
    else:
        left, right = h[:-1], h[1:]
        inside = (line(-right / (left * (left + right))) * at(None, -2)
                  + line((right - left) / (left * right)) * at(1, -1)
                  + line(left / (right * (left + right))) * at(2, None))
        first, second, before_last, last = h[0], h[1:2], h[-2:-1], h[-1]
    if edge_order == 1:
        start = (at(1, 2) - at(0, 1)) / first
        stop = (at(-1, None) - at(-2, -1)) / last
        return concatenate((start, inside, stop), axis)
    second, before_last = (
        x if ndim(x) == 0 else reshape(x, ()) for x in (second, before_last))
    start = (-(2.0 * first + second) / (first * (first + second)) * at(0, 1)
             + (first + second) / (first * second) * at(1, 2)
             - first / (second * (first + second)) * at(2, 3))
    stop = (last / (before_last * (before_last + last)) * at(-3, -2)
            - (last + before_last) / (before_last * last) * at(-2, -1)
            + (2.0 * last + before_last) / (last * (before_last + last)) * at(-1, None))
    return concatenate((start, inside, stop), axis)


@numpy_function(np.gradient, "f", "varargs")
def gradient(f, *varargs, axis=None, edge_order=1) -> Any:
    """Return central differences, as `numpy.gradient`; the distances may be differentiated too.

    Examples
    --------
    >>> import cytape
    >>> np.gradient(cytape.constant([1.0, 2.0, 4.0])).numpy()
    array([1. , 1.5, 2. ])
    """
    f, *varargs = together(operand(f), *varargs)
    axes = tuple(range(ndim(f))) if axis is None else normalize_axis_tuple(axis, ndim(f))
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if f.dtype.kind not in "fc":
        f = f.astype(np.float64)
    spacings = _spacings(f, varargs, axes)
    f = with_extents(
        f, ValueError, "Shape of array too small to calculate a numerical gradient, at least "
        "(edge_order + 1) elements are required.", least=[(i, edge_order + 1) for i in axes])
    results = tuple([
        _gradient_along(f, h, i, edge_order).astype(f.dtype)
        for h, i in zip(spacings, axes, strict=True)])
    return results[0] if len(results) == 1 else results


# -- sums ------------------------------------------------------------------------------------------


@numpy_function(np.trapezoid, "y", "x", "dx")
def trapezoid(y, x=None, dx=1.0, axis=-1) -> Any:
    """Integrate by the trapezoidal rule, as `numpy.trapezoid`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.trapezoid)(np.array([1.0, 2.0, 5.0]))
    array([0.5, 1. , 0.5])
    """
    y, x, dx = together(operand(y), x if x is None else operand(x), dx)
    along = normalize_axis_index(axis, ndim(y))
    if x is None:
        d = dx
    elif ndim(x) == 1:
        d = reshape(diff(x), (-1,) + (1,) * (ndim(y) - 1 - along))
    else:
        d = diff(x, axis=axis)
    both = _slice(y, along, 1, None) + _slice(y, along, None, -1)
    return reductions.sum(d * both / 2.0, axis)  # x may have more axes than y


def _cumulative(name, accumulate, start):
    def function(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        x = convert_to_tensor(x)
        if ndim(x) == 0:
            x = reshape(x, (1,))
        if axis is None:
            if ndim(x) > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` "
                                 "argument is required.")
            axis = 0
        if isinstance(axis, tuple):
            axes = normalize_axis_tuple(axis, ndim(x))
            if len(axes) != 1:
                raise ValueError("accumulate does not allow multiple axes")
            axis, = axes
        result = accumulate(x, axis, dtype)
        if include_initial:
            axis = normalize_axis_index(axis, ndim(x))
            edge = result if x.shape[axis] else reductions.sum(result, axis, keepdims=True)
            result = concatenate((start(_slice(edge, axis, 0, 1)), result), axis)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the cumulative {name[11:]} along an axis, as `numpy.{name}`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.{name}(x)[-1])(np.ones(3))
    array([1., 1., 1.])
    """
    return numpy_function(getattr(np, name))(function)


cumulative_sum = _cumulative("cumulative_sum", cumulative.cumsum, zeros_like)
cumulative_prod = _cumulative("cumulative_prod", cumulative.cumprod, ones_like)


unwrap_op = general(
    "Unwrap", np.unwrap, lambda op, g: g, lambda op, t: t, saved_inputs=(),
    batched=lambda op, t: t,
    shape_rule=lambda p, *, discont, axis, period: symbolic_spec(
        p.shape, np.unwrap(
            np.ones((1,) * len(p.shape or (1,)), p.dtype), axis=axis, period=period).dtype),
    batch=batch_axis.along_axis)


@numpy_function(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi) -> Any:
    """Add multiples of the period where adjacent elements differ by more, as `numpy.unwrap`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.unwrap(x)))(np.array([0.0, 6.0]))
    array([1., 1.])
    """
    p = convert_to_tensor(p)
    if p.shape is not None:
        normalize_axis_index(axis, ndim(p))
    return unwrap_op(p, discont=plain(discont), axis=axis, period=plain(period))
