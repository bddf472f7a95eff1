"""Distributions on the real line with two tails of a half-line's, and skewed ones."""

import math

import scipy.stats as stats

from cytape.ops.elementwise import (
    abs,
    arcsinh,
    arctan,
    arctanh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    logaddexp,
    minimum,
    sqrt,
    tan,
    where,
)
from cytape.ops.probabilities.log_probabilities import log_odds, log_oddsc
from cytape.ops.special import (
    betainccinv,
    betaincinv,
    betaln,
    k1e,
    log_expit,
    log_ndtr,
    ndtri_exp,
)
from cytape.scipy.stats.bounded import log_mass
from cytape.scipy.stats.compounds import halfgennorm
from cytape.scipy.stats.distribution import HALF_LOG_2PI, Distribution, complementary, log_rest
from cytape.scipy.stats.half_line import gamma, weibull_min
from cytape.scipy.stats.related import doubled

__all__ = [
    "crystalball", "dgamma", "dweibull", "gennorm", "hypsecant", "jf_skew_t",
    "laplace_asymmetric", "norminvgauss"]

# ---- symmetric ones

dgamma = doubled(stats.dgamma, gamma.functions)
dweibull = doubled(stats.dweibull, weibull_min.functions)
gennorm = doubled(stats.gennorm, halfgennorm.functions)


def _secant_logsf(z):
    u = exp(-minimum(z, 40.0))  # beyond, the angle is its tangent
    return math.log(4 / math.pi) - z + log(arctan(u) / u)


hypsecant = doubled(stats.hypsecant, {
    "logpdf": lambda z: math.log(4 / math.pi) - z - log1p(exp(-2 * z)),
    "pdf": lambda z: 4 / math.pi * exp(-z) / (1 + exp(-2 * z)),
    "sf": lambda z: 4 / math.pi * arctan(exp(-z)), "logsf": _secant_logsf,
    "ppf": lambda q: 2 * arctanh(tan(math.pi / 4 * q)),
    "isf": lambda q: -log(tan(math.pi / 4 * q))})

# ---- skewed ones


def _asymmetric_logcdf(z, kappa):
    is_left = z < 0
    left, right = where(is_left, z, 0.0), where(is_left, 0.0, z)
    return where(
        is_left, left / kappa - log1p(kappa**-2),
        log1p(-exp(-right * kappa - log1p(kappa * kappa))))


def _asymmetric_ppf(q, kappa):
    square = kappa * kappa
    is_left = q * (1 + square) < square
    left, right = where(is_left, q, 1.0), where(is_left, 1.0, 1 - q)
    return where(is_left, kappa * (log(left) + log1p(1 / square)),
                 -(log(right) + log1p(square)) / kappa)


laplace_asymmetric = Distribution(
    stats.laplace_asymmetric,
    lambda z, kappa: z * where(z < 0, 1 / kappa, -kappa) - log(kappa + 1 / kappa),
    logcdf=_asymmetric_logcdf, logsf=lambda z, kappa: _asymmetric_logcdf(-z, 1 / kappa),
    ppf=_asymmetric_ppf, isf=lambda q, kappa: -_asymmetric_ppf(q, 1 / kappa))


def _skew_t_log_odds(z, a, b):
    return 2 * arcsinh(z / sqrt(a + b))


def _skew_t_quantile(left, right, a, b):
    """Return the quantile, given that of the beta distribution and its complement."""
    return 0.5 * sqrt(a + b) * (sqrt(left / right) - sqrt(right / left))


jf_skew_t = Distribution(
    stats.jf_skew_t, lambda z, a, b: (
        (a + 0.5) * log_expit(_skew_t_log_odds(z, a, b))
        + (b + 0.5) * log_expit(-_skew_t_log_odds(z, a, b)) + math.log(4) - betaln(a, b)
        - 0.5 * log(a + b)),
    logcdf=lambda z, a, b: log_odds(a, b, exp(_skew_t_log_odds(z, a, b))),
    logsf=lambda z, a, b: log_oddsc(a, b, exp(_skew_t_log_odds(z, a, b))),
    ppf=lambda q, a, b: _skew_t_quantile(betaincinv(a, b, q), betainccinv(b, a, q), a, b),
    isf=lambda q, a, b: _skew_t_quantile(betainccinv(a, b, q), betaincinv(b, a, q), a, b),
    open_ends=True)


def _ball(beta, m):
    """Return logarithms of the weights of the power law and of the whole."""
    law = log(m / beta / (m - 1)) - 0.5 * beta * beta
    return law, logaddexp(law, HALF_LOG_2PI + log_ndtr(beta))


def _ball_decay(z, beta, m):
    """Return whether z is in the power law, and the logarithm of its base there."""
    is_left = z <= -beta
    return is_left, log1p(where(is_left, -beta - z, 0.0) * beta / m)


def _ball_logpdf(z, beta, m):
    is_left, decay = _ball_decay(z, beta, m)
    end = where(is_left, -beta, z)
    return -0.5 * end * end - m * decay - _ball(beta, m)[1]


def _ball_logcdf(z, beta, m):
    is_left, decay = _ball_decay(z, beta, m)
    law, whole = _ball(beta, m)
    right = HALF_LOG_2PI + log_mass(-beta, where(is_left, 1 - beta, z))
    return where(is_left, law - (m - 1) * decay, logaddexp(law, right)) - whole


def _ball_logsf(z, beta, m):
    is_left = z <= -beta
    right = HALF_LOG_2PI + log_ndtr(-where(is_left, 0.0, z)) - _ball(beta, m)[1]
    left = log_rest(_ball_logcdf(where(is_left, z, -beta), beta, m))
    return where(is_left, left, right)


def _ball_quantile(log_q, log_p, beta, m):
    law, whole = _ball(beta, m)
    is_left = log_q < law - whole
    left, right = where(is_left, log_q, law - whole), where(is_left, -1.0, log_p)
    return where(
        is_left, -beta - m / beta * expm1((law - whole - left) / (m - 1)),
        -ndtri_exp(right + whole - HALF_LOG_2PI))


crystalball = Distribution(
    stats.crystalball, _ball_logpdf, **complementary(_ball_logcdf, _ball_logsf),
    ppf=lambda q, beta, m: _ball_quantile(log(q), log1p(-q), beta, m),
    isf=lambda q, beta, m: _ball_quantile(log1p(-q), log(q), beta, m),
    valid=lambda beta, m: (beta > 0) & (m > 1))
norminvgauss = Distribution(
    stats.norminvgauss, lambda z, a, b: (
        log(a / math.pi) + log(k1e(a * hypot(1, z))) + b * z - a * hypot(1, z)
        + sqrt((a - b) * (a + b)) - log(hypot(1, z))),
    valid=lambda a, b: (a > 0) & (abs(b) < a))
