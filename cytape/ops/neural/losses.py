"""Losses of each element or each example; programs take the mean of the result.

Each is stable for large and for tiny arguments: differences that cancel are avoided.
The operands of a loss of each element have the same shape, or one of them is a scalar.
"""

import math
from typing import Any

import numpy as np

from cytape.ops.calls.operands import operand, values_of
from cytape.ops.comparisons import floor
from cytape.ops.elementwise import (
    exp,
    exp2,
    log,
    log2,
    maximum,
    sqrt,
    square,
    subtract,
    tanh,
    where,
)
from cytape.ops.neural.activation_functions import composed, relu, sigmoid
from cytape.ops.neural.cross_entropy import require_logits, warn_of_exchange
from cytape.ops.neural.neural_ops import floating
from cytape.ops.reductions import max_op, sum
from cytape.ops.shapes.shape_rules import may_fit

__all__ = [
    "absolute_error",
    "cosine_similarity",
    "hinge_loss",
    "huber_loss",
    "kl_divergence",
    "l2_loss",
    "l2_normalize",
    "log_cosh_loss",
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "squared_error",
    "triplet_loss",
]


# -- differences ---------------------------------------------------------------------------------

def _huber_loss(z, d):
    size = np.abs(z)
    near = np.minimum(size, d)
    return near * (size - 0.5 * near)


_huber = composed(
    "Huber", _huber_loss,
    lambda y, z, d: np.minimum(np.maximum(z, -d), d),
    lambda y, z, d: np.maximum(np.abs(z) - d, 0))


def _log_cosh(z):
    """Return log(cosh(z)); cosh(z) is 1 + 2 sinh(z / 2)**2, which does not cancel near 0."""
    size = np.abs(z)
    return np.where(
        size < 1, np.log1p(2 * np.square(np.sinh(0.5 * np.minimum(size, 1)))),
        size + np.log1p(np.exp(-2 * size)) - math.log(2))


_log_cosh_op = composed("LogCosh", _log_cosh, lambda y, z: tanh(z))


def _difference(labels, predictions):
    labels, predictions = _alike(labels, predictions)
    return subtract(predictions, labels)


def squared_error(labels, predictions) -> Any:
    """Return the square of each error.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.squared_error([1.0, 2.0], [1.5, 0.0])
    array([0.25, 4.  ])
    """
    return square(_difference(labels, predictions))


def absolute_error(labels, predictions) -> Any:
    """Return the absolute value of each error.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.absolute_error([1.0, 2.0], [1.5, 0.0])
    array([0.5, 2. ])
    """
    return np.abs(_difference(labels, predictions))


def huber_loss(labels, predictions, delta=1.0) -> Any:
    """Return half the square of each error up to `delta`, and continue it linearly.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.huber_loss([1.0, 2.0], [1.5, 0.0])
    array([0.125, 1.5  ])
    """
    if np.ndim(values := values_of(delta)) == 0 and values is not None and not values >= 0:
        raise ValueError(f"delta must be at least 0, got {values}")
    return _huber(_difference(labels, predictions), delta)


def log_cosh_loss(labels, predictions) -> Any:
    """Return the logarithm of the hyperbolic cosine of each error.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.log_cosh_loss([1.0, 0.0], [1.0, 1000.0]).round(4)
    array([  0.    , 999.3069])
    """
    return _log_cosh_op(_difference(labels, predictions))


# -- probabilities -------------------------------------------------------------------------------

_sigmoid_cross_entropy = composed(
    "SigmoidCrossEntropyWithLogits",
    lambda z, x: np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x))),
    lambda y, z, x: -x, lambda y, z, x: (1 - z) * sigmoid(x) - z * sigmoid(-x))
_relative_entropy = composed(
    "RelativeEntropy",
    lambda p, q: np.where(
        p > 0, p * (np.log(np.where(p > 0, p, 1)) - np.log(np.where(p > 0, q, 1))),
        np.where((p == 0) & (q >= 0), 0 * p, np.inf)),
    lambda y, p, q: log(p) - log(q) + 1, lambda y, p, q: -p / where(p > 0, q, 1))
_log_poisson = composed(
    "LogPoisson", lambda k, x: np.exp(x) - k * x,
    lambda y, k, x: -x, lambda y, k, x: exp(x) - k)


