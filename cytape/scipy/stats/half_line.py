"""Distributions on a half-line: positive variables, `pareto` above 1, `weibull_max` below 0."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.elementwise import (
    abs,
    arctan,
    arctan2,
    arctanh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    maximum,
    minimum,
    sqrt,
    tan,
    tanh,
    where,
)
from cytape.ops.probabilities.log_probabilities import (
    log_gammainc,
    log_gammaincc,
    log_odds,
    log_oddsc,
    log_of_hazard,
)
from cytape.ops.sampling.quantile_functions import (
    invgauss_isf,
    invgauss_ppf,
    rice_cdf,
    rice_isf,
    rice_lower,
    rice_ppf,
    rice_sf,
    rice_upper,
)
from cytape.ops.special import (
    betainccinv,
    betaincinv,
    boxcox,
    boxcox1p,
    erf,
    erfinv,
    expit,
    fdtr,
    fdtrc,
    fdtri,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    i0e,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    psi,
    xlogy,
)
from cytape.ops.special import gamma as gamma_function
from cytape.ops.special.gamma_functions import betaln
from cytape.ops.special.incomplete_functions import gamma_density, odds_density
from cytape.scipy.stats.distribution import (
    EULER,
    HALF_LOG_2PI,
    LOG_2,
    POSITIVE,
    Distribution,
    either,
    log1p_rate,
    log_erfc,
    log_gamma_cdf,
    log_softplus,
    near_end,
    not_far,
    power_density,
)
from cytape.scipy.stats.real_line import cauchy_logcdf

__all__ = [
    "betaprime", "burr", "burr12", "chi", "chi2", "erlang", "expon", "f", "fisk", "gamma",
    "genpareto", "gompertz", "halfcauchy", "halflogistic", "halfnorm", "invgamma",
    "invgauss", "invweibull", "levy", "lognorm", "lomax", "maxwell", "nakagami", "pareto",
    "rayleigh", "rice", "weibull_max", "weibull_min"]


gamma, erlang = [Distribution(
    scipys, lambda z, a: xlogy(a - 1, z) - z - gammaln(a), lambda z, a: gammainc(a, z),
    lambda z, a: gammaincc(a, z), lambda z, a: log_gammainc(a, z),
    lambda z, a: log_gammaincc(a, z), lambda z, a: gamma_density(a, z),
    ppf=lambda q, a: gammaincinv(a, q), isf=lambda q, a: gammainccinv(a, q), support=POSITIVE,
    moments={"mean": lambda a: a, "var": lambda a: a,
             "entropy": lambda a: psi(a) * (1 - a) + a + gammaln(a)})
    for scipys in (stats.gamma, stats.erlang)]
_chi_log_density, _chi_density = power_density(
    lambda df: df - 1,
    lambda z, df: (1 - 0.5 * df) * LOG_2 - gammaln(0.5 * df) - 0.5 * z * z)
chi = Distribution(
    stats.chi, _chi_log_density,
    lambda z, df: gammainc(0.5 * df, 0.5 * z * z), lambda z, df: gammaincc(0.5 * df, 0.5 * z * z),
    lambda z, df: log_gamma_cdf(0.5 * df, 0.5 * z * z, 2 * log(z) - LOG_2),
    lambda z, df: log_gammaincc(0.5 * df, 0.5 * z * z), _chi_density,
    ppf=lambda q, df: sqrt(2 * gammaincinv(0.5 * df, q)),
    isf=lambda q, df: sqrt(2 * gammainccinv(0.5 * df, q)), support=POSITIVE)
maxwell = Distribution(
    stats.maxwell, lambda z: 0.5 * math.log(2 / math.pi) + 2 * log(z) - 0.5 * z * z,
    lambda z: gammainc(1.5, 0.5 * z * z), lambda z: gammaincc(1.5, 0.5 * z * z),
    lambda z: log_gamma_cdf(1.5, 0.5 * z * z, 2 * log(z) - LOG_2),
    lambda z: log_gammaincc(1.5, 0.5 * z * z),
    pdf=lambda z: math.sqrt(2 / math.pi) * z * z * exp(-0.5 * z * z),
    ppf=lambda q: sqrt(2 * gammaincinv(1.5, q)), isf=lambda q: sqrt(2 * gammainccinv(1.5, q)),
    support=POSITIVE, moments={
        "mean": lambda: 2 * math.sqrt(2 / math.pi), "var": lambda: 3 - 8 / math.pi})
chi2 = Distribution(
    stats.chi2,
    lambda z, df: xlogy(0.5 * df - 1, 0.5 * z) - 0.5 * z - gammaln(0.5 * df) - LOG_2,
    lambda z, df: gammainc(0.5 * df, 0.5 * z), lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    lambda z, df: log_gammainc(0.5 * df, 0.5 * z), lambda z, df: log_gammaincc(0.5 * df, 0.5 * z),
    pdf=lambda z, df: 0.5 * gamma_density(0.5 * df, 0.5 * z),
    ppf=lambda q, df: 2 * gammaincinv(0.5 * df, q), isf=lambda q, df: 2 * gammainccinv(0.5 * df, q),
    support=POSITIVE, moments={"mean": lambda df: df, "var": lambda df: 2 * df})
invgamma = Distribution(
    stats.invgamma, lambda z, a: -(a + 1) * log(z) - gammaln(a) - 1 / z,
    lambda z, a: gammaincc(a, 1 / z), lambda z, a: gammainc(a, 1 / z),
    lambda z, a: log_gammaincc(a, 1 / z),
    lambda z, a: log_gamma_cdf(a, 1 / maximum(z, 1e-100), -log(z)),
    ppf=lambda q, a: 1 / gammainccinv(a, q), isf=lambda q, a: 1 / gammaincinv(a, q),
    support=POSITIVE, open_ends=True)


def _f_log_density(z, n, d):
    return (0.5 * n * log(n / d) + xlogy(0.5 * n - 1, z) - 0.5 * (n + d) * log1p(n / d * z)
            - betaln(0.5 * n, 0.5 * d))


f = Distribution(
    stats.f, _f_log_density, lambda z, n, d: fdtr(n, d, z), lambda z, n, d: fdtrc(n, d, z),
    lambda z, n, d: log_odds(0.5 * n, 0.5 * d, n / d * z),
    lambda z, n, d: log_oddsc(0.5 * n, 0.5 * d, n / d * z),
    pdf=lambda z, n, d: n / d * odds_density(0.5 * n, 0.5 * d, n / d * z),
    ppf=lambda q, n, d: fdtri(n, d, q), isf=lambda q, n, d: 1 / fdtri(d, n, q), support=POSITIVE)
expon = Distribution(
    stats.expon, lambda z: -z, lambda z: -expm1(-z), lambda z: exp(-z), logsf=lambda z: -z,
    ppf=lambda q: -log1p(-q), isf=lambda q: -log(q), support=POSITIVE,
    moments={"mean": lambda: 1.0, "var": lambda: 1.0, "entropy": lambda: 1.0})
rayleigh = Distribution(
    stats.rayleigh, lambda z: log(z) - 0.5 * z * z, lambda z: -expm1(-0.5 * z * z),
    lambda z: exp(-0.5 * z * z), lambda z: log_of_hazard(2 * log(z) - LOG_2),
    lambda z: -0.5 * z * z, pdf=lambda z: z * exp(-0.5 * z * z), ppf=lambda q: sqrt(-2 * log1p(-q)),
    isf=lambda q: sqrt(-2 * log(q)), support=POSITIVE,
    moments={"mean": lambda: math.sqrt(math.pi / 2), "var": lambda: (4 - math.pi) / 2,
             "entropy": lambda: EULER / 2 + 1 - LOG_2 / 2})


halfnorm = Distribution(
    stats.halfnorm, lambda z: LOG_2 - HALF_LOG_2PI - 0.5 * z * z,
    lambda z: erf(math.sqrt(0.5) * z), lambda z: 2 * ndtr(-z),
    logsf=lambda z: log_erfc(math.sqrt(0.5) * z), ppf=lambda q: ndtri(0.5 * (1 + q)),
    isf=lambda q: -ndtri(0.5 * q), support=POSITIVE,
    moments={"mean": lambda: math.sqrt(2 / math.pi), "var": lambda: 1 - 2 / math.pi,
             "entropy": lambda: 0.5 * math.log(math.pi / 2) + 0.5})
lognorm = Distribution(
    stats.lognorm, lambda z, s: -0.5 * (log(z) / s)**2 - log(s) - log(z) - HALF_LOG_2PI,
    lambda z, s: ndtr(log(z) / s), lambda z, s: ndtr(-log(z) / s),
    lambda z, s: log_ndtr(log(z) / s), lambda z, s: log_ndtr(-log(z) / s),
    ppf=lambda q, s: exp(s * ndtri(q)), isf=lambda q, s: exp(-s * ndtri(q)), support=POSITIVE,
    open_ends=True, moments={
        "mean": lambda s: exp(0.5 * s * s), "var": lambda s: expm1(s * s) * exp(s * s),
        "entropy": lambda s: HALF_LOG_2PI + 0.5 + log(s)})


def _weibull_log_density(x, c):
    return log(c) + xlogy(c - 1, x) - x**c


def _weibull_density(z, c):
    z = not_far(z, c)
    return c * z**(c - 1) * exp(-z**c)


def _weibull_var(c):
    return gamma_function(1 + 2 / c) - gamma_function(1 + 1 / c)**2


def _weibull_entropy(c):
    return EULER * (1 - 1 / c) - log(c) + 1


weibull_min = Distribution(
    stats.weibull_min, _weibull_log_density, lambda z, c: -expm1(-not_far(z, c)**c),
    lambda z, c: exp(-not_far(z, c)**c), lambda z, c: log_of_hazard(c * log(z)),
    lambda z, c: -z**c, _weibull_density,
    ppf=lambda q, c: (-log1p(-q))**(1 / c), isf=lambda q, c: (-log(q))**(1 / c),
    support=POSITIVE, moments={
        "mean": lambda c: gamma_function(1 + 1 / c), "var": _weibull_var,
        "entropy": _weibull_entropy})
weibull_max = Distribution(
    stats.weibull_max, lambda z, c: _weibull_log_density(-z, c),
    lambda z, c: exp(-not_far(-z, c)**c), lambda z, c: -expm1(-not_far(-z, c)**c),
    lambda z, c: -(-z)**c, lambda z, c: log_of_hazard(c * log(-z)),
    lambda z, c: _weibull_density(-z, c),
    ppf=lambda q, c: -(-log(q))**(1 / c), isf=lambda q, c: -(-log1p(-q))**(1 / c),
    support=(-np.inf, 0), inside=-0.5, moments={
        "mean": lambda c: -gamma_function(1 + 1 / c), "var": _weibull_var,
        "entropy": _weibull_entropy})


def _invgauss_logcdf(z, mu):
    root = 1 / sqrt(z)
    a, b = log_ndtr(root * (z / mu - 1)), 2 / mu + log_ndtr(-root * (z / mu + 1))
    return a + log1p(exp(b - a))


def _invgauss_logsf(z, mu):
    """Return the logarithm of a difference, in the tail by asymptotic series of its terms."""
    root = 1 / sqrt(z)
    low, high = root * (z / mu - 1), root * (z / mu + 1)
    is_tail = low > 30
    low, high = where(is_tail, 0.0, low), where(is_tail, 1.0, high)
    a, b = log_ndtr(-low), where(is_tail, -1.0, 2 / mu) + log_ndtr(-high)
    z = where(is_tail, z, 1e4 * mu * mu)
    log_ratio = log1p(-mu / z) - log1p(mu / z)
    u = sqrt(z) / mu - 1 / sqrt(z)
    series, term = 0.0, 1 / u
    for power in (1, 3, 5, 7, 9):
        series, term = series - term * expm1(power * log_ratio), -power * term / (u * u)
    return where(is_tail, log(series) - 0.5 * u * u - HALF_LOG_2PI, a + log1p(-exp(b - a)))


invgauss = Distribution(
    stats.invgauss, lambda z, mu: (
        -HALF_LOG_2PI - 1.5 * log(z) - 0.5 * ((z - mu) / mu) * ((z - mu) / mu / z)),
    lambda z, mu: exp(_invgauss_logcdf(z, mu)),
    lambda z, mu: exp(_invgauss_logsf(minimum(z, 1e4 * (1 + mu) * mu), mu)),  # beyond, it is 0
    _invgauss_logcdf, _invgauss_logsf, ppf=invgauss_ppf, isf=invgauss_isf, support=POSITIVE,
    open_ends=True, moments={"mean": lambda mu: mu, "var": lambda mu: mu**3})
lomax = Distribution(
    stats.lomax, lambda z, c: log(c) - (c + 1) * log1p(z), lambda z, c: -expm1(-c * log1p(z)),
    lambda z, c: exp(-c * log1p(z)), logsf=lambda z, c: -c * log1p(z),
    ppf=lambda q, c: expm1(-log1p(-q) / c), isf=lambda q, c: expm1(-log(q) / c), support=POSITIVE)


def _halfcauchy_ppf(q):
    """Return tan(pi q / 2), on the right by that of the complement, which is infinite at 1."""
    is_right = q > 0.5
    left, right = where(is_right, 0.5, q), where(is_right, 1 - q, 0.5)
    return where(is_right, 1 / tan(math.pi / 2 * right), tan(math.pi / 2 * left))


def _halfcauchy_logsf(z):
    is_tail = z > 1
    tail, middle = where(is_tail, z, 1.0), where(is_tail, 0.5, z)
    return where(
        is_tail, LOG_2 + cauchy_logcdf(-tail), log1p(-2 / math.pi * arctan(middle)))


halfcauchy = Distribution(
    stats.halfcauchy, lambda z: math.log(2 / math.pi) - 2 * log(hypot(1, z)),
    lambda z: 2 / math.pi * arctan2(z, 1), lambda z: 2 / math.pi * arctan2(1, z),
    logsf=_halfcauchy_logsf, ppf=_halfcauchy_ppf, isf=lambda q: 1 / tan(math.pi / 2 * q),
    support=POSITIVE)


def _excess(z, c):
    """Return the cumulative hazard of `genpareto`."""
    return log1p_rate(z, c)


def _excess_ends(c):
    is_bounded = c < 0
    return 0.0, where(is_bounded, -1 / where(is_bounded, c, -1.0), np.inf)


def _split(near, far):
    """Return a function that has a power of the distance to the right end of a support there."""
    def function(z, c):
        is_near, u, end, z = near_end(z, -c)
        return either(is_near, lambda: near(u, 1 / end), lambda: far(z, c))

    return function


genpareto = Distribution(
    stats.genpareto,
    _split(lambda u, power: xlogy(power - 1, u), lambda z, c: -(c + 1) * _excess(z, c)),
    _split(lambda u, power: 1 - u**power, lambda z, c: -expm1(-_excess(z, c))),
    _split(lambda u, power: u**power, lambda z, c: exp(-_excess(z, c))),
    _split(lambda u, power: log1p(-u**power), lambda z, c: log_of_hazard(log(_excess(z, c)))),
    lambda z, c: -_excess(z, c),
    _split(lambda u, power: u**(power - 1), lambda z, c: exp(-(c + 1) * _excess(z, c))),
    ppf=lambda q, c: -boxcox1p(-q, -c),
    isf=lambda q, c: -boxcox(q, -c), support=_excess_ends,
    inside=lambda c: 0.5 / maximum(-c, 1.0), valid=lambda c: abs(c) < np.inf)
pareto = Distribution(
    stats.pareto, lambda z, b: log(b) - (b + 1) * log(z), lambda z, b: -expm1(-b * log(z)),
    lambda z, b: z**-b, logsf=lambda z, b: -b * log(z), ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: q**(-1 / b), support=(1, np.inf), inside=2.0,
    moments={"entropy": lambda b: 1 + 1 / b - log(b)})


def _burr(sign):
    """Return functions of `burr`, or of 1 / z of it: log of the probability, logpdf and pdf."""
    def log_p(z, c, d):
        return d * log_expit(sign * c * log(z))

    def power_of(c, d):
        """Return the power of z in the density, which may be 0."""
        return (c * d if sign > 0 else c) - 1

    def split(z):
        """Return z left of 1 and right of it."""
        is_left = z < 1
        return is_left, where(is_left, z, 0.5), where(is_left, 1.0, z)

    def right_log_density(z, c, d):
        return log(c) + log(d) - log(z) + log_expit(-sign * c * log(z)) + log_p(z, c, d)

    def log_density(z, c, d, power=None):
        is_left, left, right = split(z)
        power = power_of(c, d) if power is None else power
        return where(
            is_left, log(c) + log(d) + xlogy(power, left) - (d + 1) * log1p(left**c),
            right_log_density(right, c, d))

    def density(z, c, d, power=None):
        is_left, left, right = split(z)
        power = power_of(c, d) if power is None else power
        return where(
            is_left, c * d * left**power * exp(-(d + 1) * log1p(left**c)),
            exp(right_log_density(right, c, d)))

    return log_p, log_density, density


_burr_logcdf, burr_log_density, burr_density = _burr(1)
_burr12_logsf, _burr12_log_density, _burr12_density = _burr(-1)
burr = Distribution(
    stats.burr, burr_log_density, lambda z, c, d: exp(_burr_logcdf(z, c, d)),
    lambda z, c, d: -expm1(_burr_logcdf(z, c, d)), _burr_logcdf,
    lambda z, c, d: log_of_hazard(log(d) + log_softplus(-c * log(z))), burr_density,
    ppf=lambda q, c, d: expm1(0.0 - log(q) / d)**(-1 / c),  # not of -0.0 for 1
    isf=lambda q, c, d: expm1(0.0 - log1p(-q) / d)**(-1 / c), support=POSITIVE,
    open_ends="probabilities")
burr12 = Distribution(
    stats.burr12, _burr12_log_density, lambda z, c, d: -expm1(_burr12_logsf(z, c, d)),
    lambda z, c, d: exp(_burr12_logsf(z, c, d)),
    lambda z, c, d: log_of_hazard(log(d) + log_softplus(c * log(z))), _burr12_logsf,
    _burr12_density,
    ppf=lambda q, c, d: expm1(-log1p(-q) / d)**(1 / c),
    isf=lambda q, c, d: expm1(-log(q) / d)**(1 / c), support=POSITIVE,
    open_ends="probabilities")
fisk = Distribution(  # whose logarithm is logistic
    stats.fisk, lambda z, c: burr_log_density(z, c, 1.0), lambda z, c: expit(c * log(z)),
    lambda z, c: expit(-c * log(z)), lambda z, c: log_expit(c * log(z)),
    lambda z, c: log_expit(-c * log(z)), lambda z, c: burr_density(z, c, 1.0),
    ppf=lambda q, c: exp(logit(q) / c), isf=lambda q, c: exp(-logit(q) / c), support=POSITIVE,
    open_ends="probabilities")


def _gompertz_hazard(z, c):
    """Return the cumulative hazard, at most 800, where the probability is 0."""
    return c * expm1(minimum(z, log1p(800 / c)))


gompertz = Distribution(
    stats.gompertz, lambda z, c: log(c) + z - c * expm1(z),
    lambda z, c: -expm1(-_gompertz_hazard(z, c)), lambda z, c: exp(-_gompertz_hazard(z, c)),
    logsf=lambda z, c: -c * expm1(z),
    pdf=lambda z, c: (c + _gompertz_hazard(z, c)) * exp(-_gompertz_hazard(z, c)),
    ppf=lambda q, c: log1p(-log1p(-q) / c), isf=lambda q, c: log1p(-log(q) / c), support=POSITIVE)


def _halflogistic_logsf(z):
    is_small = z < 1
    small, large = where(is_small, z, 0.0), where(is_small, 1.0, z)
    return where(is_small, log1p(-tanh(0.5 * small)), LOG_2 + log_expit(-large))


def halflogistic_cdf(z):
    """Return tanh(z / 2), by a quotient whose slope does not cancel far out."""
    return -expm1(-z) / (1 + exp(-z))


halflogistic = Distribution(
    stats.halflogistic, lambda z: LOG_2 + log_expit(z) + log_expit(-z), halflogistic_cdf,
    lambda z: 2 * expit(-z), logsf=_halflogistic_logsf,
    ppf=lambda q: 2 * arctanh(q), isf=lambda q: -logit(0.5 * q), support=POSITIVE)


def _inverse_power(z, c):
    """Return z**-c, at most exp(7.5), where the density is 0."""
    return exp(minimum(-c * log(z), 7.5))


invweibull = Distribution(
    stats.invweibull, lambda z, c: log(c) - (c + 1) * log(z) - z**-c,
    lambda z, c: exp(-_inverse_power(z, c)), lambda z, c: -expm1(-_inverse_power(z, c)),
    lambda z, c: -z**-c, lambda z, c: log_of_hazard(-c * log(z)),
    lambda z, c: c * _inverse_power(z, c) / z * exp(-_inverse_power(z, c)),
    ppf=lambda q, c: (-log(q))**(-1 / c), isf=lambda q, c: (-log1p(-q))**(-1 / c),
    support=POSITIVE, open_ends=True)
levy = Distribution(
    stats.levy, lambda z: -HALF_LOG_2PI - 1.5 * log(z) - 0.5 / z, lambda z: 2 * ndtr(-1 / sqrt(z)),
    lambda z: erf(1 / sqrt(2 * z)), lambda z: log_erfc(1 / sqrt(2 * z)),
    ppf=lambda q: ndtri(0.5 * q)**-2, isf=lambda q: 0.5 * erfinv(q)**-2, support=POSITIVE,
    open_ends=True)
_nakagami_log_density, _nakagami_density = power_density(
    lambda nu: 2 * nu - 1, lambda z, nu: LOG_2 + nu * log(nu) - gammaln(nu) - nu * z * z)
nakagami = Distribution(
    stats.nakagami, _nakagami_log_density,
    lambda z, nu: gammainc(nu, nu * z * z), lambda z, nu: gammaincc(nu, nu * z * z),
    lambda z, nu: log_gamma_cdf(nu, nu * z * z, log(nu) + 2 * log(z)),
    lambda z, nu: log_gammaincc(nu, nu * z * z), _nakagami_density,
    ppf=lambda q, nu: sqrt(gammaincinv(nu, q) / nu),
    isf=lambda q, nu: sqrt(gammainccinv(nu, q) / nu), support=POSITIVE)
betaprime = Distribution(
    stats.betaprime, lambda z, a, b: xlogy(a - 1, z) - (a + b) * log1p(z) - betaln(a, b),
    lambda z, a, b: exp(log_odds(a, b, z)), lambda z, a, b: exp(log_oddsc(a, b, z)),
    lambda z, a, b: log_odds(a, b, z), lambda z, a, b: log_oddsc(a, b, z),
    lambda z, a, b: odds_density(a, b, z),
    lambda q, a, b: betaincinv(a, b, q) / betainccinv(b, a, q),
    lambda q, a, b: betainccinv(a, b, q) / betaincinv(b, a, q), support=POSITIVE,
    open_ends="probabilities")


def _rice_smaller(z, b):
    """Return whether z is on the left, and the logarithm of the probability on its side."""
    is_left = (z <= b) | (z < 1)
    return is_left, where(
        is_left, rice_lower(where(is_left, z, b + 1), b), rice_upper(where(is_left, b + 1, z), b)
    ) - 0.5 * (z - b)**2


def _rice_logcdf(z, b):
    is_left, log_p = _rice_smaller(z, b)
    return where(is_left, log_p, log1p(-exp(log_p)))


def _rice_logsf(z, b):
    is_left, log_p = _rice_smaller(z, b)
    return where(is_left, log1p(-exp(log_p)), log_p)


rice = Distribution(
    stats.rice, lambda z, b: log(z) - 0.5 * (z - b)**2 + log(i0e(z * b)),
    lambda z, b: rice_cdf(minimum(z, b + 50), b),  # beyond, the probability is 1
    lambda z, b: rice_sf(minimum(z, b + 50), b), _rice_logcdf,
    _rice_logsf, lambda z, b: z * exp(-0.5 * (z - b)**2) * i0e(z * b),
    rice_ppf, rice_isf, support=POSITIVE, open_ends="probabilities",
    valid=lambda b: b >= 0)
