"""Ops of functions of `scipy.stats`: quantiles that it solves for, and functions they need."""

import math

import numpy as np
import scipy.stats as stats
from scipy.interpolate import BSpline

import cytape.ops.special_kernels.special_ufuncs as special
import cytape.ops.special_kernels.von_mises_sums as von_mises_sums
from cytape.ops.engine.op_kinds import elementwise, nondifferentiable
from cytape.ops.probabilities.line_integrals import skewnorm_log_density
from cytape.ops.special.bessel_functions import i0e, i1e
from cytape.ops.special.distribution_functions import (
    ncf_density,
    ncf_in_nc,
    noncentral_density,
)
from cytape.ops.special.error_functions import log_ndtr, log_ndtr_slope
from cytape.ops.special.kolmogorov_functions import kolmogorov_density
from cytape.ops.special.shape_parameters import no_partial, refused


def quantile(name, density, *in_shapes, method="ppf", function=None):
    """Declare SciPy's quantile function of a distribution as an op, with implicit derivatives.

    Parameters
    ----------
    name : str
        Of the distribution.
    density : callable
    *in_shapes : callable
        Derivatives of the distribution function in the shape parameters. All functions take the
        quantile and the shape parameters.
    method : str
        The function, "ppf" or "isf".
    function : callable, optional
        The default is SciPy's.
    """
    def slope_in(in_shape):
        return lambda y, q, *shapes: -in_shape(y, *shapes) / density(y, *shapes)

    sign = 1 if method == "ppf" else -1
    return elementwise(
        "ScipyStats" + name.capitalize() + method.capitalize(),
        function or getattr(getattr(stats, name), method),
        lambda y, q, *shapes: sign / density(y, *shapes), *map(slope_in, in_shapes))


def _steps(q, *shapes, name, method):
    if name == "poisson_binom":  # takes one array
        shapes = [np.stack(shapes, -1)]
    return np.asarray(getattr(getattr(stats, name), method)(q, *shapes), float)


steps_op = nondifferentiable("ScipyStatsSteps", _steps)  # quantiles of discrete distributions
count_op = elementwise("ScipyStatsCount", np.positive, refused(
    "scipy.stats: irwinhall, zipfian and nchypergeom_fisher have no derivatives in counts: pass "
    "cytape.stop_gradient(n) if the gradient should stop there", also_zero=True))

# ---- skew normal


def _skewnorm_density(z, a):
    return np.exp(skewnorm_log_density(z, a))


def _skewnorm_in_a(z, a):
    s = 1 + a * a
    return -np.exp(-0.5 * z * z * s) / (math.pi * s)


skewnorm_cdf = elementwise(
    "ScipyStatsSkewnormCdf", stats.skewnorm.cdf, lambda y, z, a: _skewnorm_density(z, a),
    lambda y, z, a: _skewnorm_in_a(z, a))
skewnorm_ppf = quantile("skewnorm", _skewnorm_density, _skewnorm_in_a)

# ---- exponentially modified normal


def exponnorm_log_excess(z, k):
    """Return the logarithm of ndtr(z) less the distribution function, k times the density."""
    return (0.5 / k - z) / k + log_ndtr(z - 1 / k)


def _exponnorm_in_k(z, k):
    return -np.exp(exponnorm_log_excess(z, k)) * (
        z - 1 / k + log_ndtr_slope(z - 1 / k)) / (k * k)


def _exponnorm_isf(q, k):
    """Return SciPy's quantile; of small q by Newton's method for log(q), which is concave."""
    with np.errstate(all="ignore"):
        is_tail = (q > 0) & (q < 1e-6)
        z = stats.exponnorm.isf(q, k)
        if not np.any(is_tail):
            return z
        log_q = np.log(np.where(is_tail, q, 1e-6))
        tail = np.maximum(0.5 / k - k * log_q, -special.ndtri_exp(log_q))
        for _ in range(20):
            excess = (0.5 / k - tail) / k + special.log_ndtr(tail - 1 / k)
            log_sf = np.logaddexp(special.log_ndtr(-tail), excess)
            tail = tail + k * (log_sf - log_q) * np.exp(log_sf - excess)
        return np.where(is_tail, tail, z)


def _exponnorm_density(z, k):
    return np.exp(exponnorm_log_excess(z, k)) / k


exponnorm_ppf = quantile("exponnorm", _exponnorm_density, _exponnorm_in_k)
exponnorm_isf = quantile(
    "exponnorm", _exponnorm_density, _exponnorm_in_k, method="isf", function=_exponnorm_isf)