def sigmoid_cross_entropy_with_logits(labels, logits) -> Any:
    """Return the cross-entropy between probabilities and the sigmoid of logits, element by element.

    The labels come first, then the logits, which PyTorch exchanges: floating point labels beside
    integer logits are an error, derivatives with respect to negative labels only a warning,
    outside of traces. Other values are not checked.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.sigmoid_cross_entropy_with_logits([1.0, 1.0, 0.0], [0.0, 1e4, 1e4]).round(4)
    array([6.931e-01, 0.000e+00, 1.000e+04])
    """
    labels, logits = operand(labels), operand(logits)
    require_logits(labels, logits)
    warn_of_exchange(labels, logits)
    return _sigmoid_cross_entropy(*_alike(labels, logits))


def kl_divergence(labels, predictions, axis=-1) -> Any:
    """Return the sum of ``labels * log(labels / predictions)`` along `axis`.

    A label of 0 adds 0; a prediction of 0 for another label gives infinity.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.kl_divergence([[0.0, 1.0]], [[0.5, 0.5]]).round(6)
    array([0.693147])
    """
    return sum(_relative_entropy(*_alike(labels, predictions)), axis)


def log_poisson_loss(targets, log_input) -> Any:
    """Return the negative log-likelihood of counts, given the logarithm of their mean.

    It is ``exp(log_input) - targets * log_input``, without the terms of the targets alone.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.log_poisson_loss([2.0], [0.0])
    array([1.])
    """
    return _log_poisson(*_alike(targets, log_input))


def hinge_loss(labels, predictions) -> Any:
    """Return ``max(1 - labels * predictions, 0)``, for labels of -1 and 1.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.hinge_loss([1.0, -1.0], [0.25, -3.0])
    array([0.75, 0.  ])
    """
    labels, predictions = _alike(labels, predictions)
    return relu(1 - labels * predictions)


# -- vectors -------------------------------------------------------------------------------------


def l2_loss(x) -> Any:
    """Return half the sum of squares of all elements.

    Examples
    --------
    >>> import cytape
    >>> float(cytape.nn.l2_loss([1.0, 3.0]))
    5.0
    """
    return 0.5 * sum(square(floating(x)))


def l2_normalize(x, axis=-1, epsilon=1e-12) -> Any:
    """Return vectors divided by their lengths, or by the root of `epsilon` if that is larger.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.l2_normalize([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    x = floating(x)
    # A power of two below the largest element, so that squares do not overflow. It has no gradient,
    # and the result does not depend on it.
    scale = exp2(floor(log2(maximum(max_op(np.abs(x), axis=axis, keepdims=True), 1))))
    x = x / scale
    return x / sqrt(maximum(sum(square(x), axis, keepdims=True), epsilon / scale / scale))


def cosine_similarity(labels, predictions, axis=-1) -> Any:
    """Return the cosine of the angle between vectors; 0 if one of them has the length 0.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.cosine_similarity([[1.0, 0.0]], [[3.0, 4.0]])
    array([0.6])
    """
    return sum(l2_normalize(labels, axis) * l2_normalize(predictions, axis), axis)


def triplet_loss(anchor, positive, negative, margin=1.0) -> Any:
    """Return ``max(|anchor - positive|**2 - |anchor - negative|**2 + margin, 0)``.

    The squared distances are those of vectors along the last axis.

    Examples
    --------
    >>> import cytape
    >>> cytape.nn.triplet_loss([[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.5]])
    array([0.75])
    """
    anchor = floating(anchor)
    near = sum(square(anchor - floating(positive)), -1)
    return relu(near - sum(square(anchor - floating(negative)), -1) + margin)


def _alike(labels, predictions):
    """Return floating operands; refuse shapes that differ, which would broadcast unnoticed."""
    labels, predictions = floating(labels), floating(predictions)
    shapes = labels.shape, predictions.shape
    if shapes[0] != shapes[1] and () not in shapes and not may_fit(*shapes):
        raise ValueError(
            "labels and predictions must have the same shape, or one must be a scalar, got "
            f"{shapes[0]} and {shapes[1]}: reshape one of them, or write "
            "cytape.numpy.broadcast_to(x, shape)")
    return labels, predictions
