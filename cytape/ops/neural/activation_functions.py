"""Activations, under TensorFlow's names, each one elementwise op.

Those with a kernel (`neural/activations.pyx`) read their operand once. Derivatives at
kinks: 0 at 0 for `relu`, and at both ends for `relu6`, `hard_tanh` and `hard_sigmoid`; at 0 that of
the left side for `leaky_relu`, `elu`, `celu` and `selu`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cytape.ops.neural.activations as activations
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.elementwise import exp, square, tanh, where
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.joining import split
from cytape.ops.kernels.fused_function import FusedFunction

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "swish",
]

_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def composed(name: str, function: Callable, *partials: Callable | None) -> ElementwiseOp:
    """Declare an op of elements whose function consists of ufuncs, or of ops for tensors."""
    forward = FusedFunction(function, len(partials))
    return elementwise(name, forward, *partials, composition=function)


def _relu(features):
    """Return the maximum of each feature and 0.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return np.maximum(features, 0)


relu = composed("Relu", _relu, lambda y, x: x > 0)
softplus = elementwise("Softplus", activations.softplus, lambda y, x: sigmoid(x))
# Not y * (1 - y), since 1 - y cancels.
sigmoid = elementwise("Sigmoid", activations.sigmoid, lambda y, x: y * sigmoid(-x))


def _log_sigmoid(features):
    """Return the logarithm of `sigmoid`, without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.log_sigmoid(np.array([0.0, -2.0])).round(4)
    array([-0.6931, -2.1269])
    """
    return -softplus(-features)


log_sigmoid = composed("LogSigmoid", _log_sigmoid, lambda y, x: sigmoid(-x))
_silu_slope = elementwise(
    "SiluSlope", activations.silu_slope,
    lambda y, x: sigmoid(x) * sigmoid(-x) * (2 - x * tanh(0.5 * x)))
silu = swish = elementwise("Silu", activations.silu, lambda y, x: _silu_slope(x))


def _mish_curvature(y, x):
    r, share = sigmoid(-x), sigmoid(x)
    scale = 1 + r * r
    t, root = share * (1 + r) / scale, 2 * r / scale  # tanh(softplus(x)), sqrt(1 - t * t)
    return root * root * share * (2 + x * (r - 2 * t * share))


_mish_slope = elementwise("MishSlope", activations.mish_slope, _mish_curvature)
mish = elementwise("Mish", activations.mish, lambda y, x: _mish_slope(x))

_gelu_slope = elementwise(
    "GeluSlope", activations.gelu_slope,
    lambda y, x: _DENSITY_AT_0 * exp(-0.5 * square(x)) * (2 - square(x)))
_exact_gelu = elementwise("Gelu", activations.gelu, lambda y, x: _gelu_slope(x))


def _limited(x, low, high):
    return np.minimum(np.maximum(x, low), high)


def _inner(x):
    """Return 2 z for ``gelu(x) = x * (1 + tanh(z)) / 2``, which is ``x * sigmoid(2 z)``."""
    return math.sqrt(8 / math.pi) * (x + 0.044715 * (x * x * x))


def _share(x):
    """Return ``sigmoid(_inner(x))``, which is 0 or 1 before the cube overflows."""
    return sigmoid(_inner(_limited(x, -30, 30)))


def _approximate_gelu_partial(y, x):
    near = _limited(x, -30, 30)
    inner = _inner(near)
    share = sigmoid(inner)
    slope = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * (near * near))
    return share + near * (share * sigmoid(-inner)) * slope


_approximate_gelu = composed(
    "ApproximateGelu", lambda x: x * _share(x), _approximate_gelu_partial)


