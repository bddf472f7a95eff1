"""Weighted averages, covariances and ranges: `average`, `cov`, `corrcoef`, `ptp`."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops import reductions
from cytape.ops.adjoints.extent_checks import with_extents, with_shape_of
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.adjoints.tangent_batches import batch_outline
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import is_tensor, joined, keeps_axes, operand, plain, values_of
from cytape.ops.clipping import clip
from cytape.ops.creation import astype
from cytape.ops.elementwise import imag, maximum, real, sqrt
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex, matmul_op
from cytape.ops.rearranging import diagonal
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import (
    atleast_2d,
    expand_dims,
    ndim,
    reshape,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.plain_arrays import plain_array
from cytape.tensor.values.spec import spec_like, symbolic_spec
from cytape.tensor.values.user_warnings import warn

__all__ = ["average", "corrcoef", "cov", "ptp"]

_NoValue = np._NoValue
_NO_AXIS = "Axis must be specified when shapes of a and weights differ."
_INCONSISTENT = "Shape of weights must be consistent with shape of a along specified axis."


@numpy_function(np.ptp)
def ptp(a, axis=None, out=None, keepdims=_NoValue) -> Any:
    """Return the maximum minus the minimum, as `numpy.ptp`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.ptp)(np.array([1.0, 3.0, 2.0]))
    array([-1.,  1.,  0.])
    """
    keepdims = keeps_axes(keepdims)
    if reductions.is_large(convert_to_tensor(a)):
        highest, lowest = reductions.extremes_op(a, axis=axis, keepdims=keepdims)
        return highest - lowest
    return reductions.max(a, axis, keepdims=keepdims) - reductions.min(a, axis, keepdims=keepdims)


@numpy_function(np.average, "a", "weights")
def average(a, axis=None, weights=None, returned=False, *, keepdims=_NoValue) -> Any:
    """Return the weighted average over the given axes, as `numpy.average`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.average(x, weights=[3.0, 1.0]))(np.array([1.0, 2.0]))
    array([0.75, 0.25])
    """
    keepdims = keeps_axes(keepdims)
    if weights is None:
        a = joined(a)
        axis = reduced_axes(a, axis)
        result = reductions.mean(a, axis, keepdims=keepdims)
        n = size(a, axis)
        scale = astype(n, result.dtype) if is_tensor(n) else np.asarray(n, result.dtype)
    else:
        a, weights = together(*map(operand, (a, weights)))
        weights = weights_along(a, axis, weights)
        axis = reduced_axes(a, axis)
        kinds = (a.dtype, weights.dtype)
        dtype = np.result_type(*kinds, *["f8"] * all(kind.kind in "iub" for kind in kinds[:1]))
        scale = reductions.sum(weights, axis, dtype, keepdims=keepdims)
        if np.any(np.equal(values_of(scale), 0)):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = reductions.sum(a * weights, axis, dtype, keepdims=keepdims) / scale
    if not returned:
        return result
    return result, broadcast_to(convert_to_tensor(scale), result.spec.extents)


def _axes_in_order(weights, a, *, axes):
    """Transpose weights, unless they already have the shape of `a`."""
    if weights.shape != a.shape:
        weights = weights.transpose(np.argsort(axes))
        if weights.shape != a.shape:
            raise ValueError(_INCONSISTENT)
    return weights


def _axes_in_order_vjp(op, g):
    back = tuple(np.argsort(op.attrs["axes"]).tolist())
    return axes_in_order_op(g, op.inputs[0], axes=back), None


axes_in_order_op = general(
    "WeightsInOrder", _axes_in_order, _axes_in_order_vjp,
    lambda op, t, _: axes_in_order_op(t, op.inputs[1], **op.attrs), optional_tangents=(1,),
    batched=lambda op, t, _: axes_in_order_op(
        t, batch_outline(t, op.inputs[1]), axes=(0, *[axis + 1 for axis in op.attrs["axes"]])),
    shape_rule=lambda weights, a, *, axes: spec_like(a, weights.dtype))


def reduced_axes(a, axis):
    """Return the axes that an ``axis`` parameter means, which may be a list here."""
    return axis if axis is None or type(axis) is int else normalize_axis_tuple(
        axis, ndim(a), argname="axis")


def weights_along(a, axis, weights):
    """Return the weights with an axis for each of `a`."""
    if axis is None:
        return convert_to_tensor(with_shape_of(a, weights, TypeError, _NO_AXIS))
    a, weights = convert_to_tensor(a), convert_to_tensor(weights)
    for x in (a, weights):
        shape_rules.shape_of(x.spec, "the weights along an axis")
    axes = normalize_axis_tuple(axis, ndim(a), argname="axis")
    may_fit = shape_rules.may_fit(weights.shape, a.shape)
    if may_fit and axes != tuple(sorted(axes)) and len(axes) == ndim(a) and (
            None in (*a.shape, *weights.shape)):
        return axes_in_order_op(weights, a, axes=axes)
    if may_fit:
        return with_shape_of(a, weights, ValueError, _INCONSISTENT)
    if ndim(weights) != len(axes):
        raise ValueError(_INCONSISTENT)
    weights = with_extents(
        weights, ValueError, _INCONSISTENT, like=a, same=list(enumerate(axes)))
    weights = transpose(weights, tuple(np.argsort(axes)))
    weights = expand_dims(weights, tuple([i for i in range(ndim(a)) if i not in axes]))
    return broadcast_to(weights, a.shape)


def _adjoint(x):
    return conj_if_complex(swapaxes(x, -1, -2))


def _gram_jvp(op, t):
    half = matmul_op(t, _adjoint(op.inputs[0]))
    return half + _adjoint(half)


# x @ x.T with one product for the gradient, where matmul of two tensors needs two.
gram_op = general(
    "Gram", lambda x: np.matmul(x, _adjoint(x)),
    vjp=lambda op, g: matmul_op(g + _adjoint(g), op.inputs[0]), jvp=_gram_jvp, batched=_gram_jvp,
    shape_rule=lambda x: symbolic_spec((*x.shape[:-1], x.shape[-2]), x.dtype),
    batch=batch_axis.stacked)


@numpy_function(np.cov, "m", "y", "fweights", "aweights")
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *,
        dtype=None) -> Any:
    """Return the covariance matrix, as `numpy.cov`.

    A number for a single variable. In a graph with an unknown number of variables it is a matrix,
    even if there is one variable at run time.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.cov(x))(np.array([1.0, 3.0]))
    array([-2.,  2.])
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    m, y, aweights = together(*[x if x is None else operand(x) for x in (m, y, aweights)])
    for x, name in ((m, "m"), (y, "y")):
        if x is not None and ndim(x) > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        np.cov(np.zeros(2), dtype=dtype)  # raises NumPy's error
    if dtype is None:
        dtype = np.result_type(*[x.dtype for x in (m, y) if x is not None], np.float64)
    rows = _observations(m, dtype, not rowvar and ndim(m) > 1)
    if y is not None:
        single = ndim(y) < 2 or shape(y)[0] == 1  # as in NumPy, depends only on y
        rows = concatenate((rows, _observations(y, dtype, not rowvar and not single)), 0)
    if ddof is None:
        ddof = 1 if bias == 0 else 0
    weights, count = _weights_of_observations(rows, fweights, aweights)
    if weights is None:
        freedom = count - ddof
    elif ddof == 0:
        freedom = count
    elif aweights is None:
        freedom = count - ddof
    else:
        freedom = count - ddof * reductions.sum(weights * aweights) / count
    found = values_of(freedom)
    if found is not None and found <= 0:
        warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
        freedom = 0.0
    elif found is None:
        freedom = maximum(freedom, 0.0)
    weighted = rows if weights is None else rows * weights
    with np.errstate(divide="ignore", invalid="ignore"):  # without observations
        mean = reductions.sum(weighted, 1, keepdims=True) / count
    rows = rows - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        c = (gram_op(rows) if weights is None else
             matmul_op(rows, _adjoint(rows * weights))) / freedom
    return squeeze(c) if rows.shape[0] == 1 else c


