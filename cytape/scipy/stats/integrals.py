"""Distributions whose densities or probabilities are integrals without a formula."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import (
    abs,
    arctan,
    cos,
    exp,
    log,
    log1p,
    minimum,
    sin,
    sqrt,
    tan,
    where,
)
from cytape.ops.probabilities.line_integrals import (
    gauss_hypergeometric,
    hyperbolic_log_density,
    hyperbolic_log_probability,
    inverse_gaussian_tail,
    line_integral,
    noncentral_t_below,
    noncentral_t_density,
    normal_inverse_log_density,
    over_chi,
    stable_above,
    stable_below,
    stable_density,
    stable_far_density,
    stable_far_tail,
    studentized_above,
    studentized_below,
    studentized_density,
    tail_integral,
)
from cytape.ops.special import gammaln, logit, xlog1py, xlogy
from cytape.scipy.stats.distribution import (
    LOG_2,
    POSITIVE,
    Distribution,
    complementary,
    either,
    log_probability,
    log_rest,
)

__all__ = [
    "gausshyper", "genhyperbolic", "geninvgauss", "landau", "levy_stable", "nct", "norminvgauss",
    "studentized_range"]

_LOG_PI = math.log(math.pi)


def _tails(integrand, start):
    """Return logarithms of probabilities: of the tail beyond z, or of its complement."""
    def toward(is_left):
        def log_probability(z, *shapes):
            rises, log_tail = tail_integral(integrand, start(z), *shapes)
            return where(rises == is_left, log_tail, log_rest(minimum(log_tail, 0.0)))

        return log_probability

    return {"logcdf": toward(True), "logsf": toward(False)}


nct = Distribution(
    stats.nct, lambda z, df, nc: over_chi(noncentral_t_density, df, nc, z),
    **complementary(lambda z, df, nc: over_chi(noncentral_t_below, df, nc, z),
                    lambda z, df, nc: over_chi(noncentral_t_below, df, -nc, -z)),
    open_ends=True, valid=lambda df, nc: (df > 0) & (abs(nc) < np.inf))
genhyperbolic = Distribution(
    stats.genhyperbolic, hyperbolic_log_density, **complementary(
        lambda z, p, a, b: hyperbolic_log_probability(p, a, b, z),
        lambda z, p, a, b: hyperbolic_log_probability(p, a, -b, -z)),
    open_ends=True, valid=lambda p, a, b: abs(b) < a, fixed=(0,))
norminvgauss = Distribution(
    stats.norminvgauss, normal_inverse_log_density, **complementary(
        lambda z, a, b: hyperbolic_log_probability(-0.5, a, b, z),
        lambda z, a, b: hyperbolic_log_probability(-0.5, a, -b, -z)),
    open_ends=True, valid=lambda a, b: (a > 0) & (abs(b) < a))
geninvgauss = Distribution(
    stats.geninvgauss, lambda z, p, b: inverse_gaussian_tail(log(z), p, b) - log(z),
    **_tails(inverse_gaussian_tail, log), support=POSITIVE, open_ends=True,
    valid=lambda p, b: (b > 0) & (p == p), fixed=(0,))


def _studentized(integrand):
    return lambda q, k, df: over_chi(integrand, minimum(df, 1e12), k, q)


studentized_range = Distribution(
    stats.studentized_range, _studentized(studentized_density), **complementary(
        _studentized(studentized_below), _studentized(studentized_above)), support=POSITIVE,
    open_ends=True, valid=lambda k, df: (k > 1) & (df > 0))


def _gauss_log_norm(a, b, c, z):
    return line_integral(gauss_hypergeometric, a, b, c, z)


def _gauss_tail(name):
    def log_probability(x, *shapes):
        rises, log_p = tail_integral(gauss_hypergeometric, logit(x), *shapes)
        log_p = minimum(log_p - _gauss_log_norm(*shapes), 0.0)
        return where(rises == (name == "logcdf"), log_p, log_rest(log_p))

    return log_probability


gausshyper = Distribution(
    stats.gausshyper, lambda x, a, b, c, z: (
        xlogy(a - 1, x) + xlog1py(b - 1, -x) - c * log1p(z * x) - _gauss_log_norm(a, b, c, z)),
    logcdf=_gauss_tail("logcdf"), logsf=_gauss_tail("logsf"), support=(0, 1), open_ends=True,
    valid=lambda a, b, c, z: (a > 0) & (b > 0) & (c == c) & (z > -1))

# ---- stable distributions


def _landau_logcdf(z):
    return line_integral(stable_below, z, 1.0, 1.0) - _LOG_PI


def _landau_logsf(z):
    is_right, is_far = z > 1, z > 100
    log_p = _landau_logcdf(where(is_right, 1.0, z))
    log_q = line_integral(stable_above, where(is_right & ~is_far, z, 1.0), 1.0, 1.0) - _LOG_PI
    return where(is_far, _far(where(is_far, z, 200.0), 1.0, stable_far_tail), where(
        is_right, log_q, log_rest(log_p)))


def _far(z, beta, integrand):
    return line_integral(integrand, abs(z), where(z < 0, -beta, beta)) - _LOG_PI


def _landau_logpdf(z):
    is_far = z > 100
    return either(
        is_far, lambda: _far(where(is_far, z, 200.0), 1.0, stable_far_density),
        lambda: line_integral(stable_density, where(is_far, 1.0, z), 1.0, 1.0) - LOG_2)


landau = Distribution(
    stats.landau, _landau_logpdf,
    **complementary(_landau_logcdf, _landau_logsf), open_ends=True)


def _folded(z, alpha, beta):
    """Return whether to mirror the variable, and its magnitude, not 0, and skewness then.

    For alpha = 1 the skewness is positive instead of the variable.
    """
    is_mirrored = where(alpha == 1, beta < 0, z < 0)
    x = where(is_mirrored, -z, z) + where((z == 0) & (alpha != 1), 1e-200, 0.0)
    return is_mirrored, x, where(is_mirrored, -beta, beta)


_PANELS = np.array([  # of an exponential and of logarithms
    0, *4.0**np.arange(-17, 1), 2, 4, 7, 10, 14, 18, 22, 27, 32, 38, 46])
_NODES = (_PANELS[:-1, None] + 0.5 * np.diff(_PANELS)[:, None] * (
    1 + np.polynomial.legendre.leggauss(16)[0])).ravel()
_WEIGHTS = (0.5 * np.diff(_PANELS)[:, None] * np.polynomial.legendre.leggauss(16)[1]).ravel()
_WEIGHTS = _WEIGHTS * np.exp(-_NODES) / math.pi


def _near_cauchy(z, beta):
    """Return the density and probabilities below and above for alpha = 1 and small beta.

    They are Fourier integrals, for abs(z) > 2 along the imaginary axis.
    """
    is_far = abs(z) > 2
    x, near, skew, beta = [np.expand_dims(y, -1) for y in (
        where(is_far, abs(z), 4.0), where(is_far, 0.0, z), where(z < 0, -beta, beta), beta)]
    t = _NODES / x
    path = _WEIGHTS * exp(-2 / math.pi * skew * t * log(t)) * sin((1 + skew) * t)
    angle = near * _NODES + 2 / math.pi * beta * _NODES * np.log(_NODES)
    density = where(is_far, np.sum(path / x, -1), np.sum(_WEIGHTS * cos(angle), -1))
    tail, half = np.sum(path / _NODES, -1), 0.5 + np.sum(_WEIGHTS / _NODES * sin(angle), -1)
    below = where(is_far, where(z < 0, tail, 1 - tail), half)
    return density, below, where(is_far, where(z < 0, 1 - tail, tail), 1 - half)


def _steep(x):
    """Return 0, with a slope of NaN where x is 0."""
    at_0 = where(x == 0, x, 1.0)
    return at_0 * sqrt(at_0) - where(x == 0, 0.0, 1.0)


def _of_cauchy(of_near, function, steep=0.0):
    """Return a function of stable variables, by those near Cauchy's for alpha = 1, small beta."""
    def of_stable(z, alpha, beta):
        is_near = (alpha == 1) & (abs(beta) < 0.05)
        value = either(
            is_near, lambda: of_near(*_near_cauchy(z, where(is_near, beta, 0.0))) + 0 * alpha,
            lambda: function(z, alpha, where(is_near, 1.0, beta)))
        is_steep = (alpha != 1) & (abs(alpha - 1) < steep)  # where slopes cancel
        for x in (  # of slope NaN at 0
                alpha - 1, 2 - alpha, 1 - abs(beta), where(is_steep, 0 * (z + alpha + beta), 1.0)):
            value = value + _steep(x)
        return value

    return of_stable


