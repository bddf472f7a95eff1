"""Further distributions on a half-line: of folded, reciprocal, powered and noncentral variables."""

import math

import numpy as np
import scipy.stats as stats

from cytape.ops.calls.operands import is_tensor
from cytape.ops.elementwise import (
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    logaddexp,
    minimum,
    sinh,
    sqrt,
    where,
)
from cytape.ops.probabilities.log_probabilities import (
    log_mass,
    log_of_hazard,
)
from cytape.ops.probabilities.poisson_mixtures import (
    log_chi_above,
    log_chi_below,
    log_chi_density,
    log_f_above,
    log_f_below,
    log_f_density,
)
from cytape.ops.sampling.quantile_functions import (
    kolmogorov_cdf,
    kolmogorov_density,
    kolmogorov_ppf,
    ncf_sf,
    ncx2_sf,
)
from cytape.ops.special import (
    chndtr,
    chndtrix,
    expit,
    exprel,
    kolmogi,
    kolmogorov,
    log_ndtr,
    ncfdtr,
    ncfdtri,
    ndtr,
    ndtri,
    ndtri_exp,
    xlogy,
)
from cytape.ops.special.distribution_functions import (
    ncf_density,
    ncf_log_density,
    noncentral_log_density,
)
from cytape.scipy.stats.distribution import (
    HALF_LOG_2PI,
    LOG_2,
    POSITIVE,
    Distribution,
    complementary,
    either,
    log1p_rate,
    log_probability,
    log_rest,
    near_end,
    not_far,
    power_density,
)
from cytape.scipy.stats.half_line import (
    burr,
    burr_density,
    burr_log_density,
    halflogistic,
    halflogistic_cdf,
    invgauss,
    levy,
    lognorm,
)
from cytape.scipy.stats.real_line import cauchy, log_ndtr_hazard
from cytape.scipy.stats.related import increasing, mirrored

__all__ = [
    "dpareto_lognorm", "exponpow", "exponweib", "fatiguelife", "foldcauchy", "foldnorm",
    "genexpon", "genhalflogistic", "gibrat", "kappa3", "kstwobign",
    "levy_l", "loglaplace", "mielke", "ncf", "ncx2", "powerlognorm",
    "rel_breitwigner", "wald"]


# ---- special cases

gibrat = increasing(stats.gibrat, lognorm, lambda z: (z, 1.0), support=POSITIVE, open_ends=True)
wald = increasing(stats.wald, invgauss, lambda z: (z, 1.0), support=POSITIVE, open_ends=True)
mielke = increasing(
    stats.mielke, burr, lambda z, k, s: (z, s, k / s), densities=(
        lambda z, k, s: burr_log_density(z, s, k / s, k - 1),
        lambda z, k, s: burr_density(z, s, k / s, k - 1)),
    support=POSITIVE, open_ends="probabilities")


def _kappa(z, a):
    return z * exp(-log(a) / a), a, 1 / a


kappa3 = increasing(
    stats.kappa3, burr, _kappa, lambda y, a: y * exp(log(a) / a), densities=(
        lambda z, a: burr_log_density(*_kappa(z, a), 0) - log(a) / a,
        lambda z, a: burr_density(*_kappa(z, a), 0) * exp(-log(a) / a)),
    support=POSITIVE, open_ends="probabilities")


levy_l = mirrored(stats.levy_l, levy, support=(-np.inf, 0), inside=-0.5, open_ends=True)

# ---- folded variables


def _folded_logcdf(z, c):
    return log_mass(c - z, c + z, 2 * z)


def _folded_cdf(z, c):
    is_near = z < 1e-3  # where the difference cancels
    return either(is_near, lambda: exp(_folded_logcdf(where(is_near & (z > 0), z, 1e-300), c)),
                  lambda: ndtr(z - c) - ndtr(-z - c))


