"""Distributions on the real line with two tails of a half-line's, and skewed ones."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import (
    abs,
    arcsinh,
    arctan,
    arctanh,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    minimum,
    sqrt,
    tan,
    where,
)
from cytape.ops.probabilities.log_probabilities import (
    log_gammainc,
    log_gammaincc,
    log_mass,
    log_odds,
    log_oddsc,
)
from cytape.ops.special import (
    betainccinv,
    betaincinv,
    betaln,
    boxcox,
    boxcox1p,
    gammainc,
    gammaincc,
    log_expit,
    log_ndtr,
    logsumexp,
    ndtr,
    ndtri_exp,
    xlogy,
)
from cytape.scipy.stats.distribution import (
    HALF_LOG_2PI,
    LOG_2,
    Distribution,
    complementary,
    either,
    log1p_rate,
    log_rest,
    near_end,
)
from cytape.scipy.stats.gamma_powers import halfgennorm
from cytape.scipy.stats.half_line import gamma, weibull_min
from cytape.scipy.stats.related import doubled

__all__ = [
    "crystalball", "dgamma", "dweibull", "gennorm", "hypsecant", "jf_skew_t",
    "kappa4", "laplace_asymmetric", "pearson3"]

_ROOT_2PI = math.sqrt(2 * math.pi)

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


def _ball_cdf(z, beta, m):
    is_left, decay = _ball_decay(z, beta, m)
    law = m / beta / (m - 1) * exp(-0.5 * beta * beta)
    right = _ROOT_2PI * (ndtr(where(is_left, -beta, z)) - ndtr(-beta))
    return where(is_left, law * exp((1 - m) * decay), law + right) / (law + _ROOT_2PI * ndtr(beta))


def _ball_quantile(log_q, log_p, beta, m):
    law, whole = _ball(beta, m)
    is_left, is_right = log_q < law - whole, log_p < -LOG_2
    left = where(is_left, log_q, law - whole)
    below = exp(where(is_left | is_right, law, log_q + whole)) - exp(law) + _ROOT_2PI * ndtr(-beta)
    return where(
        is_left, -beta - m / beta * expm1((law - whole - left) / (m - 1)),
        where(is_right, -ndtri_exp(where(is_left | ~is_right, -1.0, log_p + whole - HALF_LOG_2PI)),
              ndtri_exp(log(below) - HALF_LOG_2PI)))


crystalball = Distribution(
    stats.crystalball, _ball_logpdf, _ball_cdf, lambda *z: 1 - _ball_cdf(*z),
    **complementary(_ball_logcdf, _ball_logsf),
    ppf=lambda q, beta, m: _ball_quantile(log(q), log1p(-q), beta, m),
    isf=lambda q, beta, m: _ball_quantile(log1p(-q), log(q), beta, m),
    valid=lambda beta, m: (beta > 0) & (m > 1))


# ---- Pearson's of type 3: a standardised gamma variable


def _pearson_near_normal(z, skew):
    """Return the logarithm of the density for small skew, of the shape 1 / h, by Stirling's series.

    It is ``(log1p(u) - u) / h - log1p(u)`` with u = skew z / 2 up to a constant.
    """
    u, h = 0.5 * skew * z, 0.25 * skew * skew
    is_end = u <= -1
    u = where(is_end, 0.0, u)
    is_small = abs(u) < 0.05
    small, large = where(is_small, u, 0.0), where(is_small, 1.0, u)
    series = 0.0
    for k in range(14, 1, -1):
        series = (-1)**(k - 1) / k + small * series
    ratio = where(is_small, series, (log1p(large) / large - 1) / large)
    correction = h * (1 / 12 - h * h * (1 / 360 - h * h / 1260))
    return where(is_end, -np.inf, z * (z * ratio) - log1p(u) - HALF_LOG_2PI - correction)


def _pearson(near, far):
    """Return a function by those of a variable of small skew and of a gamma variable."""
    def function(z, skew):
        is_near = abs(skew) < 0.2
        rate = 2 / where(is_near, 1.0, skew)
        return either(
            is_near, lambda: near(where(is_near, z, 0.0), where(is_near, skew, 0.0)),
            lambda: far(rate * (where(is_near, 0.0, z) + rate), rate))

    return function


def _pearson_log_tail(z, skew):
    """Return the log of the probability above z >= 0 for small skew, by quadrature."""
    is_bounded = skew < 0
    slope = z / where(is_bounded, 1.0, 1 + 0.5 * skew * z)
    end = where(is_bounded, -2 / where(is_bounded, skew, -1.0) - z, np.inf)
    half = 0.5 * minimum(120 / (slope + sqrt(slope * slope + 80)), end)
    half, z, skew = [np.expand_dims(x, -1) for x in (half, z, skew)]
    return logsumexp(
        log(half * _WEIGHTS) + _pearson_near_normal(z + half * (1 + _NODES), skew), -1)


def _pearson_logcdf(z, skew):
    is_left = z < 0
    tail = _pearson_log_tail(abs(z), where(is_left, -skew, skew))
    return where(is_left, tail, log_rest(tail))


def _pearson_cdf(z, skew):
    is_left = z < 0
    tail = exp(_pearson_log_tail(abs(z), where(is_left, -skew, skew)))
    return where(is_left, tail, 1 - tail)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def _gamma_side(lower, upper):
    """Return a probability of a gamma variable of shape rate**2, decreasing for a negative rate."""
    return lambda x, rate: either(
        rate > 0, lambda: lower(rate * rate, x), lambda: upper(rate * rate, x))


pearson3 = Distribution(
    stats.pearson3, _pearson(_pearson_near_normal, lambda x, rate: (
        log(abs(rate)) + gamma.functions["logpdf"](x, rate * rate))),
    _pearson(_pearson_cdf, _gamma_side(gammainc, gammaincc)),
    _pearson(lambda z, skew: _pearson_cdf(-z, -skew), _gamma_side(gammaincc, gammainc)),
    _pearson(_pearson_logcdf, _gamma_side(log_gammainc, log_gammaincc)),
    _pearson(lambda z, skew: _pearson_logcdf(-z, -skew), _gamma_side(log_gammaincc, log_gammainc)),
    support=lambda skew: (where(skew > 0, -2 / where(skew > 0, skew, 1.0), -np.inf),
                          where(skew < 0, -2 / where(skew < 0, skew, -1.0), np.inf)),
    inside=0.0, open_ends="probabilities", valid=lambda skew: abs(skew) < np.inf)

# ---- the four-parameter kappa distribution: a power of 1 - h y for the hazard y of genextreme


def _kappa_hazard(z, k):
    """Return the logarithm of y, y, and the logarithm of its slope."""
    is_near, u, end, z = near_end(z, k)
    log_y = -log1p_rate(z, -k)
    return (where(is_near, log(u) / end, log_y),
            where(is_near, u**(1 / end), exp(minimum(log_y, 700.0))),
            where(is_near, xlogy(1 / end - 1, u), (1 - k) * log_y))


def _kappa_logcdf(z, h, k):
    return _kappa_log_power(*_kappa_hazard(z, k)[:2], h)


def _kappa_log_power(log_y, y, h):
    """Return log(1 - h y) / h, for large y by its logarithm, as products overflow."""
    is_far = log_y > 300
    is_near, u, end, y = near_end(where(is_far, 0.0, y), h)
    is_heavy = h < 0
    power = where(is_heavy, h, -1.0)
    far = where(is_far, log_y, 0.0)
    heavy, light = logaddexp(0, log(-power) + far) / power, -exp(minimum(far, 700.0))
    return where(is_far, where(is_heavy, heavy, light),
                 where(is_near, log(u) / end, -log1p_rate(y, -h)))


def _kappa_logpdf(z, h, k):
    log_y, y, log_slope = _kappa_hazard(z, k)
    is_near, u, end, _ = near_end(y, h)
    return log_slope + where(
        is_near, xlogy(1 / end - 1, u), (1 - h) * _kappa_log_power(log_y, y, h))


def _kappa_logsf(z, h, k):
    log_y, y, _ = _kappa_hazard(z, k)
    is_tail = log_y < -36
    return where(is_tail, log_y, log_rest(_kappa_log_power(log_y, where(is_tail, 0.1, y), h)))


def _kappa_ppf(q, h, k):
    return -boxcox(-boxcox(q, h), k)


def _kappa_ends(h, k):
    has_low, is_high = h > 0, k > 0
    low = where(is_high | (k == 0), -np.inf, 1 / where(k < 0, k, -1.0))
    return (where(has_low, -boxcox(1 / where(has_low, h, 1.0), k), low),
            where(is_high, 1 / where(is_high, k, 1.0), np.inf))


kappa4 = Distribution(
    stats.kappa4, _kappa_logpdf, logcdf=_kappa_logcdf, logsf=_kappa_logsf, ppf=_kappa_ppf,
    isf=lambda q, h, k: -boxcox(-boxcox1p(-q, h), k), support=_kappa_ends,
    inside=lambda h, k: _kappa_ppf(0.5 + 0 * h, h, k), open_ends="probabilities",
    valid=lambda h, k: (abs(h) < np.inf) & (abs(k) < np.inf))
