"""Distributions on an interval."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import (
    arctan2,
    cos,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    maximum,
    minimum,
    sin,
    sqrt,
    where,
)
from cytape.ops.probabilities.log_probabilities import (
    log_betainc,
    log_betaincc,
    log_gammainc,
    log_mass,
)
from cytape.ops.sampling.quantile_functions import (
    cosine_cdf,
    cosine_ppf,
    count_op,
    irwinhall_cdf,
    irwinhall_pdf,
)
from cytape.ops.special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    log_ndtr,
    logit,
    ndtri_exp,
    xlog1py,
    xlogy,
)
from cytape.ops.special.incomplete_functions import beta_density
from cytape.scipy.stats.distribution import (
    HALF_LOG_2PI,
    LOG_2,
    Distribution,
    either,
    log_rest,
    power_density,
)
from cytape.scipy.stats.real_line import norm, vonmises
from cytape.scipy.stats.related import increasing

__all__ = [
    "anglit", "arcsine", "argus", "beta", "bradford", "cosine", "irwinhall", "johnsonsb",
    "loguniform", "powerlaw", "rdist", "reciprocal", "semicircular", "trapezoid", "triang",
    "truncexpon", "truncnorm", "truncpareto", "truncweibull_min", "uniform", "vonmises_line",
    "wrapcauchy"]

beta = Distribution(
    stats.beta, lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    lambda z, a, b: betainc(a, b, z), lambda z, a, b: betaincc(a, b, z),
    lambda z, a, b: log_betainc(a, b, z), lambda z, a, b: log_betaincc(a, b, z),
    pdf=lambda z, a, b: beta_density(a, b, z), ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: betainccinv(a, b, q), support=(0, 1), moments={
        "mean": lambda a, b: a / (a + b),
        "var": lambda a, b: a * b / ((a + b)**2 * (a + b + 1))})
uniform = Distribution(
    stats.uniform, lambda z: 0 * z, lambda z: z, lambda z: 1 - z, log, lambda z: log1p(-z),
    ppf=lambda q: q, isf=lambda q: 1 - q, support=(0, 1), open_ends="probabilities",
    moments={"mean": lambda: 0.5, "var": lambda: 1 / 12, "entropy": lambda: 0.0})



def _of_count(function):
    """Return a function that refuses derivatives in the number of variables."""
    return lambda z, n: function(z + 0 * count_op(n), n)


irwinhall = Distribution(
    stats.irwinhall, _of_count(lambda z, n: log(irwinhall_pdf(z, n))), _of_count(irwinhall_cdf),
    _of_count(lambda z, n: irwinhall_cdf(n - z, n)), pdf=_of_count(irwinhall_pdf),
    support=lambda n: (0, n),
    inside=lambda n: 0.5 * n, open_ends=True, valid=lambda n: (n > 0) & (np.floor(n) == n),
    fixed=(0,), moments={"mean": lambda n: 0.5 * n, "var": lambda n: n / 12})


def _log_ratio(b, a):
    """Return log(b / a) without overflow, and without cancellation for b next to a."""
    is_near = b < 2 * a
    near = where(is_near, b, a)
    return where(is_near, log1p((near - a) / a), log(b) - log(a))


loguniform, reciprocal = [Distribution(
    scipys, lambda z, a, b: -log(z) - log(_log_ratio(b, a)),
    lambda z, a, b: _log_ratio(z, a) / _log_ratio(b, a),
    lambda z, a, b: _log_ratio(b, z) / _log_ratio(b, a),
    ppf=lambda q, a, b: exp(log(a) + q * _log_ratio(b, a)),
    isf=lambda q, a, b: exp(log(b) - q * _log_ratio(b, a)),
    support=lambda a, b: (a, b), inside=lambda a, b: exp(0.5 * (log(a) + log(b))),
    valid=lambda a, b: (a > 0) & (b > a)) for scipys in (stats.loguniform, stats.reciprocal)]
_power_log_density, _power_density = power_density(lambda a: a - 1, lambda z, a: log(a))
powerlaw = Distribution(
    stats.powerlaw, _power_log_density, lambda z, a: z**a, lambda z, a: -expm1(a * log(z)),
    logcdf=lambda z, a: a * log(z), pdf=_power_density,
    ppf=lambda q, a: q**(1 / a), isf=lambda q, a: exp(log1p(-q) / a), support=(0, 1),
    open_ends="probabilities", moments={
        "mean": lambda a: a / (a + 1), "var": lambda a: a / (a + 2) / (a + 1)**2})


def _triangular_density(z, c):
    is_left = (z < c) | (c == 1)
    return where(
        is_left, 2 * z / where(is_left, c, 0.5), 2 * (1 - z) / where(is_left, 0.5, 1 - c))


def _triangular_probability(z, c, p, d, excess):
    """Return the probability below z, without cancellation; p is 1 - z, d is 1 - c."""
    is_left = (excess < 0) | (d == 0)
    d = where(is_left, 0.5, d)
    rest = p * p / d
    return where(
        is_left, z * z / where(is_left, c, 0.5),
        where(rest < 0.5, 1 - rest, (excess + z * p) / d))


def _triangular_quantile(q, c, p):
    """Return the quantile of a probability q and its complement p."""
    is_left = q < c
    product = where(is_left, q * c, 0.25)
    rest = where(is_left, 0.25, p * (1 - c))
    return where(is_left, sqrt(product), (q + c * p) / (1 + sqrt(rest)))


triang = Distribution(
    stats.triang, lambda z, c: log(_triangular_density(z, c)),
    lambda z, c: _triangular_probability(z, c, 1 - z, 1 - c, z - c),
    lambda z, c: _triangular_probability(1 - z, 1 - c, z, c, c - z), pdf=_triangular_density,
    ppf=lambda q, c: _triangular_quantile(q, c, 1 - q),
    isf=lambda q, c: _triangular_quantile(1 - q, c, q), support=(0, 1),
    valid=lambda c: (c >= 0) & (c <= 1), moments={
        "mean": lambda c: (c + 1) / 3, "var": lambda c: (1 - c + c * c) / 18})


def _truncated_quantile(log_q, log_p, a, b):
    """Return the quantile of a probability q and its complement p, in the nearer tail."""
    mass = log_mass(a, b)
    below = logaddexp(log_ndtr(maximum(a, -1e150)), log_q + mass)  # infinity has no slope
    is_left = below < -LOG_2
    return where(
        is_left, ndtri_exp(where(is_left, below, -1.0)),
        -ndtri_exp(where(is_left, -1.0, logaddexp(
            log_ndtr(-minimum(b, 1e150)), log_p + mass))))


def _truncated_logcdf(z, a, b):
    return log_mass(a, z) - log_mass(a, b)


def _truncated_logsf(z, a, b):
    return log_mass(z, b) - log_mass(a, b)


truncnorm = Distribution(
    stats.truncnorm, lambda z, a, b: -0.5 * z * z - HALF_LOG_2PI - log_mass(a, b),
    lambda z, a, b: exp(_truncated_logcdf(z, a, b)), lambda z, a, b: exp(_truncated_logsf(z, a, b)),
    _truncated_logcdf, _truncated_logsf,
    ppf=lambda q, a, b: _truncated_quantile(log(q), log1p(-q), a, b),
    isf=lambda q, a, b: _truncated_quantile(log1p(-q), log(q), a, b),
    support=lambda a, b: (a, b), inside=lambda a, b: _between(a, b), open_ends="probabilities",
    valid=lambda a, b: a < b)


def _between(a, b):
    """Return a point between bounds, one or both of which may be infinite."""
    has_a, has_b = a > -1e300, b < 1e300
    low, high = where(has_a, a, 0.0), where(has_b, b, 0.0)
    return where(
        has_a, where(has_b, 0.5 * low + 0.5 * high, low + 1), where(has_b, high - 1, 0.0))


arcsine = Distribution(
    stats.arcsine, lambda z: -0.5 * (log(z) + log1p(-z)) - math.log(math.pi),
    lambda z: 2 / math.pi * arctan2(sqrt(z), sqrt(1 - z)),
    lambda z: 2 / math.pi * arctan2(sqrt(1 - z), sqrt(z)),
    ppf=lambda q: sin(0.5 * math.pi * q)**2,
    isf=lambda q: where(q > 0.5, sin(0.5 * math.pi * (1 - q))**2, cos(0.5 * math.pi * q)**2),
    support=(0, 1), open_ends="probabilities")


def _exponential_quantile(q, p, b):
    """Return the quantile of a probability q and its complement p, up to the end b."""
    mass = -q * expm1(-b)
    is_left, is_wide = mass < 0.5, b > 80
    q, p = where(is_left, 0.5, q), where(is_left, 0.5, p)
    narrow, wide = where(is_wide, 80.0, b), where(is_wide, b, 80.0)
    return -where(is_left, log1p(-where(is_left, mass, 0.0)), where(
        is_wide, logaddexp(log(where(is_wide, p, 0.5)), log(q) - wide),
        log(p + q * exp(-narrow))))


truncexpon = Distribution(
    stats.truncexpon, lambda z, b: -z - log(-expm1(-b)), lambda z, b: expm1(-z) / expm1(-b),
    lambda z, b: exp(-z) * expm1(z - b) / expm1(-b),
    ppf=lambda q, b: _exponential_quantile(q, 1 - q, b),
    isf=lambda q, b: _exponential_quantile(1 - q, q, b), support=lambda b: (0.0, b),
    inside=lambda b: 0.5 * b, open_ends="probabilities")

# ---- trigonometric densities

anglit = Distribution(
    stats.anglit, lambda z: log(cos(2 * z)), lambda z: sin(z + math.pi / 4)**2,
    lambda z: sin(math.pi / 4 - z)**2, pdf=lambda z: cos(2 * z),
    ppf=lambda q: arctan2(sqrt(q), sqrt(1 - q)) - math.pi / 4,
    isf=lambda q: math.pi / 4 - arctan2(sqrt(q), sqrt(1 - q)),
    support=(-math.pi / 4, math.pi / 4), inside=0.0, open_ends="probabilities")
cosine = Distribution(
    stats.cosine, lambda z: 2 * log(cos(0.5 * z)) - math.log(math.pi), cosine_cdf,
    lambda z: cosine_cdf(-z), pdf=lambda z: cos(0.5 * z)**2 / math.pi, ppf=cosine_ppf,
    isf=lambda q: -cosine_ppf(q), support=(-math.pi, math.pi), inside=0.0, open_ends=True)
wrapcauchy = Distribution(
    stats.wrapcauchy, lambda z, c: log(1 - c * c) - math.log(2 * math.pi) - log(
        (1 - c)**2 + 4 * c * sin(0.5 * z)**2),
    lambda z, c: arctan2((1 + c) * sin(0.5 * z), (1 - c) * cos(0.5 * z)) / math.pi,
    lambda z, c: arctan2((1 + c) * sin(0.5 * z), (c - 1) * cos(0.5 * z)) / math.pi,
    ppf=lambda q, c: 2 * arctan2((1 - c) * sin(math.pi * q), (1 + c) * cos(math.pi * q)),
    isf=lambda q, c: 2 * arctan2((1 - c) * sin(math.pi * q), -(1 + c) * cos(math.pi * q)),
    support=(0, 2 * math.pi), open_ends="probabilities", valid=lambda c: (c > 0) & (c < 1))
vonmises_line = increasing(
    stats.vonmises_line, vonmises, lambda z, kappa: (z, kappa),
    lambda y, kappa: maximum(minimum(y, math.pi), -math.pi), support=(-math.pi, math.pi),
    open_ends="probabilities", valid=lambda kappa: kappa >= 0)

# ---- beta, normal and gamma variables on an interval


def _symmetric_beta(function):
    return lambda z, c: function(0.5 * (z + 1), 0.5 * c, 0.5 * c)


_symmetric = {name: _symmetric_beta(beta.functions[name]) for name in beta.functions}
rdist = Distribution(
    stats.rdist, lambda z, c: _symmetric["logpdf"](z, c) - math.log(2), _symmetric["cdf"],
    lambda z, c: _symmetric["cdf"](-z, c), _symmetric["logcdf"],
    lambda z, c: _symmetric["logcdf"](-z, c), lambda z, c: 0.5 * _symmetric["pdf"](z, c),
    lambda q, c: 2 * betaincinv(0.5 * c, 0.5 * c, q) - 1,
    lambda q, c: 1 - 2 * betaincinv(0.5 * c, 0.5 * c, q), support=(-1, 1), inside=0.0)
semicircular = increasing(
    stats.semicircular, rdist, lambda z: (z, 3.0), support=(-1, 1), inside=0.0)
johnsonsb = increasing(
    stats.johnsonsb, norm, lambda z, a, b: (a + b * logit(z),),
    lambda y, a, b: expit((y - a) / b), lambda z, a, b: log(b) - log(z) - log1p(-z),
    support=(0, 1), open_ends=True, valid=lambda a, b: (b > 0) & (a == a))


def _one_less_square(z):
    return where(z < 0.5, 1 - z * z, (1 - z) * (1 + z))


def _log_argus(z, chi):
    return log_gammainc(1.5, 0.5 * chi * chi * _one_less_square(z))


def _argus_log_factor(chi):
    return 3 * log(chi) - HALF_LOG_2PI + LOG_2 - log_gammainc(1.5, 0.5 * chi * chi)


def _argus_logpdf(z, chi):
    return (_argus_log_factor(chi) + log(z) + 0.5 * log1p(-z * z)
            - 0.5 * chi * chi * _one_less_square(z))


def _argus_near(z, chi):
    """Return log(cdf) near 0, by quadrature of the density over its slope at 0."""
    squares = np.expand_dims(z * z, -1) * _NODES
    integral = np.sum(_WEIGHTS * sqrt(1 - squares) * exp(
        0.5 * np.expand_dims(chi * chi, -1) * squares), -1)
    return _argus_log_factor(chi) - 0.5 * chi * chi + 2 * log(z) + log(0.5 * integral)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_NODES, _WEIGHTS = 0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS


def _argus(near, far):
    """Return a function, near 0 of log(cdf), elsewhere of log(sf)."""
    def log_sf(z, chi):
        return _log_argus(z, chi) - _log_argus(0.0, chi)

    def function(z, chi):
        is_near = z * (1 + chi) < 0.3
        return either(
            is_near, lambda: near(_argus_near(where(is_near, z, 0.1), where(is_near, chi, 1.0))),
            lambda: far(log_sf(where(is_near, 0.5, z), chi)))

    return function


_argus_logcdf, _argus_logsf = _argus(lambda p: p, log_rest), _argus(log_rest, lambda q: q)


def _argus_quantile(p, q, chi):
    """Return the quantile of a probability p and its complement q, near 0 by Newton's method."""
    is_end = p == 0
    log_p = log(where(is_end, 0.5, p))
    start = exp(0.5 * (log_p + LOG_2 - _argus_log_factor(chi)) + 0.25 * chi * chi)
    is_near = (start * (1 + chi) < 1e-2) & ~is_end

    def near():
        z, log_goal, c = [where(is_near, x, other) for x, other in (
            (start, 1e-3), (log_p, -14.0), (chi, 1.0))]
        for _ in range(2):
            log_cdf = _argus_near(z, c)
            z = z * exp((log_goal - log_cdf) * exp(log_cdf - _argus_logpdf(z, c)) / z)
        return z

    def far():
        half = 0.5 * chi * chi
        is_left, whole = p < 0.5, gammainc(1.5, half)
        rest = where(
            is_left, gammainccinv(1.5, gammaincc(1.5, half) + where(is_left, p, 0.5) * whole),
            gammaincinv(1.5, where(is_left, 0.5, q) * whole))
        return sqrt(where(is_near | is_end, 1.0, 1 - rest / half))

    return where(is_end, 0.0, either(is_near, near, far))