# ---- inverse Gaussian


def _invgauss_density(x, mu):
    return np.exp(-0.5 * np.square((x - mu) / mu) / x) / np.sqrt(2 * math.pi * x * x * x)


def _invgauss_in_mu(x, mu):
    return -2 / (mu * mu) * np.exp(2 / mu + log_ndtr(-(x / mu + 1) / np.sqrt(x)))


invgauss_ppf = quantile("invgauss", _invgauss_density, _invgauss_in_mu)
invgauss_isf = quantile("invgauss", _invgauss_density, _invgauss_in_mu, method="isf")

# ---- Rice

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _rice_integral(z, b, sign):
    """Return the integral of the density above z (of sign 1) or below, times exp(d**2 / 2).

    The distance of z from b is d.
    """
    z, b = z[:, None], b[:, None]
    distance = sign * (z - b)
    far = np.maximum(distance, 0)
    width = 80 / (far + np.sqrt(np.square(far) + 80))  # falls by exp(-40)
    half = 0.5 * (width if sign > 0 else np.minimum(width, z))
    step = half + half * _NODES
    x = z + sign * step
    terms = x * special.i0e(b * x) * np.exp(-step * (distance + 0.5 * step))
    return np.log(half[:, 0]) + np.log(terms @ _WEIGHTS)


def _rice_logarithm(name, probability, sign):
    """Declare the logarithm of a probability plus d**2 / 2, in tails by an integral."""
    def forward(z, b):
        dtype = np.result_type(z, b)
        z, b = np.broadcast_arrays(np.asarray(z, float), np.asarray(b, float))
        with np.errstate(all="ignore"):
            p = np.asarray(probability(z * z, 2.0, b * b))
            value = np.asarray(np.log(p) + 0.5 * np.square(z - b))
        is_tail = ~(p > 1e-100) & (z == z) & (b == b)
        if np.any(is_tail):
            value[is_tail] = _rice_integral(z[is_tail], b[is_tail], sign)
        return value.astype(dtype)

    def over(y, z, b, bessel):
        return bessel(z * b) * np.exp(np.log(z) - y)

    return elementwise(
        name, forward, lambda y, z, b: z - b - sign * over(y, z, b, i0e),
        lambda y, z, b: sign * over(y, z, b, i1e) - (z - b))


rice_upper = _rice_logarithm("ScipyStatsRiceUpper", special._ufuncs._ncx2_sf, 1)
rice_lower = _rice_logarithm("ScipyStatsRiceLower", special.chndtr, -1)


def _rice_density(z, b):
    return z * np.exp(-0.5 * np.square(z - b)) * i0e(z * b)


def _rice_in_b(z, b):
    return -z * np.exp(-0.5 * np.square(z - b)) * i1e(z * b)


def _rice_isf(q, b):
    """Return SciPy's quantile; of small q by Newton's method for log(q), which is concave."""
    with np.errstate(all="ignore"):
        is_tail = (q > 0) & (q < 1e-3)
        log_q = np.log(np.where(is_tail, q, 1e-3))
        tail = b + np.sqrt(-2 * log_q)
        for _ in range(12):
            integral = rice_upper.forward(tail, b)
            tail = tail + (integral - 0.5 * np.square(tail - b) - log_q) * np.exp(integral) / (
                tail * special.i0e(tail * b))
        return np.where(is_tail, tail, stats.rice.isf(q, b))


rice_cdf = elementwise(
    "ScipyStatsRiceCdf", lambda z, b: special.chndtr(z * z, 2.0, b * b),
    lambda y, z, b: _rice_density(z, b), lambda y, z, b: _rice_in_b(z, b))
rice_sf = elementwise(
    "ScipyStatsRiceSf", lambda z, b: special._ufuncs._ncx2_sf(z * z, 2.0, b * b),
    lambda y, z, b: -_rice_density(z, b), lambda y, z, b: -_rice_in_b(z, b))
rice_ppf = quantile("rice", _rice_density, _rice_in_b)
rice_isf = quantile("rice", _rice_density, _rice_in_b, method="isf", function=_rice_isf)

# ---- von Mises


def _vonmises_density(z, kappa):
    return np.exp(-2 * kappa * np.square(np.sin(0.5 * z))) / (2 * math.pi * i0e(kappa))


