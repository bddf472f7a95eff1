"""Products, and the cumulative sum and product.

`prod` divides by elements only where nobody records that, and no product is zero, infinite or
subnormal. Else it does not, nor does `cumprod` ever, so zeros are no special case, whatever the
order of the derivative. An element that stands still adds nothing to a tangent, even if the product
of the others is infinite; nor does a gradient of zero.
"""

import functools
import math
from functools import partial

import numpy as np

from cytape.ops.constants import ones_like, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import conj, multiply, where
from cytape.ops.engine.arguments import (
    axis_in_batch,
    is_given,
    is_tensor,
    only_numpy,
    wide,
    with_out,
)
from cytape.ops.engine.declare import general, linear
from cytape.ops.joining import concatenate
from cytape.ops.kernels.recurrences import (
    cumprod_gradient,
    cumsum_gradient,
    prod_gradient,
)
from cytape.ops.rearranging import flip
from cytape.ops.reductions import (
    from_start,
    kept,
    loses_imaginary,
    operand,
    reduced_axes,
    summed,
)
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis, ndim, ravel, reshape, transpose
from cytape.ops.shared.conform import widely
from cytape.ops.shared.deferred import composed
from cytape.ops.steps import isfinite
from cytape.tensor import Tensor

__all__ = ["cumprod", "cumsum", "prod"]

_NoValue = np._NoValue


def _times(moving, factor, still):
    """Multiply a tangent or gradient by a factor; where it stands still 0 * inf is 0."""
    return where(still & ~isfinite(factor), 0, moving * factor)


def _conj(x):
    return conj(x) if x.dtype.kind == "c" else x


def _are_normal(factors, *products):
    """Whether all are arrays of one dtype, and nothing is zero, subnormal, infinite or NaN."""
    tiny, largest = _normal_range(factors.dtype)
    for x in products:
        if isinstance(x, Tensor) or x.dtype != factors.dtype:
            return False  # somebody records, or the precision is not the same
        sizes = np.abs(x)
        if not sizes.size or sizes.min() < tiny or not sizes.max() <= largest:
            return False
    # What else a factor might be would show in a product.
    return np.abs(factors).min(initial=largest) >= tiny


@functools.cache
def _normal_range(dtype):
    return np.finfo(dtype).tiny, np.finfo(dtype).max


# -- product ---------------------------------------------------------------------------------------


def _products_of_others(row):
    """Return for each element the product of all the others along the last axis.

    Elements are multiplied in pairs, and pairs of pairs, up a tree; then each node hands down to
    one child what it got from above times the other child.
    """
    n = row.shape[-1]
    if n < 2:
        return ones_like(row)
    half = n // 2
    left, right, odd = row[..., :half], row[..., half : 2 * half], row[..., 2 * half :]
    above = _products_of_others(concatenate([left * right, odd], axis=-1))
    pairs, odd = above[..., :half], above[..., half:]
    return concatenate([pairs * right, pairs * left, odd], axis=-1)


def _prod_partials(x, axes):
    """Return the partial derivative of a product in each element."""
    others = tuple(i for i in range(x.ndim) if i not in axes)
    order = others + axes
    rows = transpose(x, order)
    size = math.prod(x.shape[i] for i in axes)
    partials = _products_of_others(reshape(rows, (*[x.shape[i] for i in others], size)))
    return transpose(reshape(partials, rows.shape), tuple(np.argsort(order)))


def _prod_back(g, x, *, axis):
    x = np.asarray(x)  # of no axes NumPy's conjugate is a number
    found = prod_gradient(g, x, None, axis)
    if found is None:
        product = np.multiply.reduce(x, axis=axis, keepdims=True)
        whole = g * product
        found = whole / x if _are_normal(x, product, whole) else (
            _prod_back_by_pairs(g, x, axis=axis))
    return found


def _prod_back_by_pairs(g, x, *, axis):
    return _times(g, _prod_partials(x, axis), g == 0)


prod_back_op = composed(
    "ProdBack", _prod_back, _prod_back_by_pairs, shape_rule=lambda g, x, *, axis: x)


def _prod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    if type(g) is np.ndarray:
        found = prod_gradient(g, op.inputs[0], op.outputs[0], op.attrs["axis"])
        if found is not None:
            return found
    x, axes = operand(op), reduced_axes(op)
    g = reshape(g, tuple([1 if i in axes else n for i, n in enumerate(op.input_specs[0].shape)]))
    return prod_back_op(astype(g, x.dtype, copy=False), _conj(x), axis=axes)


def _prod_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    x, product = operand(op), kept(op, op.outputs[0])
    partials = product / x if _are_normal(x, product) else _prod_partials(x, reduced_axes(op))
    return summed(op, _times(t, partials, t == 0))


prod_op = general(
    "Prod",
    forward=np.prod,
    vjp=_prod_vjp,
    jvp=_prod_jvp,
    saved_outputs=(0,),
    batched=_prod_jvp,
    shape_rule=shape_rules.reduction(np.prod),
)