argus = Distribution(
    stats.argus, _argus_logpdf, logcdf=_argus_logcdf, logsf=_argus_logsf,
    ppf=lambda q, chi: _argus_quantile(q, 1 - q, chi),
    isf=lambda q, chi: _argus_quantile(1 - q, q, chi), support=(0, 1),
    open_ends=True)

# ---- truncated and broken lines

bradford = Distribution(
    stats.bradford, lambda z, c: log(c) - log1p(c * z) - log(log1p(c)),
    lambda z, c: log1p(c * z) / log1p(c), lambda z, c: log1p(c * (1 - z) / (1 + c * z)) / log1p(c),
    ppf=lambda q, c: expm1(q * log1p(c)) / c, support=(0, 1))
truncpareto = Distribution(
    stats.truncpareto,
    lambda z, b, c: log(b / -expm1(-b * log(c))) - (b + 1) * log(z),
    lambda z, b, c: expm1(-b * log(z)) / expm1(-b * log(c)),
    lambda z, b, c: exp(-b * log(z)) * expm1(-b * log(c / z)) / expm1(-b * log(c)),
    ppf=lambda q, b, c: exp(-log1p(q * expm1(-b * log(c))) / b),
    isf=lambda q, b, c: exp(-log(exp(-b * log(c)) - q * expm1(-b * log(c))) / b),
    support=lambda b, c: (1.0, c), inside=lambda b, c: sqrt(c), open_ends="probabilities",
    valid=lambda b, c: (b != 0) & (c > 1))
