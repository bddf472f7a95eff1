"""Distributions on the whole real line, and `genextreme`, whose shape may end it on one side."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.creation import stop_gradient_op
from cytape.ops.elementwise import (
    abs,
    arccos,
    arcsinh,
    arctan,
    arctan2,
    cos,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    logaddexp,
    maximum,
    minimum,
    sin,
    sinh,
    tan,
    where,
)
from cytape.ops.probabilities.line_integrals import skewnorm_log_density, tail_integral
from cytape.ops.probabilities.log_probabilities import log_gammaincc, log_of_hazard, log_stdtr
from cytape.ops.sampling.quantile_functions import (
    exponnorm_isf,
    exponnorm_log_excess,
    exponnorm_ppf,
    skewnorm_cdf,
    skewnorm_ppf,
    vonmises_cdf,
)
from cytape.ops.special import (
    boxcox,
    boxcox1p,
    erf,
    erfcx,
    erfinv,
    expit,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    i0e,
    i1e,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    ndtri_exp,
    stdtr,
    stdtrit,
    tklmbda,
    xlogy,
)
from cytape.ops.special.error_functions import t_log_density
from cytape.scipy.stats.distribution import (
    EULER,
    HALF_LOG_2PI,
    Distribution,
    complementary,
    either,
    log1p_rate,
    log_erfc,
    log_gamma_cdf,
    log_probability,
    log_rest,
    log_softplus,
    near_end,
)

__all__ = [
    "cauchy", "exponnorm", "genextreme", "genlogistic", "gumbel_l", "gumbel_r", "johnsonsu",
    "laplace", "loggamma", "logistic", "moyal", "norm", "powernorm", "skewcauchy", "skewnorm", "t",
    "tukeylambda", "vonmises"]

_ROOT_2PI = math.sqrt(2 * math.pi)

norm = Distribution(
    stats.norm, lambda z: -0.5 * z * z - HALF_LOG_2PI, ndtr, lambda z: ndtr(-z),
    log_ndtr, lambda z: log_ndtr(-z), lambda z: exp(-0.5 * z * z) / _ROOT_2PI,
    ndtri, lambda q: -ndtri(q), is_exact=True,
    moments={"mean": lambda: 0.0, "var": lambda: 1.0, "entropy": lambda: HALF_LOG_2PI + 0.5})


def _t_ppf(q, df):
    """Return the quantile; SciPy's `stdtrit` has the wrong sign at 0."""
    at_0 = q == 0
    return where(at_0, log(where(at_0, q, 1)), stdtrit(df, where(at_0, 0.5, q)))


t = Distribution(
    stats.t, t_log_density, lambda z, df: stdtr(df, z), lambda z, df: stdtr(df, -z),
    lambda z, df: log_stdtr(df, z), lambda z, df: log_stdtr(df, -z),
    ppf=_t_ppf, isf=lambda q, df: -_t_ppf(q, df))


def _toward_centre(z):
    """Return -abs(z), with a derivative at 0."""
    return where(z < 0, z, -z)


def _tail(z):
    return 0.5 * exp(_toward_centre(z))


def _laplace_ppf(q):
    is_left = q < 0.5
    return where(is_left, log(2 * where(is_left, q, 0.5)), -log(2 * where(is_left, 0.5, 1 - q)))


laplace = Distribution(
    stats.laplace, lambda z: -abs(z) - math.log(2),
    lambda z: where(z < 0, _tail(z), 1 - _tail(z)), lambda z: where(z < 0, 1 - _tail(z), _tail(z)),
    lambda z: where(z < 0, _toward_centre(z) - math.log(2), log1p(-_tail(z))),
    lambda z: where(z < 0, log1p(-_tail(z)), _toward_centre(z) - math.log(2)),
    ppf=_laplace_ppf, isf=lambda q: -_laplace_ppf(q),
    moments={"mean": lambda: 0.0, "var": lambda: 2.0, "entropy": lambda: math.log(2) + 1})
logistic = Distribution(
    stats.logistic, lambda z: log_expit(z) + log_expit(-z), expit, lambda z: expit(-z),
    log_expit, lambda z: log_expit(-z), ppf=logit, isf=lambda q: -logit(q),
    moments={"mean": lambda: 0.0, "var": lambda: math.pi**2 / 3, "entropy": lambda: 2.0})