foldnorm = Distribution(
    stats.foldnorm,
    lambda z, c: -0.5 * (z - c)**2 - HALF_LOG_2PI + log1p(exp(-2 * c * z)),
    _folded_cdf, lambda z, c: ndtr(c - z) + ndtr(-z - c),
    **complementary(_folded_logcdf,
                    lambda z, c: logaddexp(log_ndtr(c - z), log_ndtr(-c - z))),
    support=POSITIVE, valid=lambda c: c >= 0, open_ends="probabilities")


def _foldcauchy_sf(z, c):
    return (arctan2(1, z - c) + arctan2(1, z + c)) / math.pi


def _foldcauchy_cdf(z, c):
    is_left = z < 1
    left, right = where(is_left, z, 0.5), where(is_left, 1.0, z)
    return where(
        is_left, arctan2(2 * left, 1 + (c - left) * (c + left)) / math.pi,
        1 - _foldcauchy_sf(right, c))


def _foldcauchy_quantile(cot, c):
    """Return the quantile of a probability with this cotangent of its angle."""
    r = hypot(1, c)
    is_left = cot > 0
    left, right = where(is_left, cot, 1.0), where(is_left, -1.0, cot)
    return where(is_left, r * r / (left + hypot(left, r)), hypot(right, r) - right)


foldcauchy = Distribution(
    stats.foldcauchy, lambda z, c: (
        logaddexp(-2 * log(hypot(1, z - c)), -2 * log(hypot(1, z + c))) - math.log(math.pi)),
    _foldcauchy_cdf, _foldcauchy_sf,
    ppf=lambda q, c: _foldcauchy_quantile(-cauchy.functions["ppf"](q), c),
    isf=lambda q, c: _foldcauchy_quantile(cauchy.functions["ppf"](q), c), support=POSITIVE,
    valid=lambda c: c >= 0)

# ---- powers of probabilities


def _log_weibull_cdf(z, c):
    return log_of_hazard(c * log(z))


def _exponweib_logsf(z, a, c):
    w = z**c
    is_tail = w > 40
    return where(is_tail, log(a) - w, log_rest(a * _log_weibull_cdf(where(is_tail, 1.0, z), c)))


_exponweib_log_density, _exponweib_density = power_density(
    lambda a, c: a * c - 1,
    lambda z, a, c: log(a) + log(c) + (a - 1) * log(exprel(-not_far(z, c)**c)) - z**c)
exponweib = Distribution(
    stats.exponweib, _exponweib_log_density, logcdf=lambda z, a, c: a * _log_weibull_cdf(z, c),
    logsf=_exponweib_logsf, sf=lambda z, a, c: exp(_exponweib_logsf(not_far(z, c), a, c)),
    pdf=lambda z, a, c: _exponweib_density(not_far(z, c), a, c),
    ppf=lambda q, a, c: (-log_rest(log(q) / a))**(1 / c),
    isf=lambda q, a, c: (-log_rest(log1p(-q) / a))**(1 / c), support=POSITIVE,
    open_ends="probabilities")


def _powerlognorm_logcdf(z, c, s):
    return log_of_hazard(minimum(log(c) + log_ndtr_hazard(log(z) / s), 700.0))


powerlognorm = Distribution(
    stats.powerlognorm, lambda z, c, s: (
        log(c) - log(z) - log(s) - 0.5 * (log(z) / s)**2 - HALF_LOG_2PI
        + (c - 1) * log_ndtr(-log(z) / s)),
    logcdf=_powerlognorm_logcdf, logsf=lambda z, c, s: c * log_ndtr(-log(z) / s),
    ppf=lambda q, c, s: exp(-s * ndtri_exp(log1p(-q) / c)),
    isf=lambda q, c, s: exp(-s * ndtri_exp(log(q) / c)), support=POSITIVE, open_ends=True)

# ---- hazards


def _exponpow_log_hazard(z, b):
    """Return the logarithm of expm1(z**b), at most 7, where the probability is 0."""
    w = exp(minimum(b * log(z), math.log(7)))
    return minimum(b * log(z), math.log(7)) + log(exprel(w))


