"""Hypergeometric functions and functions of Wright, differentiable in the argument (DLMF 13, 15).

They have no derivatives in their parameters.
"""

import numpy as np
import scipy.special as special

from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.shape_parameters import no_partials, real_order

__all__ = [
    "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "log_wright_bessel", "wright_bessel", "wrightomega"]

hyp0f1 = elementwise(
    "ScipyHyp0f1", special.hyp0f1, *no_partials("hyp0f1", "v"),
    lambda y, v, z: hyp0f1(real_order(v) + 1, z) / v)
hyp1f1 = elementwise(
    "ScipyHyp1f1", special.hyp1f1, *no_partials("hyp1f1", "a", "b"),
    lambda y, a, b, x: a / b * hyp1f1(real_order(a) + 1, real_order(b) + 1, x))
hyp2f1 = elementwise(
    "ScipyHyp2f1", special.hyp2f1, *no_partials("hyp2f1", "a", "b", "c"),
    lambda y, a, b, c, z: a * b / c * hyp2f1(
        real_order(a) + 1, real_order(b) + 1, real_order(c) + 1, z))
hyperu = elementwise(
    "ScipyHyperu", special.hyperu, *no_partials("hyperu", "a", "b"),
    lambda y, a, b, x: -a * hyperu(a + 1, b + 1, x))
wright_bessel = elementwise(
    "ScipyWrightBessel", special.wright_bessel, *no_partials("wright_bessel", "a", "b"),
    lambda y, a, b, x: wright_bessel(a, a + b, x))
log_wright_bessel = elementwise(
    "ScipyLogWrightBessel", special.log_wright_bessel, *no_partials("log_wright_bessel", "a", "b"),
    lambda y, a, b, x: np.exp(log_wright_bessel(a, a + b, x) - y))
wrightomega = elementwise("ScipyWrightomega", special.wrightomega, lambda y, z: y / (1 + y))
