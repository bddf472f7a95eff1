"""Products, and the cumulative sum and product.

`prod` divides by elements only where nobody records that, and no product is zero, infinite or
subnormal. Else it does not, nor does `cumprod` ever, so zeros are no special case, whatever the
order of the derivative. An element that stands still adds nothing to a tangent, even if the product
of the others is infinite; nor does a gradient of zero.
"""

import math
from functools import partial

import numpy as np

from cytape.ops.constants import ones_like, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import multiply, where
from cytape.ops.engine.arguments import (
    axis_in_batch,
    is_given,
    is_tensor,
    only_numpy,
    wide,
    with_out,
)
from cytape.ops.engine.declare import general, linear, nondifferentiable
from cytape.ops.joining import concatenate
from cytape.ops.kernels.recurrences import (
    cumprod_gradient,
    cumsum_gradient,
    prod_gradient,
    products_of_others,
)
from cytape.ops.linalg import conj_if_complex
from cytape.ops.rearranging import flip
from cytape.ops.recurrences import after, before, recurrence_op
from cytape.ops.reductions import (
    from_start,
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
from cytape.tensor.spec import symbolic_spec

__all__ = ["cumprod", "cumsum", "prod"]

_NoValue = np._NoValue


def times(moving, factor):
    """Multiply a tangent or gradient by a factor; where it stands still 0 * inf is 0."""
    product = moving * factor
    if type(product) is np.ndarray and np.isfinite(product).all():
        return product
    return where((moving == 0) & ~isfinite(factor), 0, product)


# -- product ---------------------------------------------------------------------------------------


def _lines_last(x, axes):
    """Return lines along some axes as one last axis, and the order of axes that leads there."""
    order = tuple([i for i in range(x.ndim) if i not in axes]) + axes
    lines = transpose(x, order)
    extents = lines.shape[:x.ndim - len(axes)]
    return reshape(lines, (*extents, math.prod(x.shape[i] for i in axes))), order


def _lines_back(lines, x, order):
    moved = reshape(lines, tuple([x.shape[i] for i in order]))
    return transpose(moved, tuple(np.argsort(order).tolist()))


def _of_others(x, *starts, axis, t=None):
    """Call the kernel, which takes axes that are side by side."""
    dtype, common = x.dtype, wide(x.dtype)
    x, t = (None if y is None else y.astype(common, copy=False) for y in (x, t))
    order = None
    if len(axis) < max(axis) - min(axis) + 1:
        whole = x
        x, order = _lines_last(x, axis)
        t, axis = None if t is None else _lines_last(t, axis)[0], (x.ndim - 1,)
    found = products_of_others(x, axis, *starts, t=t).astype(dtype, copy=False)
    return found if order is None else _lines_back(found, whole, order)


def _partials(x, *starts, axis):
    x = np.asarray(x)  # of no axes NumPy's conjugate is a number
    if not axis:
        return np.ones_like(x)
    if not starts:
        g = np.ones([n for i, n in enumerate(x.shape) if i not in axis], x.dtype)
        found = prod_gradient(g, x, None, axis)
        if found is not None:
            return found
    return _of_others(x, *starts, axis=axis)


def _partials_tangent(x, t, *starts, axis):
    return _of_others(np.asarray(x), *starts, axis=axis, t=t) if axis else np.zeros_like(x)


def _partials_tangent_by_recurrences(x, t, *starts, axis):
    if not axis:
        return zeros_like(x)
    (x, order), whole, t = _lines_last(x, axis), x, _lines_last(t, axis)[0]
    begins = begins_op(*starts, n=x.shape[-1]) if starts else _first_of(x.shape[-1])
    ends = np.append(begins[1:], True) if type(begins) is np.ndarray else (
        concatenate([begins[1:], np.ones(1, bool)]))
    return _lines_back(_curvature(where(ends, ones_like(x), 0), x, t, begins), whole, order)


def _first_of(n):
    return np.arange(n) == 0


def _curvature(g, x, t, begins):
    """Return the tangent of the gradient of products along the last axis, as recurrences.

    The gradient is p * r, with the products p of the factors before each one, and r[k] = g[k] +
    x[k+1] * r[k+1].
    """
    factors = where(begins, 0, before(x))
    product = recurrence_op(factors, where(begins, ones_like(x), 0))
    moved = recurrence_op(factors, where(begins, 0, before(times(t, product))))
    factors = where(begins, 0, x)
    later = recurrence_op(factors, g, backwards=True)
    moved_later = recurrence_op(
        factors, after(where(begins, 0, times(t, later))), backwards=True)
    return times(moved, later) + times(moved_later, product)


def _begins(starts, *, n):
    begins = np.zeros(n, bool)
    begins[starts] = True
    return begins


begins_op = nondifferentiable(
    "BeginsOfSlices", _begins, shape_rule=lambda starts, *, n: symbolic_spec((n,), bool))

# For each factor the product of the others in its line, or in its slice: the partial derivatives.
partials_op = general(
    "ProductsOfOthers",
    _partials,
    vjp=lambda op, h: (
        partials_tangent_op(conj_if_complex(op.inputs[0]), h, *op.inputs[1:], **op.attrs),
        *[None for _ in op.inputs[1:]]),
    jvp=lambda op, t, *_: partials_tangent_op(op.inputs[0], t, *op.inputs[1:], **op.attrs),
    shape_rule=lambda x, *_, **__: x,
)
partials_tangent_op = composed(
    "ProductsOfOthersTangent", _partials_tangent, _partials_tangent_by_recurrences,
    shape_rule=lambda x, *_, **__: x)


def _prod_back(g, x, *, axis):
    x = np.asarray(x)  # of no axes NumPy's conjugate is a number
    found = prod_gradient(g, x, None, axis) if axis else g.copy()
    return times(g, _of_others(x, axis=axis)) if found is None else found


prod_back_op = composed(
    "ProdBack", _prod_back, lambda g, x, *, axis: times(g, partials_op(x, axis=axis)),
    shape_rule=lambda g, x, *, axis: x)


def _prod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    if type(g) is np.ndarray:
        found = prod_gradient(g, op.inputs[0], op.outputs[0], op.attrs["axis"])
        if found is not None:
            return found
    x, axes = operand(op), reduced_axes(op)
    g = reshape(g, tuple([1 if i in axes else n for i, n in enumerate(op.input_specs[0].shape)]))
    return prod_back_op(astype(g, x.dtype, copy=False), conj_if_complex(x), axis=axes)


def _prod_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    return summed(op, times(t, partials_op(operand(op), axis=reduced_axes(op))))


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


def _cumprod_back(g, x, *, axis, t=None):
    dtype, common = x.dtype, wide(x.dtype if g.dtype == x.dtype else np.result_type(g, x))
    lines = [None if y is None else np.moveaxis(y.astype(common, copy=False), axis, -1)
             for y in (g, x, t)]
    return np.moveaxis(cumprod_gradient(*lines).astype(dtype, copy=False), -1, axis)


def _cumprod_tangent(x, t, axis):
    x, t = moveaxis(x, axis, -1), moveaxis(t, axis, -1)
    first = _first_of(x.shape[-1])
    product = where(first, ones_like(x), before(cumprod_op(x, axis=-1, dtype=None)))
    return moveaxis(recurrence_op(x, times(t, product)), -1, axis)


def _cumprod_curvature_by_recurrences(g, x, t, *, axis):
    g, x, t = (moveaxis(y, axis, -1) for y in (g, x, t))
    return moveaxis(_curvature(g, x, t, _first_of(x.shape[-1])), -1, axis)


def _cumprod_back_vjp(op, h):
    if not op.input_specs[0].known:
        return NotImplemented, NotImplemented
    g, x = map(conj_if_complex, op.inputs)
    axis, needed = op.attrs["axis"], op.needs
    return (_cumprod_tangent(x, h, axis) if needed[0] else None,
            cumprod_curvature_op(g, x, h, axis=axis) if needed[1] else None)


def _cumprod_back_jvp(op, tg, tx):
    if not op.input_specs[0].known:
        return NotImplemented
    (g, x), axis = op.inputs, op.attrs["axis"]
    if tg is None:
        return cumprod_curvature_op(g, x, tx, axis=axis)
    moved = cumprod_back_op(tg, x, axis=axis)
    return moved if tx is None else moved + cumprod_curvature_op(g, x, tx, axis=axis)


cumprod_back_op = general(
    "CumprodBack", _cumprod_back, vjp=_cumprod_back_vjp, jvp=_cumprod_back_jvp,
    optional_tangents=(0, 1), shape_rule=lambda g, x, *, axis: x)
cumprod_curvature_op = composed(
    "CumprodCurvature", lambda g, x, t, *, axis: _cumprod_back(g, x, axis=axis, t=t),
    _cumprod_curvature_by_recurrences, shape_rule=lambda g, x, t, *, axis: x)


def _cumprod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    x = operand(op)
    g = astype(g, x.dtype, copy=False)
    return cumprod_back_op(g, conj_if_complex(x), axis=op.attrs["axis"])


def _cumprod_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    return _cumprod_tangent(operand(op), t, op.attrs["axis"])


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
