"""Norms of vectors and matrices, and the condition number.

At zero, where a norm has no derivative, the gradient is 0. For an infinite element it is its sign.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.linalg import LinAlgError

from cytape.ops import comparisons, ordering, reductions
from cytape.ops.adjoints.conform import widened
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.safe_quotients import component_over_length
from cytape.ops.calls.operands import axis_in_batch, is_small, is_tensor, joined, values_of, wide
from cytape.ops.comparisons import isnan
from cytape.ops.creation import astype
from cytape.ops.elementwise import absolute, conj, real, sign, sqrt, where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, moveaxis, ndim, ravel, squeeze
from cytape.ops.submodules.matrix_parts import real_dtype, square_shape
from cytape.ops.submodules.solving import inv_op
from cytape.ops.submodules.spectral import svdvals
from cytape.tensor import Tensor
from cytape.tensor.tensor import data_of

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

_EPSILON = 1e-15
_EXTREMES = (np.inf, -np.inf)  # orders of norms that are extrema of magnitudes


def _vector_norm(x, *, ord, axis, keepdims):
    if ord is None:  # any number of axes; sums in another order
        if axis is None and not keepdims and x.dtype.kind == "f":
            x = x.ravel("K")
            return np.sqrt(x.dot(x))
        return np.linalg.norm(x, None, axis, keepdims)
    if ord == np.inf:  # as NumPy, without its wrappers
        return np.maximum.reduce(np.abs(x), axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return np.minimum.reduce(np.abs(x), axis=axis, keepdims=keepdims)
    if axis is not None and len(axis) == 1:  # a tuple of one axis is slow in NumPy
        axis, = axis
    return np.linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdims)


def _in_range(x, norm, *, ord, axis, keepdims):
    """Return a scale, and the norm divided by it, where powers of elements over- or underflowed."""
    bad = (norm == 0) | np.isinf(norm)
    if not bad.any():
        return np.ones_like(norm), np.array(norm)
    largest = np.abs(x).max(axis, initial=0, keepdims=True)
    scale = np.where(np.isfinite(largest) & (largest > 0), largest, 1)
    scaled = _vector_norm(x / scale, ord=ord, axis=axis, keepdims=keepdims)
    return np.where(bad, scale.reshape(norm.shape), 1), np.where(bad, scaled, norm)


in_range_op = general(
    "VectorNormInRange", _in_range, vjp=lambda op, _, g: (None, g / op.outputs[0]),
    jvp=lambda op, _, t: (None, None if t is None else t / op.outputs[0]),
    saved_outputs=(0,), optional_gradients=(0,), optional_tangents=(0, 1),
    shape_rule=lambda x, norm, **_: (norm, norm),
    batch=lambda call: _vector_norm_in_batch(call))


def _scaled(op, x, norm):
    """Return vectors and norms, both divided by a scale if the norm over- or underflowed.

    While a graph of the usual norm is built its value is unknown, and the check would cost more
    than the gradient.
    """
    values = norm if type(norm) is np.ndarray else values_of(norm)
    if op.attrs["ord"] in (None, 2) if values is None else (
            (values != 0) & (values < np.inf)).all():
        return x, norm
    scale, norm = in_range_op(x, norm, **op.attrs)
    return x / reductions.kept(op, scale), norm


def _direction(op):
    """Return the derivative of the norm, and the subgradient 0 at zero, where there is none.

    The derivatives in a zero element among others are 0, too, if `ord` < 2 and not 1: the first
    derivative for `ord` < 1, the second for `ord` > 1.
    """
    x, norm, ord = op.inputs[0], op.outputs[0], op.attrs["ord"]
    if ord == 1:
        return sign(x)
    if wide(x.dtype) != x.dtype:  # the sum of powers may overflow
        x = widened(x)
        norm = vector_norm_op(x, **op.attrs)
    x, norm = _scaled(op, x, norm)
    norm = reductions.kept(op, norm)
    if ord in (None, 2):
        return component_over_length(x, norm)
    magnitude = component_over_length(absolute(x), norm)
    if ord >= 2:
        return sign(x) * magnitude ** (ord - 1)
    still = magnitude == 0  # there the power or its derivative may be infinite
    return where(still, 0, sign(x) * where(still, 1, magnitude) ** (ord - 1))


def _vector_norm_vjp(op, g):
    x, norm, ord = op.inputs[0], op.outputs[0], op.attrs["ord"]
    if ord in (None, 2) and wide(x.dtype) == x.dtype:
        values = norm if type(norm) is np.ndarray else values_of(norm)
        # One pass over x, if overflow and division by zero are impossible.
        if values is not None and values.size and (
                _EPSILON < values.min() and values.max() < 1 / _EPSILON if values.ndim else
                _EPSILON < values.item() < 1 / _EPSILON):
            return x * reductions.kept(op, g / norm)
    if ord in _EXTREMES:
        return reductions.share_one(op, False, g, signed=True)
    return reductions.kept(op, g) * _direction(op)


def _vector_norm_jvp(op, t):
    if op.attrs["ord"] in _EXTREMES:
        x, norm = op.inputs[0], reductions.kept(op, op.outputs[0])
        along = real(conj(sign(x)) * t) if t.dtype.kind == "c" else sign(x) * t
        return reductions.summed(op, reductions.given(along, absolute(x), norm, op.attrs["axis"]))
    direction = _direction(op)
    return reductions.summed(
        op, real(conj(direction) * t) if t.dtype.kind == "c" else direction * t)


def _vector_norm_of_tensor(x, *, ord, axis, keepdims):
    if ord in _EXTREMES:
        return NotImplemented if reductions.is_large(x) else _extremum(
            ord, absolute(x), axis, keepdims)
    if ord not in (None, 2):
        if isinstance(ord, complex):
            return NotImplemented  # NumPy's error
        return reductions.sum(absolute(x) ** ord, axis, keepdims=keepdims) ** (1 / ord)
    if axis is None and not keepdims:  # equal to NumPy's, to the bit
        x = ravel(x)
        return sqrt(x @ x)
    return sqrt(reductions.sum(x * x, axis, keepdims=keepdims))


def _vector_norm_in_batch(call):
    if not call.input_specs[0].ndim:
        return NotImplemented
    # NumPy's ord=None means one axis, or all axes.
    ord = 2 if call.attrs.get("ord", 2) is None else call.attrs["ord"]
    axis = axis_in_batch(call.attrs["axis"], call.inputs[0].ndim)
    return call.again(call.inputs, axis=axis, ord=ord)


vector_norm_op = general(
    "VectorNorm",
    forward=_vector_norm,
    vjp=_vector_norm_vjp,
    jvp=_vector_norm_jvp,
    saved_outputs=(0,),
    batched=_vector_norm_jvp,
    shape_rule=shape_rules.vector_norm,
    composition=_vector_norm_of_tensor,
    batch=_vector_norm_in_batch,
)


def norm(x, ord=None, axis=None, keepdims=False) -> Any:
    """Return a norm of vectors or matrices, as `numpy.linalg.norm`.

    Examples
    --------
    >>> import cytape
    >>> float(np.linalg.norm(cytape.constant([3.0, 4.0])))
    5.0
    """
    if type(x) is not Tensor and not is_tensor(x):
        return np.linalg.norm(x, ord, axis, keepdims)
    x = _inexact(x)
    if ord is None and axis is None and x.shape is not None:
        if x.ndim == 1 and not keepdims and x.dtype.char in "fd" and is_small(x):
            square = x @ x
            value = data_of(square).item()
            if _EPSILON < value < 1 / _EPSILON:  # no overflow or underflow in gradients
                return sqrt(square)
            with np.errstate(over="ignore"):  # already reported by the square
                return vector_norm_op(x, ord=None, axis=None, keepdims=False)
        return vector_norm_op(x, ord=None, axis=None, keepdims=bool(keepdims))
    axes = _axes_of_norm(axis, ndim(x))
    if axis is None and (
            ord in ("f", "fro") and len(axes) == 2 or ord == 2 and len(axes) == 1):
        return vector_norm_op(x, ord=None, axis=None, keepdims=bool(keepdims))
    if len(axes) == 1:
        return _norm_of_vectors(x, ord, axes, shape_rules.is_set(keepdims))
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if ord in (None, "f", "fro"):
        return vector_norm_op(x, ord=None, axis=axes, keepdims=bool(keepdims))
    result = _norm_of_matrices(x, ord, axes)
    return result if keepdims else squeeze(result, axes)


def _axes_of_norm(axis, n_axes):
    if axis is None:
        return tuple(range(n_axes))
    if not isinstance(axis, tuple):
        try:
            axis = int(axis)
        except (TypeError, ValueError) as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    return normalize_axis_tuple(axis, n_axes)


def _inexact(x):
    x = x if type(x) is Tensor else joined(x)
    return x if x.dtype.kind in "fc" else astype(x, np.float64, copy=False)


def _norm_of_vectors(x, ord, axes, keepdims):
    """Return the norm over some axes."""
    if ord == 0:
        count = ordering.count_nonzero(x, axes, keepdims=keepdims)
        return astype(count, real_dtype(x.dtype), copy=False)
    if ord == 1:
        return reductions.sum(absolute(x), axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return vector_norm_op(x, ord=ord, axis=axes, keepdims=keepdims)


def _norm_of_matrices(x, ord, axes):
    """Return a matrix norm other than Frobenius' over two axes, which are kept."""
    if ord in (1, -1, np.inf, -np.inf):
        rows, columns = axes if abs(ord) == 1 else axes[::-1]
        return _extremum(ord, reductions.sum(absolute(x), rows, keepdims=True), columns)
    if ord not in (2, -2, "nuc"):
        raise ValueError("Invalid norm order for matrices.")
    values = svdvals(moveaxis(x, axes, (-2, -1)))
    norms = reductions.sum(values, -1) if ord == "nuc" else _extremum(ord, values, -1)[..., 0]
    return expand_dims(norms, axes)


