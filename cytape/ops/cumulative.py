"""Product, cumulative sum and cumulative product.

The first derivative of `prod` divides by elements if these and all products are normal numbers.
Otherwise, and in `cumprod` always, derivatives are recurrences without division, so zeros need no
special case at any order. Zero tangents and gradients contribute nothing, even times an infinite
product of other elements.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import widely
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.calls.operands import is_given, wide
from cytape.ops.comparisons import isfinite
from cytape.ops.constants import ones_like, zeros, zeros_like
from cytape.ops.creation import astype
from cytape.ops.elementwise import multiply, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, linear, nondifferentiable
from cytape.ops.indexing import take
from cytape.ops.joining import concatenate
from cytape.ops.linear_recurrences import after, before, recurrence_op
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import flip
from cytape.ops.reductions import (
    from_start,
    loses_imaginary,
    operand,
    reduced_axes,
    summed,
)
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import ndim, ravel, reshape, transpose
from cytape.ops.special_kernels.line_products import products_derivative
from cytape.ops.special_kernels.recurrence_loops import cumsum_gradient
from cytape.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["cumprod", "cumsum", "prod"]

_NoValue = np._NoValue


def times(moving, factor):
    """Multiply a tangent or gradient by a factor; where it is zero, 0 * inf is 0."""
    product = moving * factor
    if type(product) is np.ndarray and np.isfinite(product).all():
        return product
    return where((moving == 0) & ~isfinite(factor), 0, product)


# -- product ---------------------------------------------------------------------------------------


def _lines_last(x, axes):
    """Return an array with some axes moved to the end and joined, and the order of its axes."""
    order = tuple([i for i in range(x.ndim) if i not in axes]) + axes
    lines = transpose(x, order)
    extents = lines.shape[:x.ndim - len(axes)]
    return reshape(lines, (*extents, math.prod(x.shape[i] for i in axes))), order


def _lines_back(lines, shape, order):
    moved = reshape(lines, tuple([shape[i] for i in order]))
    return transpose(moved, tuple(np.argsort(order).tolist()))


def _shape_of_products(shape, axis, starts, cumulative):
    """Return the shape of the products, with reduced axes of length one."""
    count = starts[0].shape[0] if starts else 1
    return shape if cumulative else tuple([
        count if i in axis else n for i, n in enumerate(shape)])


def _derivative(x, starts, axis, cumulative, g=None, t=None, product=None):
    """Call the kernel on lines along adjacent axes; half precision is widened."""
    if not axis:
        found = np.zeros_like(x) if g is not None and t is not None else t if g is None else g
        return found.reshape(x.shape).astype(x.dtype)
    if x.dtype.char == "e":
        wider = {name: None if y is None else y.astype(np.float32)
                 for name, y in {"g": g, "t": t}.items()}
        return _derivative(x.astype(np.float32), starts, axis, cumulative, **wider).astype(x.dtype)
    options = {"g": g, "product": product, "cumulative": cumulative}
    found = products_derivative(x, axis, *starts, t=t, **options)
    if found is not None:
        return found
    lines, order = _lines_last(x, axis)
    t = None if t is None else _lines_last(t, axis)[0]
    found = products_derivative(lines, -1, *starts, t=t, **options)
    return found if g is None else _lines_back(found, x.shape, order)


def _back(g, x, *starts, axis, cumulative):
    return _derivative(np.asarray(x), starts, axis, cumulative, g=g)


def _tangent(x, t, *starts, axis, cumulative):
    x = np.asarray(x)  # NumPy's conjugate of a 0-d array is a scalar
    return _derivative(x, starts, axis, cumulative, t=t).reshape(
        _shape_of_products(x.shape, axis, starts, cumulative))


def _curvature(g, x, t, *starts, axis, cumulative):
    return _derivative(np.asarray(x), starts, axis, cumulative, g=g, t=t)


def _curvature_by_recurrences(g, x, t, *starts, axis, cumulative):
    """Return the tangent of the gradient as recurrences.

    The gradient is p * r, with the products p of the factors before each one, and r[k] = g[k] +
    x[k+1] * r[k+1].
    """
    if not axis:
        return zeros_like(x)
    whole, (x, order), t = x, _lines_last(x, axis), _lines_last(t, axis)[0]
    begins, number = _slices(x, starts)
    g = _lines_last(g, axis)[0]
    if not cumulative:
        ends = np.append(begins[1:], True) if type(begins) is np.ndarray else (
            concatenate([begins[1:], np.ones(1, bool)]))
        g = where(ends, take(g, where(number < 0, 0, number), axis=-1), 0) if g.shape[-1] else (
            zeros_like(x))
    product, moved = _products_before(x, t, begins)
    factors = where(begins, 0, x)
    later = recurrence_op(factors, where(number < 0, 0, g), backwards=True)
    moved_later = recurrence_op(
        factors, after(where(begins, 0, times(t, later))), backwards=True)
    found = where(number < 0, 0, times(moved, later) + times(moved_later, product))
    return _lines_back(found, whole.shape, order)


def _slices(x, starts):
    """Return which elements along the last axis begin a slice, and the numbers of the slices."""
    n = x.shape[-1]
    begins = begins_op(*starts, n=n) if starts else np.arange(n) == 0
    return begins, cumsum(begins) - 1  # -1 before the first


def _products_before(x, t, begins):
    """Return the product of the factors before each element in its slice, and the tangent."""
    factors = where(begins, 0, before(x))
    product = recurrence_op(factors, where(begins, ones_like(x), 0))
    return product, recurrence_op(factors, where(begins, 0, before(times(t, product))))


def _second_tangent(x, t, u, *starts, axis, cumulative):
    """Return the second derivative of products in two directions, as recurrences."""
    (lines, order), t, u = _lines_last(x, axis), _lines_last(t, axis)[0], _lines_last(u, axis)[0]
    begins, number = _slices(lines, starts)
    terms = times(t, _products_before(lines, u, begins)[1]) + (
        times(u, _products_before(lines, t, begins)[1]))
    found = recurrence_op(where(begins, 0, lines), where(number < 0, 0, terms))
    if not cumulative:
        n = lines.shape[-1]
        ends = concatenate([starts[0][1:], np.full(min(1, starts[0].shape[0]), n)]) - 1 if (
            starts) else np.array([n - 1])
        found = take(found, ends, axis=-1) if n else zeros((*lines.shape[:-1], len(ends)), x.dtype)
    return _lines_back(found, _shape_of_products(x.shape, axis, starts, cumulative), order)


def _begins(starts, *, n):
    begins = np.zeros(n, bool)
    begins[starts] = True
    return begins


begins_op = nondifferentiable(
    "BeginsOfSlices", _begins, shape_rule=lambda starts, *, n: symbolic_spec((n,), bool))


def _back_vjp(op, h):
    if not op.input_specs[1].known:
        return (NotImplemented,) * 2 + (None,) * len(op.inputs[2:])
    (g, x), starts = map(conj_if_complex, op.inputs[:2]), op.inputs[2:]
    needs = op.needs
    return (products_tangent_op(x, h, *starts, **op.attrs) if needs[0] else None,
            products_curvature_op(g, x, h, *starts, **op.attrs) if needs[1] else None,
            *[None for _ in starts])


def _back_jvp(op, tg, tx, *_):
    if not op.input_specs[1].known:
        return NotImplemented
    g, x, *starts = op.inputs
    moved = None if tg is None else products_back_op(tg, x, *starts, **op.attrs)
    if tx is None:
        return moved
    curved = products_curvature_op(g, x, tx, *starts, **op.attrs)
    return curved if moved is None else moved + curved


def _tangent_vjp(op, s):
    if not op.input_specs[0].known:
        return (NotImplemented,) * 2 + (None,) * len(op.inputs[2:])
    (x, t), starts = map(conj_if_complex, op.inputs[:2]), op.inputs[2:]
    return (products_curvature_op(s, x, t, *starts, **op.attrs) if op.needs[0] else None,
            products_back_op(s, x, *starts, **op.attrs) if op.needs[1] else None,
            *[None for _ in starts])


def _tangent_jvp(op, tx, tt, *_):
    if not op.input_specs[0].known:
        return NotImplemented
    x, t, *starts = op.inputs
    moved = None if tt is None else products_tangent_op(x, tt, *starts, **op.attrs)
    if tx is None or not op.attrs["axis"]:
        return zeros_like(t) if moved is None else moved  # without axes
    curved = _second_tangent(x, t, tx, *starts, **op.attrs)
    return curved if moved is None else moved + curved


def _tangent_spec(x, t, *starts, axis, cumulative):
    if not x.known and not cumulative:
        return symbolic_spec(None, x.dtype)
    return symbolic_spec(_shape_of_products(x.shape, axis, starts, cumulative), x.dtype)


# Gradients, tangents, and tangents of gradients, for products of lines or of slices.
products_back_op = general(
    "ProductsBack", _back, vjp=_back_vjp, jvp=_back_jvp, optional_tangents=(0, 1),
    shape_rule=lambda g, x, *_, **__: x, batch=batch_axis.of_one_shape)
products_tangent_op = general(
    "ProductsTangent", _tangent, vjp=_tangent_vjp, jvp=_tangent_jvp, optional_tangents=(0, 1),
    shape_rule=_tangent_spec, batch=batch_axis.of_one_shape)
products_curvature_op = composed(
    "ProductsCurvature", _curvature, _curvature_by_recurrences,
    shape_rule=lambda g, x, *_, **__: x, batch=batch_axis.of_one_shape)


def partials(x, *starts, axis):
    """Return for each factor the product of the other ones in its line or slice."""
    ones = np.ones(_shape_of_products(x.shape, axis, starts, False), x.dtype)
    return products_back_op(ones, x, *starts, axis=axis, cumulative=False)


def _prod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    if type(g) is np.ndarray:
        x = op.inputs[0]
        if g.dtype.char in "fd" and x.dtype == g.dtype:
            found = products_derivative(x, op.attrs["axis"], None, g, None, op.outputs[0])
            if found is not None:
                return found
    x, axes = operand(op), reduced_axes(op)
    g = reshape(g, _shape_of_products(op.input_specs[0].shape, axes, (), False))
    return products_back_op(
        astype(g, x.dtype, copy=False), conj_if_complex(x), axis=axes, cumulative=False)


def _prod_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    x, axes = operand(op), reduced_axes(op)
    moved = products_tangent_op(x, astype(t, x.dtype, copy=False), axis=axes, cumulative=False)
    return reshape(moved, op.output_specs[0].shape)


def _prod_jvp_of_batch(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    return summed(op, times(t, partials(operand(op), axis=reduced_axes(op))))


prod_op = general(
    "Prod",
    forward=np.prod,
    vjp=_prod_vjp,
    jvp=_prod_jvp,
    saved_outputs=(0,),
    batched=_prod_jvp_of_batch,
    shape_rule=shape_rules.reduction(np.prod),
    batch=batch_axis.along_axis,
    lowering="REDUCED",
    ufunc=np.multiply,
)


def _as_multiplied(a, dtype):
    """Return the factors cast to a dtype, as by NumPy: complex ones to their real parts."""
    return astype(a, dtype) if loses_imaginary(a, dtype) else a


@numpy_function(np.prod, "a", "axis", "initial", "where")
def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NoValue,
         where=_NoValue) -> Any:
    """Multiply the elements over the given axes, as `numpy.prod`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.prod)(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    a = _as_multiplied(a, dtype)
    if is_given(initial) or is_given(where):
        return from_start(
            partial(prod_op, axis=axis, dtype=dtype, keepdims=keepdims), multiply, 1, a, initial,
            where)
    return prod_op(a, axis=axis, dtype=dtype, keepdims=keepdims)


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
    shape_rule=shape_rules.accumulation(np.cumsum),
    batch=batch_axis.along_axis,
    lowering="RUNNING",
    ufunc=np.add,
)


