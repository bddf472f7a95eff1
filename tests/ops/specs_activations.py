"""Records of activations and of the losses of elements."""

import math

import numpy as np
from scipy import special

from cytape.ops.neural import activation_functions as activations
from cytape.ops.neural import losses
from tests.ops.op_specs import OpSpec, case, uniform

UNARY = [case((3, 4)), case(()), case((0, 2))]
BINARY = [case((3, 4), (3, 4)), case((3, 1), (4,)), case((3, 4), ())]
AWAY_FROM_0 = uniform(-2, 2, avoid=[0], margin=0.2)
BROAD = uniform(-5, 8, avoid=[-3, -1, 0, 1, 3, 6], margin=0.2)


def gaussian_cdf(x):
    return special.ndtr(x).astype(np.asarray(x).dtype)


def gelu(x):
    return x * gaussian_cdf(x)


def silu_slope(x):
    share = 1 / (1 + np.exp(-x))
    return share * (1 + x * (1 - share))


def mish_slope(x):
    t = np.tanh(np.log1p(np.exp(x)))
    return t + x * (1 - t * t) / (1 + np.exp(-x))


def gelu_slope(x):
    return gaussian_cdf(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def approximate_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def elu(x, a):
    return np.where(x > 0, x, a * (np.exp(x) - 1))


def huber(z, d):
    return np.where(np.abs(z) < d, z**2 / 2, d * np.abs(z) - d**2 / 2)


SPECS = [
    OpSpec("Relu", activations.relu, lambda x: np.maximum(x, 0), UNARY, AWAY_FROM_0),
    OpSpec("Sigmoid", activations.sigmoid, lambda x: 1 / (1 + np.exp(-x)), UNARY),
    OpSpec("Softplus", activations.softplus, lambda x: np.log1p(np.exp(x)), UNARY),
    OpSpec("LogSigmoid", activations.log_sigmoid, lambda x: -np.log1p(np.exp(-x)), UNARY),
    OpSpec("Silu", activations.silu, lambda x: x / (1 + np.exp(-x)), UNARY),
    OpSpec("Mish", activations.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), UNARY),
    OpSpec("SiluSlope", activations._silu_slope, silu_slope, UNARY),
    OpSpec("MishSlope", activations._mish_slope, mish_slope, UNARY),
    OpSpec("GeluSlope", activations._gelu_slope, gelu_slope, UNARY),
    OpSpec("Gelu", activations.gelu, gelu, UNARY),
    OpSpec("ApproximateGelu", activations._approximate_gelu, approximate_gelu, UNARY),
    OpSpec("LeakyRelu", activations.leaky_relu, lambda x, a: np.where(x > 0, x, a * x), BINARY,
           AWAY_FROM_0),
    OpSpec("Elu", activations.elu, elu, BINARY, AWAY_FROM_0),
    OpSpec("Celu", activations.celu, lambda x, a: np.where(x > 0, x, a * (np.exp(x / a) - 1)),
           BINARY, (AWAY_FROM_0, uniform(0.5, 2))),
    OpSpec("Selu", activations.selu,
           lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), UNARY, AWAY_FROM_0),
    OpSpec("Softsign", activations.softsign, lambda x: x / (1 + np.abs(x)), UNARY, AWAY_FROM_0),
    OpSpec("Relu6", activations.relu6, lambda x: np.clip(x, 0, 6), UNARY, BROAD),
    OpSpec("HardTanh", activations.hard_tanh, lambda x: np.clip(x, -1, 1), UNARY, BROAD),
    OpSpec("HardSigmoid", activations.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), UNARY,
           BROAD),
    OpSpec("HardSilu", activations.hard_silu, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), UNARY,
           BROAD),
    OpSpec("Huber", losses._huber, huber, BINARY,
           (uniform(-2, 2, avoid=[-1, 0, 1]), uniform(0.95, 1.05))),
    OpSpec("LogCosh", losses._log_cosh_op, lambda z: np.log(np.cosh(z)), UNARY,
           uniform(-2, 2, avoid=[-1, 0, 1])),
    OpSpec("SigmoidCrossEntropyWithLogits", losses._sigmoid_cross_entropy,
           lambda z, x: z * np.log1p(np.exp(-x)) + (1 - z) * np.log1p(np.exp(x)), BINARY,
           (uniform(0, 1), AWAY_FROM_0)),
    OpSpec("RelativeEntropy", losses._relative_entropy, lambda p, q: p * np.log(p / q), BINARY,
           uniform(0.2, 2)),
    OpSpec("LogPoisson", losses._log_poisson, lambda k, x: np.exp(x) - k * x, BINARY),
]