def _extremum(ord, x, axis, keepdims=True):
    if ord < 0:
        return reductions.min(x, axis, keepdims=keepdims)
    if x.shape is None or 0 in x.shape or None in x.shape:  # the maximum of no magnitudes is 0
        return reductions.max_op(x, axis=axis, keepdims=keepdims, initial=0)
    return reductions.max_op(x, axis=axis, keepdims=keepdims)


@numpy_function(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2) -> Any:
    """Return a norm of vectors, as `numpy.linalg.vector_norm`.

    Examples
    --------
    >>> import cytape
    >>> float(np.linalg.vector_norm(cytape.constant([[3.0], [4.0]])))
    5.0
    """
    x = _inexact(x)
    if axis is not None and not isinstance(axis, tuple):
        axis = int(axis)
    axes = _axes_of_norm(axis, ndim(x))
    return _norm_of_vectors(x, 2 if ord is None else ord, axes, bool(keepdims))


def matrix_norm(x, /, *, keepdims=False, ord="fro") -> Any:
    """Return a norm of matrices, as `numpy.linalg.matrix_norm`.

    Examples
    --------
    >>> import cytape
    >>> float(np.linalg.matrix_norm(cytape.constant([[3.0], [4.0]])))
    5.0
    """
    return norm(x, ord, (-2, -1), keepdims)


@numpy_function(np.linalg.cond)
def cond(x, p=None) -> Any:
    """Return the condition number of matrices, as `numpy.linalg.cond`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(np.linalg.cond)(np.diag([4.0, 2.0]))
    array([[ 0.5,  0. ],
           [ 0. , -1. ]])
    """
    x = joined(x)
    x = with_extents(x, LinAlgError, "cond is not defined on empty arrays", least=[
        (i, 1) for i in range(ndim(x))[-2:]])
    with np.errstate(all="ignore"):
        if p in (None, 2, -2):
            s = svdvals(x)
            result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            square_shape(x, "cond")
            inverse = inv_op(x, singular="nan")
            result = matrix_norm(x, ord=p) * matrix_norm(inverse, ord=p)
        singular = isnan(result) & ~comparisons.any(isnan(x), (-2, -1))
        return where(singular, np.inf, result)