def _near_centre(z, alpha, beta):
    """Return whether z is near 0, and there by series the log of the density, and probabilities.

    They are those below and above z.
    """
    at_one = alpha == 1
    alpha = where(at_one, 1.5, alpha)
    skew = beta * tan(0.5 * math.pi * alpha)
    angle, log_size = arctan(skew) / alpha, 0.5 * log1p(skew * skew) / alpha
    logs = [gammaln((n + 1) / alpha) - (n + 1) * log_size - math.lgamma(n + 1) for n in range(4)]
    is_near = ~at_one & (abs(z) < 1e-4 * exp(logs[0] - logs[1]))
    z, factor = where(is_near, z, 0.0), logs[0] - log(math.pi * alpha)
    terms = [z**n * exp(logs[n] - logs[0]) * cos((n + 1) * angle - 0.5 * math.pi * n)
             for n in range(4)]
    series = sum(terms)
    above = angle / math.pi - exp(factor) * z * sum(
        term / (n + 1) for n, term in enumerate(terms))
    has_digits = is_near & (series > 1e-3)  # less cancels
    density = log(where(has_digits, series, 1.0)) + factor
    return is_near, has_digits, density, 0.5 - above, 0.5 + above


def _stable_logpdf(z, alpha, beta):
    _, is_near, near, _, _ = _near_centre(z, alpha, beta)
    at_one = alpha == 1
    is_far = at_one & (abs(z) > 100)
    _, x, skew = _folded(where(is_near | is_far, 1.0, z), alpha, beta)
    other = where(at_one, 1.5, alpha)
    factor = where(at_one, -log(2 * where(at_one, skew, 1.0)), (
        log(other / (math.pi * abs(other - 1))) - log(where(at_one, 1.0, x))))
    return where(is_near, near, either(
        is_far, lambda: _far(
            where(is_far, z, 200.0), where(is_far, beta, 0.0), stable_far_density) + 0 * alpha,
        lambda: factor + line_integral(stable_density, x, alpha, skew) + _steep(
            where(at_one | is_near, 1.0, z))))


