"""Distributions whose densities or probabilities are integrals without a formula."""

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import abs, arcsinh, log, minimum, where
from cytape.ops.probabilities.line_integrals import (
    hyperbolic_log_density,
    hyperbolic_tail,
    inverse_gaussian_tail,
    noncentral_t,
    noncentral_t_below,
    noncentral_t_density,
    normal_inverse_log_density,
    normal_inverse_tail,
    tail_integral,
)
from cytape.scipy.stats.distribution import POSITIVE, Distribution, complementary, log_rest

__all__ = ["genhyperbolic", "geninvgauss", "nct", "norminvgauss"]


def _tails(integrand, start):
    """Return logarithms of probabilities: of the tail beyond z, or of its complement."""
    def toward(is_left):
        def log_probability(z, *shapes):
            rises, log_tail = tail_integral(integrand, start(z), *shapes)
            return where(rises == is_left, log_tail, log_rest(minimum(log_tail, 0.0)))

        return log_probability

    return {"logcdf": toward(True), "logsf": toward(False)}


nct = Distribution(
    stats.nct, lambda z, df, nc: noncentral_t(noncentral_t_density, df, nc, z),
    **complementary(lambda z, df, nc: noncentral_t(noncentral_t_below, df, nc, z),
                    lambda z, df, nc: noncentral_t(noncentral_t_below, df, -nc, -z)),
    open_ends=True, valid=lambda df, nc: (df > 0) & (abs(nc) < np.inf))
genhyperbolic = Distribution(
    stats.genhyperbolic, hyperbolic_log_density, **_tails(hyperbolic_tail, arcsinh),
    open_ends=True, valid=lambda p, a, b: abs(b) < a, fixed=(0,))
norminvgauss = Distribution(
    stats.norminvgauss, normal_inverse_log_density, **_tails(normal_inverse_tail, arcsinh),
    open_ends=True, valid=lambda a, b: (a > 0) & (abs(b) < a))
geninvgauss = Distribution(
    stats.geninvgauss, lambda z, p, b: inverse_gaussian_tail(log(z), p, b) - log(z),
    **_tails(inverse_gaussian_tail, log), support=POSITIVE, open_ends=True,
    valid=lambda p, b: (b > 0) & (p == p), fixed=(0,))