def _observations(x, dtype, by_column):
    x = atleast_2d(astype(convert_to_tensor(x), dtype, copy=False))
    return transpose(x) if by_column else x


def _weights_of_observations(rows, fweights, aweights):
    """Return the weight of each observation, None for 1, and their sum."""
    weights = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        if name == "fweights":
            given = plain_array(plain(given), float)
            if not np.all(given == np.around(given)):
                raise TypeError("fweights must be integer")
        given = astype(operand(given), np.float64, copy=False)
        if ndim(given) > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        given = with_extents(
            given, RuntimeError, f"incompatible numbers of samples and {name}", like=rows,
            same=[(0, 1)])
        values = values_of(given)
        if values is not None and np.any(values < 0):
            raise ValueError(f"{name} cannot be negative")
        weights = given if weights is None else weights * given
    if weights is None:
        count = size(rows, 1)
        dtype = np.empty(0, rows.dtype).real.dtype
        return None, astype(count, dtype, copy=False) if is_tensor(count) else count
    count = reductions.sum(weights)
    return reshape(weights, (1, -1)), count


@numpy_function(np.corrcoef, "x", "y")
def corrcoef(x, y=None, rowvar=True, *, dtype=None) -> Any:
    """Return the matrix of correlation coefficients, as `numpy.corrcoef`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.corrcoef(x, [1.0, 2.0, 0.0])[0, 1])(np.array([1.0, 3.0, 2.0])).round(6)
    array([ 0.25,  0.25, -0.5 ])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if ndim(c) == 0:
        return c / c
    deviations = sqrt(real(diagonal(c)) if c.dtype.kind == "c" else diagonal(c))
    c = c / expand_dims(deviations, 1) / expand_dims(deviations, 0)
    if c.dtype.kind == "c":
        return clip(real(c), -1, 1) + 1j * clip(imag(c), -1, 1)
    return clip(c, -1, 1)