def _axis_of(op):
    return {"axis": (op.attrs["axis"] % op.input_specs[0].ndim,), "cumulative": True}


def _cumprod_vjp(op, g):
    if not op.input_specs[0].known:
        return NotImplemented
    x = operand(op)
    return products_back_op(astype(g, x.dtype, copy=False), conj_if_complex(x), **_axis_of(op))


def _cumprod_jvp(op, t):
    if not op.input_specs[0].known:
        return NotImplemented
    x = operand(op)
    return products_tangent_op(x, astype(t, x.dtype, copy=False), **_axis_of(op))


def _cumprod(a, axis=None, dtype=None):
    """Return the cumulative product along an axis, as `numpy.cumprod`."""
    if type(a) is np.ndarray:  # NumPy's function would call the method
        return a.cumprod(axis, dtype)
    return np.cumprod(a, axis, dtype)


cumprod_op = general(
    "Cumprod",
    forward=_cumprod,
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    shape_rule=shape_rules.accumulation(np.cumprod),
    batch=batch_axis.along_lines,
    lowering="RUNNING",
    ufunc=np.multiply,
)


def _cumulative(op, a, axis, dtype):
    """Apply `op` along `axis`, or to the flattened array where `axis` is None."""
    if axis is None and type(a) is Tensor and a.ndim == 1:
        axis = 0
    elif axis is None or ndim(a) == 0:
        a, axis = ravel(a), 0 if axis is None else axis
    return op(a, axis=axis, dtype=dtype)


@numpy_function(np.cumsum)
def cumsum(a, axis=None, dtype=None, out=None) -> Any:
    """Return the cumulative sum along an axis, as `numpy.cumsum`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(lambda x: np.cumsum(x).sum())(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    return _cumulative(cumsum_op, a, axis, dtype)


@numpy_function(np.cumprod)
def cumprod(a, axis=None, dtype=None, out=None) -> Any:
    """Return the cumulative product along an axis, as `numpy.cumprod`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(lambda x: np.cumprod(x)[-1])(np.array([0.0, 2.0, 3.0]))
    array([6., 0., 0.])
    """
    return _cumulative(cumprod_op, _as_multiplied(a, dtype), axis, dtype)