def gelu(features, approximate=False) -> Any:
    """Return the features times the Gaussian cumulative distribution at them.

    Parameters
    ----------
    features : array_like
    approximate : bool, optional
        Whether to approximate that by ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``,
        which is faster and differs by less than 0.0005.

    Returns
    -------
    Tensor or ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    if isinstance(approximate, str):  # PyTorch's, of which "none" is true
        raise TypeError(f"approximate must be True or False, got {approximate!r}")
    return (_approximate_gelu if approximate else _exact_gelu)(joined(features))


def _left(x):
    """Return the part of x that is not positive; its slope at 0 is 1."""
    return np.where(x > 0, 0, x)


_leaky_relu = composed(
    "LeakyRelu", lambda x, a: np.where(x > 0, x, a * x),
    lambda y, x, a: where(x > 0, 1, a), lambda y, x, a: where(x > 0, 0, x))
_elu = composed(
    "Elu", lambda x, a: np.where(x > 0, x, a * np.expm1(_left(x))),
    lambda y, x, a: where(x > 0, 1, a * exp(_left(x))), lambda y, x, a: np.expm1(_left(x)))
_celu = composed(
    "Celu", lambda x, a: np.where(x > 0, x, a * np.expm1(_left(x) / a)),
    lambda y, x, a: exp(_left(x) / a),
    lambda y, x, a: np.expm1(_left(x) / a) - _left(x) / a * exp(_left(x) / a))
_selu = composed(
    "Selu",
    lambda x: np.where(x > 0, _SELU_SCALE * x, _SELU_SCALE * _SELU_ALPHA * np.expm1(_left(x))),
    lambda y, x: where(x > 0, _SELU_SCALE, _SELU_SCALE * _SELU_ALPHA * exp(_left(x))))


def _softsign(features):
    """Return ``features / (1 + abs(features))``.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.softsign(np.array([1.0, -3.0]))
    array([ 0.5 , -0.75])
    """
    return features / (1 + np.fabs(features))  # which refuses complex numbers


softsign = composed("Softsign", _softsign, lambda y, x: 1 / square(1 + np.abs(x)))


def _relu6(features):
    """Return the features, limited to the range from 0 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.relu6(np.array([-1.0, 8.0]))
    array([0., 6.])
    """
    return _limited(features, 0, 6)


def _hard_tanh(features):
    """Return the features, limited to the range from -1 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.hard_tanh(np.array([-3.0, 0.5]))
    array([-1. ,  0.5])
    """
    return _limited(features, -1, 1)


def _hard_sigmoid(features):
    """Return ``(features + 3) / 6``, limited to the range from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.hard_sigmoid(np.array([-4.0, 0.0]))
    array([0. , 0.5])
    """
    return (1 / 6) * _limited(features + 3, 0, 6)


def _hard_silu(features):
    """Return the features times `hard_sigmoid`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.hard_silu(np.array([-1.5, 3.0]))
    array([-0.375,  3.   ])
    """
    return features * ((1 / 6) * _limited(features + 3, 0, 6))


relu6 = composed("Relu6", _relu6, lambda y, x: (x > 0) & (x < 6))
hard_tanh = composed("HardTanh", _hard_tanh, lambda y, x: (x > -1) & (x < 1))
hard_sigmoid = composed(
    "HardSigmoid", _hard_sigmoid, lambda y, x: where((x > -3) & (x < 3), 1 / 6, 0))
hard_silu = composed(
    "HardSilu", _hard_silu,
    lambda y, x: where(x >= 3, 1, where(x <= -3, 0, (1 / 3) * x + 0.5)))  # of NaN it is NaN


def leaky_relu(features, alpha=0.2) -> Any:
    """Return the features where they are positive, otherwise `alpha` times the features.

    `alpha` broadcasts, and may be differentiated, too.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.2,  2. ])
    """
    return _leaky_relu(joined(features), joined(alpha))


def elu(features, alpha=1.0) -> Any:
    """Return the features where they are positive, otherwise ``alpha * (exp(features) - 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.elu(np.array([-1.0, 2.0])).round(4)
    array([-0.6321,  2.    ])
    """
    return _elu(joined(features), joined(alpha))


def celu(features, alpha=1.0) -> Any:
    """Return the features where they are positive, otherwise ``alpha * (exp(x / alpha) - 1)``.

    Its slope is continuous for every `alpha`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.celu(np.array([-1.0, 2.0]), 0.5).round(4)
    array([-0.4323,  2.    ])
    """
    return _celu(joined(features), joined(alpha))


def selu(features) -> Any:
    """Return the scaled exponential linear units of Klambauer et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.selu(np.array([-1.0, 2.0])).round(4)
    array([-1.1113,  2.1014])
    """
    return _selu(joined(features))


def glu(features, axis=-1) -> Any:
    """Return the first half of the features along `axis` times the sigmoid of the second half.

    Raises
    ------
    ValueError
        If the axis has an odd extent.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.glu(np.array([1.0, 2.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """
    features = features if is_tensor(features) else np.asarray(features)
    values, gates = split(joined(features), 2, axis)
    return values * sigmoid(gates)
