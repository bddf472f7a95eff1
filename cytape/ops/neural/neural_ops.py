"""Softmax and dropout, under TensorFlow's names."""

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.adjoints.conform import widened
from cytape.ops.calls.operands import axis_in_batch, is_tensor, operand
from cytape.ops.calls.symbolic import graph_for
from cytape.ops.comparisons import isfinite, isnan
from cytape.ops.creation import astype
from cytape.ops.elementwise import exp, log, maximum, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.python.draws import random_in_shape_of
from cytape.ops.reductions import max_op, sum
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import expand_dims, ndim, squeeze
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.values.plain_arrays import plain_array

__all__ = [
    "dropout",
    "log_softmax",
    "logsumexp",
    "softmax",
]


def floating(x):
    """Return an operand as a tensor or an array of real floating point numbers."""
    x = operand(x)
    neural_shapes.require_real(x.dtype)
    return x if x.dtype.kind == "f" else x.astype(np.float64)


# -- softmax -------------------------------------------------------------------------------------


def _shifted(x, axis):
    """Return `x` minus its largest element along `axis`, and that element.

    An infinite one is not subtracted, since the difference would be NaN. Half precision is widened,
    since the sum of many exponentials may overflow.
    """
    x = plain_array(x)
    neural_shapes.require_real(x.dtype)
    if x.dtype.kind != "f":
        x = x.astype(np.float64)
    elif x.dtype == np.float16:
        x = x.astype(np.float32)
    largest = x.max(axis, keepdims=True, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, 0)
    return np.asarray(x - largest), largest


def _as_given(result, x):
    """Return a result in half precision if `x` is."""
    return result.astype(np.float16) if getattr(x, "dtype", None) == np.float16 else result


def _softmax(x, *, axis):
    powers, _ = _shifted(x, axis)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis, keepdims=True)
    return _as_given(powers, x)


def log_softmax_of_array(x, *, axis):
    shifted, _ = _shifted(x, axis)
    shifted -= np.log(np.exp(shifted).sum(axis, keepdims=True))
    return _as_given(shifted, x)


def _log_sum_exp(x, *, axis, keepdims):
    shifted, largest = _shifted(x, axis)
    if not keepdims:
        largest = largest.squeeze(axis)
    # The logarithm of probability 0 is -inf; beside an infinite element exponentials overflow.
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.exp(shifted).sum(axis, keepdims=keepdims))
    return _as_given(total + largest, x)


def _largest(x, axis):
    """Return the largest elements of a tensor along `axis`, 0 where they are infinite."""
    largest = max_op(x, axis=axis, keepdims=True)
    return where(isfinite(largest), largest, 0)


def _softmax_of_tensor(x, *, axis):
    powers = exp(x - _largest(x, axis))
    return powers / sum(powers, axis, keepdims=True)


def _log_softmax_of_tensor(x, *, axis):
    shifted = x - _largest(x, axis)
    return shifted - log(sum(exp(shifted), axis, keepdims=True))


def _powers(x, axis):
    """Return exponentials relative to the largest along `axis`, the largest, and its finiteness.

    If the largest element is infinite, the exponentials are 1.
    """
    largest = max_op(x, axis=axis, keepdims=True)
    finite = isfinite(largest)
    return exp(where(finite, x, 0) - where(finite, largest, 0)), largest, finite


def _log_sum_exp_of_tensor(x, *, axis, keepdims):
    powers, largest, _ = _powers(x, axis)
    result = log(sum(powers, axis, keepdims=True)) + largest
    return result if keepdims else squeeze(result, axis)


def softmax_product(y, t, axis):
    """Multiply `t` by the Jacobian of softmax, diag(y) - y y^T, which is its own transpose."""
    if type(y) is type(t) is np.ndarray and y.shape == t.shape and y.dtype != np.float16:
        product = y * t
        np.subtract(t, product.sum(axis, keepdims=True), out=product)
        product *= y
        return product
    return y * (t - sum(y * t, axis, keepdims=True))


def _softmax_derivative(op, t):
    return softmax_product(op.outputs[0], t, op.attrs["axis"])


def _log_softmax_vjp(op, g):
    return g - exp(op.outputs[0]) * sum(g, op.attrs["axis"], keepdims=True)


def _log_softmax_product(op, t, axis):
    return t - sum(exp(op.outputs[0]) * t, axis, keepdims=True)


def _later_axis(op, t):
    return axis_in_batch(op.attrs["axis"], t.ndim)


def _with_axes(op, reduced):
    """Return `reduced`, of the output's shape, with the reduced axes as axes of length 1."""
    return reduced if op.attrs["keepdims"] else expand_dims(reduced, op.attrs["axis"])