def _stable_tail(is_upper):
    """Return the logarithm of the probability above z or below it."""
    def logarithm(z, alpha, beta):
        is_far = (alpha == 1) & (abs(z) > 100)
        is_near, _, _, below, above = _near_centre(z, alpha, beta)
        is_mirrored, x, skew = _folded(where(is_far | is_near, 1.0, z), alpha, beta)
        log_tail = either(
            is_far, lambda: _far(
                where(is_far, z, 200.0), where(is_far, beta, 0.0), stable_far_tail) + 0 * alpha,
            lambda: minimum(line_integral(stable_above, x, alpha, skew) - _LOG_PI, 0.0))
        is_other = where(is_far, z < 0, is_mirrored) == is_upper
        is_light = is_other & (alpha < 1) & (skew == 1)  # the side of the end of the support
        usual = where(is_other, either(
            is_light, lambda: line_integral(
                stable_below, where(is_light, x, 1.0), where(is_light, alpha, 0.5), 1.0) - _LOG_PI,
            lambda: log_rest(where(is_light, -1.0, log_tail))), log_tail)
        below, above = [where(is_near, p, 0.5) for p in (below, above)]
        return where(is_near, log_probability(above, below) if is_upper else log_probability(
            below, above), usual)

    return logarithm


class _Stable(Distribution):
    """Distribution whose location for alpha = 1 depends on the scale."""

    def _given(self, args, kwds, *x):
        if self.parameterization != "S1":
            raise ValueError('levy_stable: tensors take the parameterization "S1" only')
        *x, loc, scale, alpha, beta = super()._given(args, kwds, *x)
        shift = 2 / math.pi * beta * scale * log(scale)
        return [*x, loc + where(alpha == 1, shift, 0.0), scale, alpha, beta]


levy_stable = _Stable(
    stats.levy_stable, _of_cauchy(lambda p, *_: log(p), _stable_logpdf, 5e-4),
    logcdf=_of_cauchy(
        lambda _, below, above: log_probability(below, above), _stable_tail(False)),
    logsf=_of_cauchy(
        lambda _, below, above: log_probability(above, below), _stable_tail(True)),
    support=lambda alpha, beta: (
        where((alpha < 1) & (beta == 1), 0.0, -np.inf),
        where((alpha < 1) & (beta == -1), 0.0, np.inf)),
    inside=lambda alpha, beta: where(beta < 0, -0.5, 0.5), open_ends=True,
    valid=lambda alpha, beta: (alpha > 0) & (alpha <= 2) & (abs(beta) <= 1))