def _as_multiplied(a, dtype):
    """Return the factors as NumPy casts them: complex ones lose their imaginary part before."""
    return astype(a, dtype) if loses_imaginary(a, dtype) else a


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NoValue, where=_NoValue):
    """Multiply the elements over the given axes, as `numpy.prod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.prod)(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    if out is not None:
        return with_out(
            np.prod, out, a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial,
            where=where)
    a = _as_multiplied(a, dtype)
    if (is_given(initial) or is_given(where)) and is_tensor([a, initial, where]):
        return from_start(
            partial(prod_op, axis=axis, dtype=dtype, keepdims=keepdims), multiply, 1, a, initial,
            where)
    options = only_numpy("prod", [a], initial=initial, where=where)
    return prod_op(a, axis=axis, dtype=dtype, keepdims=keepdims, **options)


# -- cumulative sum and product --------------------------------------------------------------------


def _cumsum_transpose(op, g):
    axis = op.attrs["axis"]
    if type(g) is not np.ndarray:
        return widely(lambda g: flip(cumsum_op(flip(g, axis), axis=axis, dtype=None), axis), g)
    lines = g.astype(wide(g.dtype), copy=False)
    if g.ndim == 1:
        return cumsum_gradient(lines).astype(g.dtype, copy=False)
    total = cumsum_gradient(np.moveaxis(lines, axis, -1)).astype(g.dtype, copy=False)
    return np.moveaxis(total, -1, axis)


cumsum_op = linear(
    "Cumsum",
    forward=np.cumsum,
    transpose=_cumsum_transpose,
    batched=lambda x, *, axis, **options: cumsum_op(x, axis=axis_in_batch(axis, x.ndim), **options),
    shape_rule=shape_rules.accumulation(np.cumsum),
)


def _doubling_steps(row):
    """Return the (shift, row) pairs that lead to the cumulative product along the last axis.

    Each step multiplies every element by the one `shift` places before it, in the row that the
    step before has made; the shift doubles each time.
    """
    steps, shift = [], 1
    while shift < row.shape[-1]:
        steps.append((shift, row))
        product = row[..., shift:] * row[..., :-shift]
        row = concatenate([row[..., :shift], product], axis=-1)
        shift *= 2
    return steps


def _cumprod_back(g, x, *, axis):
    dtype, common = x.dtype, wide(x.dtype if g.dtype == x.dtype else np.result_type(g, x))
    g, x = g.astype(common, copy=False), x.astype(common, copy=False)
    if g.ndim == 1:
        return cumprod_gradient(g, x).astype(dtype, copy=False)
    result = cumprod_gradient(np.moveaxis(g, axis, -1), np.moveaxis(x, axis, -1))
    return np.moveaxis(result.astype(dtype, copy=False), -1, axis)


def _cumprod_back_by_doubling(g, x, *, axis):
    g = moveaxis(g, axis, -1)
    still = g == 0
    for shift, row in reversed(_doubling_steps(moveaxis(x, axis, -1))):
        first, rest, at_rest = g[..., :shift], g[..., shift:], still[..., shift:]
        to_later = concatenate([first, _times(rest, row[..., :-shift], at_rest)], axis=-1)
        to_earlier = concatenate(
            [_times(rest, row[..., shift:], at_rest), zeros_like(first)], axis=-1
        )
        g = to_later + to_earlier
        earlier = concatenate([at_rest, ones_like(still[..., :shift])], axis=-1)
        still = still & earlier
    return moveaxis(g, -1, axis)


cumprod_back_op = composed(
    "CumprodBack", _cumprod_back, _cumprod_back_by_doubling,
    shape_rule=lambda g, x, *, axis: x)


def _cumprod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    x = operand(op)
    return cumprod_back_op(astype(g, x.dtype, copy=False), _conj(x), axis=op.attrs["axis"])


def _cumprod_jvp(op, t):
    axis = op.attrs["axis"]
    if not op.input_specs[0].known:
        return NotImplemented
    t = moveaxis(t, axis, -1)
    still = t == 0
    for shift, row in _doubling_steps(moveaxis(operand(op), axis, -1)):
        later, earlier = still[..., shift:], still[..., :-shift]
        product = _times(t[..., shift:], row[..., :-shift], later) + (
            _times(t[..., :-shift], row[..., shift:], earlier)
        )
        t = concatenate([t[..., :shift], product], axis=-1)
        still = concatenate([still[..., :shift], later & earlier], axis=-1)
    return moveaxis(t, -1, axis)


def _cumprod(a, axis=None, dtype=None):
    """Return the cumulative product along an axis, as `numpy.cumprod`."""
    if type(a) is np.ndarray:  # the method is what NumPy's function looks for
        return a.cumprod(axis, dtype)
    return np.cumprod(a, axis, dtype)


cumprod_op = general(
    "Cumprod",
    forward=_cumprod,
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    shape_rule=shape_rules.accumulation(np.cumprod),
)


def _cumulative(op, a, axis, dtype):
    """Apply `op` along `axis`, or to the flattened array where `axis` is None."""
    if not is_tensor(a):
        return op.forward(a, axis, dtype)
    if axis is None and type(a) is Tensor and a.ndim == 1:
        axis = 0
    elif axis is None or ndim(a) == 0:
        a, axis = ravel(a), 0 if axis is None else axis
    return op(a, axis=axis, dtype=dtype)


def cumsum(a, axis=None, dtype=None, out=None):
    """Return the cumulative sum along an axis, as `numpy.cumsum`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.cumsum(x).sum())(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    if out is not None:
        return with_out(np.cumsum, out, a, axis=axis, dtype=dtype)
    return _cumulative(cumsum_op, a, axis, dtype)


def cumprod(a, axis=None, dtype=None, out=None):
    """Return the cumulative product along an axis, as `numpy.cumprod`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.cumprod(x)[-1])(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    if out is not None:
        return with_out(np.cumprod, out, a, axis=axis, dtype=dtype)
    return _cumulative(cumprod_op, _as_multiplied(a, dtype), axis, dtype)


NUMPY_FUNCTIONS = {np.cumprod: cumprod, np.cumsum: cumsum, np.prod: prod}