def _cauchy_ppf(q):
    """Return -cot(pi q), by a tangent that does not cancel in the middle and in the tails."""
    is_tail = abs(q - 0.5) > 0.25
    tail, middle = where(is_tail, q, 0.1), where(is_tail, 0.5, q)
    sign = where(tail < 0.5, -1.0, 1.0)
    return where(
        is_tail, sign / tan(math.pi * where(tail < 0.5, tail, 1 - tail)),
        tan(math.pi * (middle - 0.5)))


def cauchy_logcdf(z):
    """Return log(arctan(1 / v) / pi) for v = -z, on the left by log(v), as squares overflow."""
    is_left = z < -1
    left, right = where(is_left, z, -1.0), where(is_left, 0.0, z)
    log_v = log(-left)
    u = exp(-minimum(log_v, 40.0))  # beyond, the angle is its tangent
    return where(
        is_left, log(arctan(u) / u) - log_v - math.log(math.pi),
        log1p(-arctan2(1, right) / math.pi))


cauchy = Distribution(
    stats.cauchy, lambda z: -math.log(math.pi) - 2 * log(hypot(1, z)),
    lambda z: arctan2(1, -z) / math.pi, lambda z: arctan2(1, z) / math.pi,
    cauchy_logcdf, lambda z: cauchy_logcdf(-z),
    ppf=_cauchy_ppf, isf=lambda q: -_cauchy_ppf(q),
    moments={"entropy": lambda: math.log(4 * math.pi)})


def log_ndtr_hazard(z):
    """Return log(-log(ndtr(-z))), the logarithm of the cumulative hazard."""
    is_left = z < -9
    return where(is_left, log_ndtr(z), log(-log_ndtr(-where(is_left, 0.0, z))))


def _above(z):
    """Return z, or at least -7, below which exp(-exp(-z)) is 0."""
    return maximum(z, -7.0)


gumbel_r = Distribution(
    stats.gumbel_r, lambda z: -z - exp(-z), lambda z: exp(-exp(-_above(z))),
    lambda z: -expm1(-exp(-_above(z))), lambda z: -exp(-z),
    lambda z: log_of_hazard(-_above(z)), lambda z: exp(-_above(z) - exp(-_above(z))),
    ppf=lambda q: -log(-log(q)), isf=lambda q: -log(-log1p(-q)),
    moments={"mean": lambda: EULER, "var": lambda: math.pi**2 / 6, "entropy": lambda: EULER + 1})
gumbel_l = Distribution(  # of -z, the other one
    stats.gumbel_l, lambda z: z - exp(z), lambda z: -expm1(-exp(-_above(-z))),
    lambda z: exp(-exp(-_above(-z))), lambda z: log_of_hazard(-_above(-z)), lambda z: -exp(z),
    lambda z: exp(-_above(-z) - exp(-_above(-z))),
    ppf=lambda q: log(-log1p(-q)), isf=lambda q: log(-log(q)),
    moments={"mean": lambda: -EULER, "var": lambda: math.pi**2 / 6, "entropy": lambda: EULER + 1})


def _extreme(z, c):
    """Return log(v) of the distribution function exp(-v), at most 7, where that is 0."""
    return minimum(-log1p_rate(z, -c), 7.0)


def _extreme_log_density(z, c):
    is_near, u, end, z = near_end(z, c)
    log_v = -log1p_rate(z, -c)
    return where(
        is_near, xlogy(1 / end - 1, u) - u**(1 / end), (1 - c) * log_v - exp(log_v))


def _extreme_density(z, c):
    is_near, u, end, z = near_end(z, c)
    log_v = _extreme(z, c)
    return where(
        is_near, u**(1 / end - 1) * exp(-u**(1 / end)), exp((1 - c) * log_v - exp(log_v)))


def _extreme_ends(c):
    is_right = c > 0
    return (where(is_right | (c == 0), -np.inf, 1 / where(is_right | (c == 0), -1.0, c)),
            where(is_right, 1 / where(is_right, c, 1.0), np.inf))