_exponpow_log_density, _exponpow_density = power_density(
    lambda b: b - 1,
    lambda z, b: 1 + log(b) + not_far(z, b)**b - exp(not_far(z, b)**b))
exponpow = Distribution(
    stats.exponpow, _exponpow_log_density, lambda z, b: -expm1(-exp(_exponpow_log_hazard(z, b))),
    lambda z, b: exp(-exp(_exponpow_log_hazard(z, b))),
    lambda z, b: log_of_hazard(_exponpow_log_hazard(z, b)), lambda z, b: -expm1(z**b),
    lambda z, b: _exponpow_density(minimum(z, 7**(1 / b)), b),
    lambda q, b: log1p(-log1p(-q))**(1 / b), lambda q, b: log1p(-log(q))**(1 / b),
    support=POSITIVE, open_ends="probabilities")


def _genexpon_hazard(z, a, b, c):
    return a * z + b * z * (1 - exprel(-c * z))


genexpon = Distribution(
    stats.genexpon,
    lambda z, a, b, c: log(a - b * expm1(-c * z)) - _genexpon_hazard(z, a, b, c),
    logsf=lambda z, *shapes: -_genexpon_hazard(z, *shapes), support=POSITIVE)


def _half_excess(z, c):
    return log1p_rate(z, -c)


def _genhalflogistic_density(near, far):
    def density(z, c):
        is_near, u, end, z = near_end(z, c)
        return either(
            is_near, lambda: near(u, 1 / end), lambda: far(_half_excess(z, c), c))

    return density


genhalflogistic = Distribution(
    stats.genhalflogistic,
    _genhalflogistic_density(
        lambda u, p: LOG_2 + xlogy(p - 1, u) - 2 * log1p(u**p),
        lambda x, c: LOG_2 + (c - 1) * x - 2 * log1p(exp(-x))),
    lambda z, c: halflogistic_cdf(_half_excess(z, c)), lambda z, c: 2 * expit(-_half_excess(z, c)),
    logsf=lambda z, c: halflogistic.functions["logsf"](_half_excess(z, c)),
    pdf=_genhalflogistic_density(
        lambda u, p: 2 * u**(p - 1) / (1 + u**p)**2,
        lambda x, c: 2 * exp((c - 1) * x) / (1 + exp(-x))**2),
    ppf=lambda q, c: -expm1(-2 * c * arctanh(q)) / c,
    isf=lambda q, c: -expm1(c * (log(q) - log(2 - q))) / c, support=lambda c: (0.0, 1 / c),
    inside=lambda c: 0.5 / c, open_ends="probabilities")

# ---- normal and Laplace variables of logarithms


def _fatigue(z, c):
    return 2 / c * sinh(0.5 * log(z))


fatiguelife = Distribution(
    stats.fatiguelife, lambda z, c: (
        log1p(z) - 0.5 * _fatigue(z, c)**2 - log(2 * c) - HALF_LOG_2PI - 1.5 * log(z)),
    lambda z, c: ndtr(_fatigue(z, c)), lambda z, c: ndtr(-_fatigue(z, c)),
    lambda z, c: log_ndtr(_fatigue(z, c)), lambda z, c: log_ndtr(-_fatigue(z, c)),
    ppf=lambda q, c: exp(2 * arcsinh(0.5 * c * ndtri(q))),
    isf=lambda q, c: exp(-2 * arcsinh(0.5 * c * ndtri(q))), support=POSITIVE, open_ends=True)


def _loglaplace_tail(z, c):
    return where(z < 1, c, -c) * log(z) - LOG_2  # with a derivative at 1


def _loglaplace_quantile(q, p, c):
    is_left = q < 0.5
    return where(is_left, (2 * where(is_left, q, 0.5))**(1 / c),
                 (2 * where(is_left, 0.5, p))**(-1 / c))


def _loglaplace_log_density(z, c):
    return log(0.5 * c) + xlogy(where(z < 1, c, -c) - 1, z)