def _vonmises_score(z, kappa):
    """Return the derivative of the log density in kappa."""
    return (1 - i1e(kappa) / i0e(kappa)) - 2 * np.square(np.sin(0.5 * z))


def _vonmises_bend(z, kappa):
    """Return the second derivative of the density in kappa, over the density."""
    ratio, score = i1e(kappa) / i0e(kappa), _vonmises_score(z, kappa)
    is_zero = kappa == 0
    slope = 1 - ratio * ratio - np.where(
        is_zero, 0.5, ratio / np.where(is_zero, 1, kappa))
    return score * score - slope


vonmises_in_kappas = elementwise(
    "ScipyStatsVonmisesInKappas", von_mises_sums.vonmises_in_kappas,
    lambda y, z, kappa: _vonmises_density(z, kappa) * _vonmises_bend(z, kappa),
    no_partial("vonmises.cdf", "kappa", "third derivative"))
vonmises_in_kappa = elementwise(
    "ScipyStatsVonmisesInKappa", von_mises_sums.vonmises_in_kappa,
    lambda y, z, kappa: _vonmises_density(z, kappa) * _vonmises_score(z, kappa),
    lambda y, z, kappa: vonmises_in_kappas(z, kappa))
vonmises_cdf = elementwise(
    "ScipyStatsVonmisesCdf", von_mises_sums.vonmises,
    lambda y, z, kappa: _vonmises_density(z, kappa),
    lambda y, z, kappa: vonmises_in_kappa(z, kappa),
    together=lambda y, z, kappa: von_mises_sums.vonmises_slopes(z, kappa))

# ---- noncentral chi-squared, Kolmogorov and cosine


ncx2_sf = elementwise(
    "ScipyStatsNcx2Sf", special._ufuncs._ncx2_sf,
    lambda y, x, df, nc: -noncentral_density(x, df, nc),
    no_partial("ncx2.sf", "df"), lambda y, x, df, nc: noncentral_density(x, df + 2, nc))
ncf_sf = elementwise(
    "ScipyStatsNcfSf", special._ufuncs._ncf_sf,
    lambda y, f, m, n, nc: -ncf_density(m, n, nc, f), no_partial("ncf.sf", "dfn"),
    no_partial("ncf.sf", "dfd"), lambda y, f, m, n, nc: -ncf_in_nc(m, n, nc, f))
kolmogorov_cdf = elementwise(
    "ScipyStatsKolmogorovCdf", special._ufuncs._kolmogc, lambda y, x: kolmogorov_density(x))
kolmogorov_ppf = quantile(
    "kstwobign", kolmogorov_density, function=special._ufuncs._kolmogci)


def _cosine_density(z):
    return np.square(np.cos(0.5 * z)) / math.pi


cosine_cdf = elementwise(
    "ScipyStatsCosineCdf", special._ufuncs._cosine_cdf, lambda y, z: _cosine_density(z))
cosine_ppf = quantile("cosine", _cosine_density, function=special._ufuncs._cosine_invcdf)


def _power_series_rest(k, p):
    """Return the terms p**j / j of -log1p(-p) for j > k, an incomplete beta function."""
    tiny, k = 1e-100, np.asarray(k, float)  # tiny is 0 in single precision
    return (special.betainc(k + 1, tiny, p) * special.beta(k + 1, tiny)).astype(np.result_type(p))


power_series_rest = elementwise(
    "ScipyStatsPowerSeriesRest", _power_series_rest, None,
    lambda y, k, p: np.power(p, k) / (1 - p))

# ---- sums of uniform variables


def _of_spline(function, beyond):
    """Return a function of x and the number n of variables, of the spline which is the density."""
    def forward(x, n):
        x, n = np.broadcast_arrays(np.asarray(x, float), n)
        found = np.where(x > n, beyond, 0 * x)
        for count in np.unique(n[(x > 0) & (x <= n)]):
            at = (x > 0) & (x <= n) & (n == count)
            found[at] = function(BSpline.basis_element(np.arange(count + 1)))(x[at])
        return found

    return forward


irwinhall_pdf = elementwise(
    "ScipyStatsIrwinhallPdf", _of_spline(lambda spline: spline, 0),
    lambda y, x, n: irwinhall_pdf(x, n - 1) - irwinhall_pdf(x - 1, n - 1), None)
irwinhall_cdf = elementwise(
    "ScipyStatsIrwinhallCdf", _of_spline(lambda spline: spline.antiderivative(), 1),
    lambda y, x, n: irwinhall_pdf(x, n), None)