genextreme = Distribution(
    stats.genextreme, _extreme_log_density,
    lambda z, c: exp(-exp(_extreme(z, c))), lambda z, c: -expm1(-exp(_extreme(z, c))),
    lambda z, c: -exp(-log1p_rate(z, -c)), lambda z, c: log_of_hazard(_extreme(z, c)),
    _extreme_density,
    ppf=lambda q, c: -boxcox(-log(q), c), isf=lambda q, c: -boxcox(-log1p(-q), c),
    support=_extreme_ends, inside=0.0, open_ends="probabilities",
    valid=lambda c: abs(c) < np.inf)


def _exponnorm_logcdf(z, k):
    is_left = z < 0
    left, right = where(is_left, z, -1.0), where(is_left, 0.0, z)
    log_p, root = log_ndtr(left), math.sqrt(0.5)
    return where(
        is_left, log_p + log_rest(log(erfcx(root * (1 / k - left))) - log(erfcx(-root * left))),
        log1p(-exp(_exponnorm_logsf(right, k))))


def _exponnorm_logsf(z, k):
    return logaddexp(log_ndtr(-z), exponnorm_log_excess(z, k))


exponnorm = Distribution(
    stats.exponnorm, lambda z, k: exponnorm_log_excess(z, k) - log(k),
    lambda z, k: ndtr(z) - exp(exponnorm_log_excess(z, k)),
    lambda z, k: ndtr(-z) + exp(exponnorm_log_excess(z, k)),
    _exponnorm_logcdf, _exponnorm_logsf, ppf=exponnorm_ppf, isf=exponnorm_isf, open_ends=True,
    moments={"mean": lambda k: k, "var": lambda k: 1 + k * k})


def _skewnorm_logcdf(z, a):
    """Return the logarithm, in the tail by an integral of the density."""
    p = skewnorm_cdf(z, a)
    is_tail = p < 1e-50
    return either(
        is_tail, lambda: tail_integral(
            skewnorm_log_density, where(is_tail, z, -30.0), where(is_tail, a, 0.0))[1],
        lambda: log_probability(
            where(is_tail, 0.5, p), where(is_tail, 0.5, skewnorm_cdf(-z, -a))))


skewnorm = Distribution(
    stats.skewnorm, skewnorm_log_density, skewnorm_cdf, lambda z, a: skewnorm_cdf(-z, -a),
    _skewnorm_logcdf, lambda z, a: _skewnorm_logcdf(-z, -a),
    ppf=skewnorm_ppf, isf=lambda q, a: -skewnorm_ppf(q, -a), valid=lambda a: abs(a) < np.inf)


def _vonmises_logpdf(z, kappa):
    return kappa * (cos(z) - 1) - log(2 * math.pi * i0e(kappa))


def _vonmises_tail(z, kappa):
    """Return the logarithm of the probability between -pi and z <= 0, by quadrature."""
    is_whole = ~(kappa * (1 + cos(z)) > 40)  # of others, the integrand falls by exp(-40) before
    far = arccos(where(is_whole, 0.0, cos(z) - 40 / where(is_whole, 40.0, kappa))) + z
    half = 0.5 * where(is_whole, math.pi + z, stop_gradient_op(far))
    steps, angle, rate = [np.expand_dims(x, -1) for x in (half, z, kappa)]
    steps = 0.5 * steps * (1 + _NODES)
    falls = exp(-2 * rate * sin(steps - angle) * sin(steps))
    return log(half * np.sum(_WEIGHTS * falls, -1)) + _vonmises_logpdf(z, kappa)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def _vonmises_logcdf(z, kappa):
    p, q, is_left = vonmises_cdf(z, kappa), vonmises_cdf(-z, kappa), z < 0
    is_tail = (minimum(p, q) < 1e-4) & (abs(z) <= math.pi)

    def tail():
        log_tail = _vonmises_tail(where(is_tail, where(is_left, z, -z), -1.0), kappa)
        return where(is_left, log_tail, log1p(-exp(log_tail)))

    return either(is_tail, tail, lambda: log_probability(
        where(is_tail, 0.5, p), where(is_tail, 0.5, q)))