loglaplace = Distribution(
    stats.loglaplace, _loglaplace_log_density,
    logcdf=lambda z, c: where(z < 1, _loglaplace_tail(z, c), log1p(-exp(_loglaplace_tail(z, c)))),
    logsf=lambda z, c: where(z < 1, log1p(-exp(_loglaplace_tail(z, c))), _loglaplace_tail(z, c)),
    pdf=lambda z, c: 0.5 * c * z**(where(z < 1, c, -c) - 1),
    ppf=lambda q, c: _loglaplace_quantile(q, 1 - q, c),
    isf=lambda q, c: _loglaplace_quantile(1 - q, q, c), support=POSITIVE,
    open_ends="probabilities")


def _log_mills(x):
    return log_ndtr(-x) + 0.5 * x * x + HALF_LOG_2PI


def _pareto_lognormal(z, u, s, a, b):
    """Return the standardised logarithm, the log of its density, and those of the two tails."""
    x = (log(z) - u) / s
    log_phi = -0.5 * x * x - HALF_LOG_2PI
    return x, log_phi, log_phi + _log_mills(a * s - x), log_phi + _log_mills(b * s + x)


def _pareto_lognormal_log_density(z, u, s, a, b):
    _, _, upper, lower = _pareto_lognormal(z, u, s, a, b)
    return log(a) + log(b) - log(a + b) - log(z) + logaddexp(upper, lower)


def _pareto_lognormal_probability(sign):
    def probability(z, u, s, a, b):
        x, _, upper, lower = _pareto_lognormal(z, u, s, a, b)
        return ndtr(sign * x) + sign * (a * exp(lower) - b * exp(upper)) / (a + b)

    return probability


dpareto_lognorm = Distribution(
    stats.dpareto_lognorm, _pareto_lognormal_log_density, _pareto_lognormal_probability(1),
    _pareto_lognormal_probability(-1), support=POSITIVE, open_ends=True,
    valid=lambda u, s, a, b: (s > 0) & (a > 0) & (b > 0))

# ---- noncentral chi-squared, Kolmogorov and Breit-Wigner


def _noncentral(
        scipys, n, densities, probabilities, mixtures, quantile, most=None, **options):
    """Return a distribution with mixtures if any of the n degrees of freedom is a tensor.

    Functions other than mixtures overflow where the noncentrality is above `most`.
    """
    def by_degrees(usual, mixture):
        def function(z, *shapes):
            if any(map(is_tensor, shapes[:n])):
                return mixture(z, *shapes)
            if most is None:
                return usual(z, *shapes)
            *degrees, nc = shapes
            is_large = nc > most
            return either(
                is_large, lambda: mixture(z, *degrees, where(is_large, nc, most)),
                lambda: usual(z, *degrees, where(is_large, most, nc)))

        return function

    def after(log_p):
        return lambda *z: exp(log_p(*z))

    def solved(name, of, sign):
        def quantile(q, *shapes):
            f = distribution.functions
            return distribution._solved(name, f[of], f["logpdf"], sign)(q, *shapes)

        return quantile

    logpdf, pdf = densities
    functions = {
        "logpdf": by_degrees(logpdf, mixtures[0]), "pdf": by_degrees(pdf, after(mixtures[0])),
        "ppf": by_degrees(quantile, solved("ppf", "logcdf", 1)), "isf": solved("isf", "logsf", -1)}
    logarithms = complementary(*mixtures[1:])
    for (name, usual), (_, rest), mixture in zip(
            probabilities, probabilities[::-1], logarithms.values(), strict=True):
        functions[name] = by_degrees(usual, after(mixture))
        functions["log" + name] = by_degrees(
            lambda *z, p=usual, q=rest: log_probability(p(*z), q(*z)), mixture)
    distribution = Distribution(
        scipys, **functions, support=POSITIVE, open_ends="probabilities", fixed=tuple(range(n)),
        **options)
    distribution.logarithms = logarithms
    return distribution