truncweibull_min = increasing(
    stats.truncweibull_min, truncexpon, lambda z, c, a, b: (z**c - a**c, b**c - a**c),
    lambda y, c, a, b: (y + a**c)**(1 / c), lambda z, c, a, b: log(c) + xlogy(c - 1, z),
    support=lambda c, a, b: (a, b), inside=lambda c, a, b: _between(a, b),
    open_ends="probabilities", valid=lambda c, a, b: (a >= 0) & (b > a) & (c > 0))


def _trapezoid(z, c, d):
    """Return the probability below z, with finite slopes beside the other pieces."""
    height = 2 / (d - c + 1)
    is_left, is_right = z < c, z > d
    left, right = where(is_left, c, 1.0), where(is_right, 1 - d, 1.0)
    return height * where(
        is_left, 0.5 * z * z / left,
        where(is_right, 1 / height - 0.5 * (1 - z)**2 / right, z - 0.5 * c))


def _trapezoid_density(z, c, d):
    is_left, is_right = z < c, z > d
    return 2 / (d - c + 1) * where(
        is_left, z / where(is_left, c, 1.0),
        where(is_right, (1 - z) / where(is_right, 1 - d, 1.0), 1.0 + 0 * z))


def _trapezoid_quantile(q, c, d):
    width = d - c + 1
    is_left, is_right = q * width < c, (1 - q) * width < 1 - d
    left, right = where(is_left, q * c, 1.0), where(is_right, (1 - q) * (1 - d), 1.0)
    return where(is_left, sqrt(left * width), where(
        is_right, 1 - sqrt(right * width), 0.5 * q * width + 0.5 * c))


trapezoid = Distribution(
    stats.trapezoid, lambda z, c, d: log(_trapezoid_density(z, c, d)), _trapezoid,
    lambda z, c, d: _trapezoid(1 - z, 1 - d, 1 - c), pdf=_trapezoid_density,
    ppf=_trapezoid_quantile, isf=lambda q, c, d: 1 - _trapezoid_quantile(q, 1 - d, 1 - c),
    support=(0, 1), valid=lambda c, d: (c >= 0) & (d <= 1) & (c <= d))