vonmises = Distribution(
    stats.vonmises, _vonmises_logpdf, vonmises_cdf, lambda z, kappa: vonmises_cdf(-z, kappa),
    _vonmises_logcdf, lambda z, kappa: _vonmises_logcdf(-z, kappa),
    valid=lambda kappa: kappa >= 0, moments={"entropy": lambda kappa: (
        kappa * (1 - i1e(kappa) / i0e(kappa)) + log(2 * math.pi * i0e(kappa)))})


def _genlogistic_quantile(log_q, c):
    u = -log_q / c
    return -u - log(-expm1(-u))  # without overflow of exp(u)


genlogistic = Distribution(
    stats.genlogistic, lambda z, c: log(c) + log_expit(-z) + c * log_expit(z),
    lambda z, c: exp(c * log_expit(z)), lambda z, c: -expm1(c * log_expit(z)),
    lambda z, c: c * log_expit(z), lambda z, c: log_of_hazard(log(c) + log_softplus(-z)),
    ppf=lambda q, c: _genlogistic_quantile(log(q), c),
    isf=lambda q, c: _genlogistic_quantile(log1p(-q), c))


def _johnsonsu(function, sign=1):
    return lambda z, a, b: function(sign * (a + b * arcsinh(z)))


johnsonsu = Distribution(
    stats.johnsonsu, lambda z, a, b: (
        log(b) - log(hypot(1, z)) - 0.5 * (a + b * arcsinh(z))**2 - HALF_LOG_2PI),
    _johnsonsu(ndtr), _johnsonsu(ndtr, -1), _johnsonsu(log_ndtr), _johnsonsu(log_ndtr, -1),
    ppf=lambda q, a, b: sinh((ndtri(q) - a) / b), isf=lambda q, a, b: sinh((-ndtri(q) - a) / b),
    valid=lambda a, b: (b > 0) & (a == a))


def _loggamma_logpdf(z, c):
    return c * z - exp(z) - gammaln(c)


def _loggamma_pdf(z, c):
    return exp(_loggamma_logpdf(minimum(z, 700.0), c))


def _loggamma_logcdf(z, c):
    return log_gamma_cdf(c, exp(minimum(z, 700.0)), z)


def _loggamma_cdf(z, c):
    is_tail = z < -40
    return either(
        is_tail, lambda: exp(_loggamma_logcdf(where(is_tail, z, -40.0), c)),
        lambda: gammainc(c, exp(maximum(minimum(z, 700.0), -40.0))))


def _loggamma_upper(upper, rest):
    def function(z, c):
        is_tail = z < -40
        return either(
            is_tail, lambda: rest(_loggamma_logcdf(where(is_tail, z, -40.0), c)),
            lambda: upper(c, where(is_tail, -40.0, z)))

    return function


def loggamma_quantile(inverse, c, q, log_q):
    """Return the logarithm of a quantile of gamma, by that of q where the quantile underflows."""
    tail = (log_q + gammaln(c + 1)) / c
    is_tail = tail < -100
    return either(is_tail, lambda: tail, lambda: log(inverse(c, where(is_tail, 0.5, q))))


loggamma = Distribution(
    stats.loggamma, _loggamma_logpdf, _loggamma_cdf,
    _loggamma_upper(lambda c, z: gammaincc(c, exp(minimum(z, 700.0))), lambda log_p: -expm1(log_p)),
    _loggamma_logcdf, _loggamma_upper(lambda c, z: log_gammaincc(c, exp(z)), log_rest),
    _loggamma_pdf,
    lambda q, c: loggamma_quantile(gammaincinv, c, q, log(q)),
    lambda q, c: loggamma_quantile(gammainccinv, c, q, log1p(-q)), open_ends=True)


def _moyal_root(z):
    """Return the magnitude of a normal variable, at most exp(7), where the probability is 0."""
    return exp(-0.5 * maximum(z, -14.0))


def _moyal_logsf(z):
    is_tail = z > 70
    return where(is_tail, -0.5 * z + 0.5 * math.log(2 / math.pi), log(
        erf(math.sqrt(0.5) * _moyal_root(where(is_tail, 0.0, z)))))