ncx2 = _noncentral(
    stats.ncx2, 1, (noncentral_log_density, lambda *z: exp(noncentral_log_density(*z))),
    [("cdf", chndtr), ("sf", ncx2_sf)], (log_chi_density, log_chi_below, log_chi_above), chndtrix,
    valid=lambda df, nc: (df > 0) & (df < np.inf) & (nc >= 0))
ncf = _noncentral(
    stats.ncf, 2, (ncf_log_density, lambda z, m, n, nc: ncf_density(m, n, nc, z)),
    [("cdf", lambda z, m, n, nc: ncfdtr(m, n, nc, z)), ("sf", ncf_sf)],
    (log_f_density, log_f_below, log_f_above), lambda q, m, n, nc: ncfdtri(m, n, nc, q),
    most=1000.0, valid=lambda m, n, nc: (m > 0) & (n > 0) & (nc >= 0))


def _kolmogorov_log(left, right, is_density, is_upper):
    """Return a logarithm of Kolmogorov's distribution, by the series for z < 1 and for z >= 1.

    A series has, beside its first term, multiples of powers of it.
    """
    def logarithm(z):
        is_left = z < 1
        low, high = where(is_left, z, 1.0), where(is_left, 1.0, z)
        w, v = math.pi**2 / 8 / low / low, 2 * high * high
        below = left(low) - w + log(sum(
            exp(-(k * k - 1) * w) * (2 * k * k * w - 1 if is_density else 1) for k in (1, 3, 5, 7)))
        above = right(high) - v + log1p(sum(
            (-1)**(k - 1) * exp(-(k * k - 1) * v) * (k * k if is_density else 1)
            for k in (2, 3, 4)))
        if not is_density:
            below, above = (log_rest(below), above) if is_upper else (below, log_rest(above))
        return where(is_left, below, above)

    return logarithm


def _kolmogorov_probability(is_upper):
    return _kolmogorov_log(
        lambda z: 0.5 * math.log(2 * math.pi) - log(z), lambda z: LOG_2, False, is_upper)


kstwobign = Distribution(
    stats.kstwobign, _kolmogorov_log(
        lambda z: 0.5 * math.log(2 * math.pi) - 2 * log(z), lambda z: log(8 * z), True, True),
    kolmogorov_cdf, kolmogorov, _kolmogorov_probability(False), _kolmogorov_probability(True),
    pdf=kolmogorov_density, ppf=kolmogorov_ppf, isf=kolmogi, support=POSITIVE)


def _breit_wigner_logpdf(z, rho):
    root = sqrt(1 + 1 / (rho * rho))
    return (0.5 * log(2 * root * root / (1 + root)) + math.log(2 / math.pi)
            - 2 * log(hypot(1, (z - rho) * (z + rho) / rho)))


def _breit_wigner_cdf(z, rho):
    scale = sqrt(2 / (1 + sqrt(1 + 1 / (rho * rho)))) / math.pi
    return 2 * scale * np.imag(
        sqrt(-1 + 1j / rho) * arctan(z / sqrt(-rho * (rho + 1j))))


def _breit_wigner_logsf(z, rho):
    """Return the logarithm of the complement, far out by a series, as the difference cancels."""
    is_tail = z > 30 * (1 + rho)
    tail, near = where(is_tail, z, 100 * (1 + rho)), where(is_tail, rho, z)
    square, root = rho * rho, sqrt(1 + 1 / (rho * rho))
    t = 1 / (tail * tail)
    series = 1 / 3 + square * t * (2 / 5 + t * (
        (3 * square - 1) / 7 + square * t * (square - 1) * 4 / 9))
    factor = sqrt(2 / (1 + root)) * root * square * 2 / math.pi
    return where(is_tail, log(factor * series) - 3 * log(tail),
                 log1p(-_breit_wigner_cdf(near, rho)))


rel_breitwigner = Distribution(
    stats.rel_breitwigner, _breit_wigner_logpdf, _breit_wigner_cdf, logsf=_breit_wigner_logsf,
    support=POSITIVE)