def _shares(op):
    """Return the softmax that is the derivative of logsumexp.

    It is 0 where the probability is 0; infinite elements share it equally. Not exp(x - y), since
    the rounding error of a large output y is large. Plans share the powers with the forward pass.
    """
    x, axis = widened(op.inputs[0]), op.attrs["axis"]
    if op.input_specs[0].known and op.input_specs[0].size == 0:
        return x
    if type(x) is np.ndarray and np.isfinite(largest := x.max(axis, keepdims=True)).all():
        powers = np.exp(x - largest)
        powers /= powers.sum(axis, keepdims=True)
        return powers
    powers, largest, finite = _powers(x, axis)
    infinite = astype(x == np.inf, x.dtype, copy=False)
    n_infinite = maximum(sum(infinite, axis, keepdims=True), 1)
    return where(finite, powers, infinite) / where(
        finite, sum(powers, axis, keepdims=True), where(isnan(largest), largest, n_infinite))


softmax_op = general(
    "Softmax",
    forward=_softmax,
    vjp=_softmax_derivative,
    jvp=_softmax_derivative,
    saved_inputs=(),
    saved_outputs=(0,),
    batched=lambda op, t: softmax_product(op.outputs[0], t, _later_axis(op, t)),
    shape_rule=neural_shapes.softmax,
    composition=_softmax_of_tensor,
    batch=batch_axis.along_axis,
)

log_softmax_op = general(
    "LogSoftmax",
    forward=log_softmax_of_array,
    vjp=_log_softmax_vjp,
    jvp=lambda op, t: _log_softmax_product(op, t, op.attrs["axis"]),
    saved_inputs=(),
    saved_outputs=(0,),
    batched=lambda op, t: _log_softmax_product(op, t, _later_axis(op, t)),
    shape_rule=neural_shapes.softmax,
    composition=_log_softmax_of_tensor,
    batch=batch_axis.along_axis,
)

log_sum_exp_op = general(
    "LogSumExp",
    forward=_log_sum_exp,
    vjp=lambda op, g: _with_axes(op, g) * _shares(op),
    jvp=lambda op, t: sum(_shares(op) * t, **op.attrs),
    saved_outputs=(),
    batched=lambda op, t: sum(
        _shares(op) * t, _later_axis(op, t), keepdims=op.attrs["keepdims"]
    ),
    shape_rule=neural_shapes.log_sum_exp,
    composition=_log_sum_exp_of_tensor,
    batch=batch_axis.along_axis,
)


@advising
def softmax(logits, axis=-1) -> Any:
    """Return ``exp(logits)`` divided by its sum along `axis`, without overflow.

    Parameters
    ----------
    logits : array_like
    axis : int or tuple of int, optional

    Returns
    -------
    Tensor or ndarray
        Of the shape of `logits`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.softmax(np.array([1e4, 1e4]))
    array([0.5, 0.5])
    """
    return softmax_op(logits, axis=axis)


@advising
def log_softmax(logits, axis=-1) -> Any:
    """Return the logarithm of the softmax along `axis`, without overflow or cancellation.

    Parameters and the shape of the result are those of `softmax`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.log_softmax(np.array([1e4, 0.0]))
    array([     0., -10000.])
    """
    return log_softmax_op(logits, axis=axis)


def logsumexp(a, axis=None, keepdims=False) -> Any:
    """Return the logarithm of the sum of exponentials over the given axes, without overflow.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional
        All axes by default.
    keepdims : bool, optional
        Whether the summed axes stay, with length 1.

    Returns
    -------
    Tensor or ndarray
        -inf where all elements are.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> float(cytape.nn.logsumexp(np.array([1e4, -np.inf])))
    10000.0
    """
    axis = tuple(range(ndim(a))) if axis is None else normalize_axis_tuple(axis, ndim(a))
    return log_sum_exp_op(a, axis=axis, keepdims=keepdims)


# -- dropout -------------------------------------------------------------------------------------


@advising
def dropout(x, rate, seed=None) -> Any:
    """Set random elements to zero, and divide the others by the fraction that is kept.

    Parameters
    ----------
    x : array_like
    rate : float
        The probability that an element is dropped, at least 0 and below 1.
    seed : int, optional
        As for `cytape.numpy.random.random`, but without it a generator of its own is used, which
        `cytape.numpy.random.seed` seeds, and `numpy.random.seed` does not. In a graph the choice
        is made anew in each run; the gradient is that of the sampled mask.

    Returns
    -------
    Tensor or ndarray
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If the rate is out of range.
    TypeError
        If `x` does not hold floating point numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> y = cytape.nn.dropout(np.ones(100), rate=0.5)
    >>> sorted(set(y.tolist()))
    [0.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
    dtype = x.dtype if is_tensor(x) else np.asarray(x).dtype
    if dtype.kind not in "fc":
        raise TypeError(f"dropout takes floating point numbers, got {dtype}")
    if rate == 0:
        return x
    precision = np.float32 if dtype in (np.float32, np.float16, np.complex64) else np.float64
    graph: Any = graph_for([x])
    with nullcontext() if graph is None else graph.name_scope("dropout"):
        kept = random_in_shape_of(x, np.dtype(precision), seed) >= rate
        return where(kept, x / (1 - rate), 0)