def _moyal_quantile(q, p):
    """Return the quantile of a probability q and its complement p."""
    is_left = q < 0.5
    return -2 * where(
        is_left, log(-ndtri(0.5 * where(is_left, q, 0.5))),
        log(math.sqrt(2) * erfinv(where(is_left, 0.5, p))))


moyal = Distribution(
    stats.moyal, lambda z: -0.5 * z - 0.5 * exp(-z) - HALF_LOG_2PI,
    lambda z: 2 * ndtr(-_moyal_root(z)), lambda z: erf(math.sqrt(0.5) * _moyal_root(z)),
    lambda z: log_erfc(math.sqrt(0.5) * exp(-0.5 * z)), _moyal_logsf,
    lambda z: _moyal_root(z) * exp(-0.5 * _moyal_root(z)**2) / _ROOT_2PI,
    lambda q: _moyal_quantile(q, 1 - q), lambda q: _moyal_quantile(1 - q, q), open_ends=True)

powernorm = Distribution(
    stats.powernorm,
    lambda z, c: log(c) - 0.5 * z * z - HALF_LOG_2PI + (c - 1) * log_ndtr(-z),
    logcdf=lambda z, c: log_of_hazard(log(c) + log_ndtr_hazard(z)),
    logsf=lambda z, c: c * log_ndtr(-z), ppf=lambda q, c: -ndtri_exp(log1p(-q) / c),
    isf=lambda q, c: -ndtri_exp(log(q) / c))


def _skewcauchy_cdf(z, a):
    is_left = z < 0
    left, right = where(is_left, z, -1.0) / (1 - a), where(is_left, 1.0, z) / (1 + a)
    return where(
        is_left, (1 - a) * arctan2(1, -left), math.pi - (1 + a) * arctan2(1, right)) / math.pi


def _skewcauchy_ppf(q, a):
    is_left = 2 * q < 1 - a
    left, right = where(is_left, q, 0.25 * (1 - a)), where(is_left, 0.25 * (1 + a), 1 - q)
    return where(
        is_left, (1 - a) * _cauchy_ppf(left / (1 - a)), -(1 + a) * _cauchy_ppf(right / (1 + a)))


skewcauchy = Distribution(
    stats.skewcauchy,
    lambda z, a: -math.log(math.pi) - 2 * log(hypot(1, z / where(z < 0, 1 - a, 1 + a))),
    _skewcauchy_cdf, lambda z, a: _skewcauchy_cdf(-z, -a),
    ppf=_skewcauchy_ppf, isf=lambda q, a: -_skewcauchy_ppf(q, -a), valid=lambda a: abs(a) < 1)


def _tukey_tail(z, shape):
    """Return log(p) of a small probability, by Newton's method for it, as SciPy's p has errors."""
    log_p = log1p_rate(z, shape)
    for _ in range(4):
        p = exp(log_p)
        excess = boxcox(p, shape) - boxcox1p(-p, shape) - z
        log_p = log_p - excess / (exp(shape * log_p) + p * (1 - p)**(shape - 1))
    return log_p


def _tukey_log_p(z, shape):
    p = tklmbda(z, shape)
    is_tail = (p < 1e-9) & (shape < 0.9) & (shape * z > -1)
    return either(
        is_tail, lambda: _tukey_tail(where(is_tail, z, -1.0), where(is_tail, shape, 0.1)),
        lambda: log_probability(
            where(is_tail, 0.5, p), where(is_tail, 0.5, tklmbda(-z, shape))))


def _tukey_log_density(z, shape):
    return -logaddexp(
        *[(shape - 1) * _tukey_log_p(side, shape) for side in (z, -z)])


def _tukey_ends(shape):
    end = where(shape > 0, 1 / where(shape > 0, shape, 1.0), np.inf)
    return -end, end


tukeylambda = Distribution(
    stats.tukeylambda, _tukey_log_density, tklmbda, lambda z, shape: tklmbda(-z, shape),
    **complementary(_tukey_log_p, lambda z, shape: _tukey_log_p(-z, shape)),
    ppf=lambda q, shape: boxcox(q, shape) - boxcox1p(-q, shape),
    isf=lambda q, shape: boxcox1p(-q, shape) - boxcox(q, shape), support=_tukey_ends, inside=0.0,
    open_ends=True, valid=lambda shape: abs(shape) < np.inf)
