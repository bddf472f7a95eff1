"""Distribution functions of `scipy.special` by other parameters, and their inverses.

They are those of `incomplete_functions`: chi-squared (`chdtr`), gamma (`gdtr`), F (`fdtr`), Poisson
(`pdtr`), binomial (`bdtr`) and negative binomial (`nbdtr`). An inverse function has the derivatives
of an implicit one: those of y in F(y; a) = p are 1 / density in p and -F_a / density in a.
"""

import math

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.bessel_functions import log_ive
from cytape.ops.special.elementary_functions import inside
from cytape.ops.special.error_functions import ndtri, quantile_slope
from cytape.ops.special.gamma_functions import betaln, gammaln, xlogy
from cytape.ops.special.gamma_products import poch
from cytape.ops.special.hypergeometric_functions import hyp1f1
from cytape.ops.special.incomplete_functions import (
    beta_density,
    betainc_in_a,
    betainc_in_b,
    betainc_less_in_b,
    betainccinv,
    gamma_density,
    gammainc_in_a,
    negative,
    odds,
    odds_density,
    stdtr_in_df,
    t_log_density,
)
from cytape.ops.special.shape_parameters import no_partial
from cytape.ops.special_kernels.incomplete_integrals import gammainc_slopes, odds_slopes
from cytape.ops.special_kernels.noncentral_sums import log_chi_moment, noncentral_densities
from cytape.ops.special_kernels.t_integrals import f_slopes

__all__ = [
    "bdtr", "bdtrc", "bdtri", "bdtrik", "bdtrin", "btdtria", "btdtrib", "chdtr", "chdtrc",
    "chdtri", "chdtriv", "chndtr", "chndtridf", "chndtrinc", "chndtrix", "fdtr", "fdtrc", "fdtri",
    "fdtridfd", "gdtr", "gdtrc", "gdtria", "gdtrib", "gdtrix", "nbdtr", "nbdtrc", "nbdtri",
    "nbdtrik", "nbdtrin", "ncfdtr", "ncfdtri", "ncfdtridfd", "ncfdtridfn", "ncfdtrinc", "nctdtr",
    "nctdtridf", "nctdtrinc", "nctdtrit", "nrdtrimn", "nrdtrisd", "pdtr", "pdtrc", "pdtri",
    "pdtrik", "stdtridf"]


def _of_integers(function):
    """Return a binomial function that converts n to integers; SciPy warns of numbers of floats."""

    def converting(k, n, p):
        whole = np.asarray(n).astype(np.int64, casting="unsafe")
        return function(k, whole if np.all(whole == n) else n, p)

    converting.__doc__ = function.__doc__
    return converting


# Ends of SciPy's search, which it returns where a parameter has no solution.
_SEARCHED = {
    "chndtrinc": (1e-300, np.inf), "fdtridfd": (1e-100, 1e100), "ncfdtrinc": (0, np.inf),
    "stdtridf": (1e-100, 1e10)}


def _if_found(name, partial):
    """Return a partial derivative that is NaN at the ends of the search, or where the value is."""
    low, high = _SEARCHED.get(name, (-np.inf, np.inf))
    return lambda y, *xs: inside((y > low) & (y < high), partial(y, *xs))


def _where_defined(together):
    """Return a function for all partials, of arrays, that are NaN where the value is."""
    def slopes(y, *xs):
        found, is_number = together(y, *xs), y == y
        return found if np.all(is_number) else [
            slope if callable(slope) else np.where(is_number, slope, np.nan) for slope in found]

    return together and slopes


def _families(declared, convert=lambda function: function, together=None):
    """Declare ops; a partial is an expression of the output and inputs, or a refused argument.

    `together` has, by name, functions of the output and inputs that return all partials.
    """
    return [
        elementwise(
            "Scipy" + name.capitalize(), convert(getattr(special, name)),
            *[no_partial(name, x) if isinstance(x, str) else x and _if_found(name, x)
              for x in partials],
            together=_where_defined((together or {}).get(name)))
        for name, partials in declared.items()]


# ---- chi-squared and gamma


def _chi_a(v, x):
    return 0.5 * gammainc_in_a(0.5 * v, 0.5 * x)


def _chi_x(v, x):
    return 0.5 * gamma_density(0.5 * v, 0.5 * x)


def _chi_slopes(y, v, x):
    return [0.5 * slope for slope in gammainc_slopes(0.5 * v, 0.5 * x)]


def _gamma_slopes(y, a, b, x):
    in_b, density = gammainc_slopes(b, a * x)
    return x * density, in_b, a * density


chdtr, chdtrc, chdtri, chdtriv, gdtr, gdtrc, gdtrix, gdtria, gdtrib = _families({
    "chdtr": (lambda y, v, x: _chi_a(v, x), lambda y, v, x: _chi_x(v, x)),
    "chdtrc": (lambda y, v, x: -_chi_a(v, x), lambda y, v, x: -_chi_x(v, x)),
    "chdtri": (lambda x, v, p: -_chi_a(v, x) / _chi_x(v, x), lambda x, v, p: -1 / _chi_x(v, x)),
    "chdtriv": (lambda v, p, x: 1 / _chi_a(v, x), lambda v, p, x: -_chi_x(v, x) / _chi_a(v, x)),
    "gdtr": (
        lambda y, a, b, x: x * gamma_density(b, a * x),
        lambda y, a, b, x: gammainc_in_a(b, a * x), lambda y, a, b, x: a * gamma_density(b, a * x)),
    "gdtrc": (
        lambda y, a, b, x: -x * gamma_density(b, a * x),
        lambda y, a, b, x: -gammainc_in_a(b, a * x),
        lambda y, a, b, x: -a * gamma_density(b, a * x)),
    "gdtrix": (
        lambda x, a, b, p: -x / a,
        lambda x, a, b, p: -gammainc_in_a(b, a * x) / (a * gamma_density(b, a * x)),
        lambda x, a, b, p: 1 / (a * gamma_density(b, a * x))),
    "gdtria": (
        lambda a, p, b, x: 1 / (x * gamma_density(b, a * x)),
        lambda a, p, b, x: -gammainc_in_a(b, a * x) / (x * gamma_density(b, a * x)),
        lambda a, p, b, x: -a / x),
    "gdtrib": (
        lambda b, a, p, x: -x * gamma_density(b, a * x) / gammainc_in_a(b, a * x),
        lambda b, a, p, x: 1 / gammainc_in_a(b, a * x),
        lambda b, a, p, x: -a * gamma_density(b, a * x) / gammainc_in_a(b, a * x)),
}, together={
    "chdtr": _chi_slopes, "chdtrc": lambda *given: negative(_chi_slopes(*given)),
    "gdtr": _gamma_slopes, "gdtrc": lambda *given: negative(_gamma_slopes(*given))})


def noncentral_log_density(x, df, nc):
    """Return the logarithm of the density; at nc = 0 by the series, to the second order."""
    is_central = nc == 0
    first, second = x / df, x * x / (df * (df + 2))
    n, order = np.where(is_central, 1, nc), 0.5 * df - 1
    root = np.sqrt(x) - np.sqrt(n)
    return np.where(
        is_central,
        xlogy(order, 0.5 * x) - 0.5 * x - gammaln(0.5 * df) - math.log(2)
        + 0.5 * nc * (first - 1) + 0.125 * nc * nc * (second - first * first),
        xlogy(0.5 * order, x / n) - 0.5 * root * root - math.log(2)
        + log_ive(order, np.sqrt(x * n)))


def noncentral_density(x, df, nc):
    """Return the density of the noncentral chi-squared distribution."""
    return np.exp(noncentral_log_density(x, df, nc))


def _noncentral_nc(x, df, nc):
    return -noncentral_density(x, df + 2, nc)


def _noncentral_slopes(y, x, df, nc):
    density, raised = noncentral_densities(x, df, nc)
    return density, no_partial("chndtr", "df")(), -raised


chndtr, chndtrix, chndtrinc = _families({
    "chndtr": (lambda y, x, df, nc: noncentral_density(x, df, nc), "df",
               lambda y, x, df, nc: _noncentral_nc(x, df, nc)),
    "chndtrix": (
        lambda x, p, df, nc: 1 / noncentral_density(x, df, nc), "df",
        lambda x, p, df, nc: -_noncentral_nc(x, df, nc) / noncentral_density(x, df, nc)),
    "chndtrinc": (
        lambda nc, x, df, p: -noncentral_density(x, df, nc) / _noncentral_nc(x, df, nc), "df",
        lambda nc, x, df, p: 1 / _noncentral_nc(x, df, nc)),
}, together={"chndtr": _noncentral_slopes})

# ---- beta and F: odds n x / d of a beta variable with the shapes n / 2 and d / 2


def _f_n(n, d, x):
    return -0.5 * betainc_less_in_b(0.5 * d, 0.5 * n, d / (n * x))


def _f_d(n, d, x):
    return 0.5 * betainc_less_in_b(0.5 * n, 0.5 * d, n * x / d)


def _f_x(n, d, x):
    return n / d * odds_density(0.5 * n, 0.5 * d, n * x / d)


btdtria, btdtrib, fdtr, fdtrc, fdtri, fdtridfd = _families({
    "btdtria": (
        lambda a, p, b, x: 1 / betainc_in_a(a, b, odds(x)),
        lambda a, p, b, x: -betainc_in_b(a, b, odds(x)) / betainc_in_a(a, b, odds(x)),
        lambda a, p, b, x: -beta_density(a, b, x) / betainc_in_a(a, b, odds(x))),
    "btdtrib": (
        lambda b, a, p, x: -betainc_in_a(a, b, odds(x)) / betainc_in_b(a, b, odds(x)),
        lambda b, a, p, x: 1 / betainc_in_b(a, b, odds(x)),
        lambda b, a, p, x: -beta_density(a, b, x) / betainc_in_b(a, b, odds(x))),
    "fdtr": (
        lambda y, n, d, x: _f_n(n, d, x), lambda y, n, d, x: _f_d(n, d, x),
        lambda y, n, d, x: _f_x(n, d, x)),
    "fdtrc": (
        lambda y, n, d, x: -_f_n(n, d, x), lambda y, n, d, x: -_f_d(n, d, x),
        lambda y, n, d, x: -_f_x(n, d, x)),
    "fdtri": (
        lambda x, n, d, p: -_f_n(n, d, x) / _f_x(n, d, x),
        lambda x, n, d, p: -_f_d(n, d, x) / _f_x(n, d, x), lambda x, n, d, p: 1 / _f_x(n, d, x)),
    "fdtridfd": (
        lambda d, n, p, x: -_f_n(n, d, x) / _f_d(n, d, x), lambda d, n, p, x: 1 / _f_d(n, d, x),
        lambda d, n, p, x: -_f_x(n, d, x) / _f_d(n, d, x)),
}, together={
    "fdtr": lambda y, *given: f_slopes(*given),
    "fdtrc": lambda y, *given: negative(f_slopes(*given))})

# ---- counts: k or fewer successes; SciPy takes the integer part of k and n


def _binomial_k(k, n, p):
    """Differentiate `bdtr`, which is 1 - betainc(k + 1, n - k, p), in real k."""
    return betainc_in_b(k + 1, n - k, odds(p)) - betainc_in_a(k + 1, n - k, odds(p))


def _binomial_n(k, n, p):
    return -betainc_in_b(k + 1, n - k, odds(p))


def _binomial_p(k, n, p):
    is_all = k == n  # of probability 1
    return np.where(is_all, 0, -beta_density(k + 1, np.where(is_all, 1, n - k), p))


def _binomial_quantile_slope(k, n, y):
    """Differentiate the inverse, whose value by SciPy is not precise for small y."""
    return 1 / _binomial_p(k, n, betainccinv(k + 1, n - k, y))


def _unless_cut(k, slope):
    """Return the slope of an inverse; 0 where SciPy returns 0 for a negative count."""
    return np.where(k == 0, 0, slope)


def _bdtrik_slopes(k, y, n, p):
    in_a, in_b, _ = odds_slopes(np.where(k == 0, np.nan, k + 1), n - k, odds(p))
    in_k = in_b - in_a
    return [_unless_cut(k, slope / in_k) for slope in (1, in_b, -_binomial_p(k, n, p))]


def _negative_k(k, n, p):
    return betainc_in_b(n, k + 1, odds(p))


def _negative_n(k, n, p):
    return betainc_in_a(n, k + 1, odds(p))


def _negative_p(k, n, p):
    return beta_density(n, k + 1, p)


bdtr, bdtrc, bdtri = _families({
    "bdtr": (None, "n", lambda y, k, n, p: _binomial_p(np.floor(k), np.trunc(n), p)),
    "bdtrc": (None, "n", lambda y, k, n, p: -_binomial_p(np.floor(k), np.trunc(n), p)),
    "bdtri": (None, "n", lambda p, k, n, y: _binomial_quantile_slope(np.floor(k), np.trunc(n), y)),
}, _of_integers)
(
    pdtr, pdtrc, pdtri, pdtrik, bdtrik, bdtrin, nbdtr, nbdtrc, nbdtri, nbdtrik, nbdtrin,
) = _families({
    "pdtr": (None, lambda y, k, m: -gamma_density(np.floor(k) + 1, m)),
    "pdtrc": (None, lambda y, k, m: gamma_density(np.floor(k) + 1, m)),
    "pdtri": (None, lambda m, k, p: -1 / gamma_density(np.floor(k) + 1, m)),
    "pdtrik": (
        lambda k, p, m: _unless_cut(k, -1 / gammainc_in_a(k + 1, m)),
        lambda k, p, m: _unless_cut(k, -gamma_density(k + 1, m) / gammainc_in_a(k + 1, m))),
    "bdtrik": (
        lambda k, y, n, p: _unless_cut(k, 1 / _binomial_k(k, n, p)),
        lambda k, y, n, p: _unless_cut(k, -_binomial_n(k, n, p) / _binomial_k(k, n, p)),
        lambda k, y, n, p: _unless_cut(k, -_binomial_p(k, n, p) / _binomial_k(k, n, p))),
    "bdtrin": (
        lambda n, k, y, p: -_binomial_k(k, n, p) / _binomial_n(k, n, p),
        lambda n, k, y, p: 1 / _binomial_n(k, n, p),
        lambda n, k, y, p: -_binomial_p(k, n, p) / _binomial_n(k, n, p)),
    "nbdtr": ("k", "n", lambda y, k, n, p: _negative_p(np.trunc(k), np.trunc(n), p)),
    "nbdtrc": ("k", "n", lambda y, k, n, p: -_negative_p(np.trunc(k), np.trunc(n), p)),
    "nbdtri": ("k", "n", lambda p, k, n, y: 1 / _negative_p(np.trunc(k), np.trunc(n), p)),
    "nbdtrik": (
        lambda k, y, n, p: _unless_cut(k, 1 / _negative_k(k, n, p)),
        lambda k, y, n, p: _unless_cut(k, -_negative_n(k, n, p) / _negative_k(k, n, p)),
        lambda k, y, n, p: _unless_cut(k, -_negative_p(k, n, p) / _negative_k(k, n, p))),
    "nbdtrin": (
        lambda n, k, y, p: -_negative_k(k, n, p) / _negative_n(k, n, p),
        lambda n, k, y, p: 1 / _negative_n(k, n, p),
        lambda n, k, y, p: -_negative_p(k, n, p) / _negative_n(k, n, p)),
}, together={"bdtrik": _bdtrik_slopes})

# ---- normal and t


nrdtrimn, nrdtrisd, stdtridf = _families({
    "nrdtrimn": (
        lambda m, p, s, x: -s * quantile_slope(ndtri(p)), lambda m, p, s, x: -ndtri(p),
        lambda m, p, s, x: 1),
    "nrdtrisd": (
        lambda s, m, p, x: s / (m - x),
        lambda s, m, p, x: -s * s / (x - m) * quantile_slope((x - m) / s),
        lambda s, m, p, x: s / (x - m)),
    "stdtridf": (
        lambda df, p, t: 1 / stdtr_in_df(df, t),
        lambda df, p, t: -np.exp(t_log_density(t, df)) / stdtr_in_df(df, t)),
})

# ---- noncentral t, of a normal variable over a chi variable s, and noncentral F

_ROOT_2PI = math.sqrt(2 * math.pi)


_log_chi_moment = elementwise(
    "ScipyLogChiMoment", log_chi_moment, no_partial("nctdtr", "df"),
    lambda y, n, t: np.sqrt(2) * poch(0.5 * n, 0.5) * np.exp(_log_chi_moment(n + 1, t) - y))


def _nct_exponent(n, df, nc, t):
    """Return the logarithm of the mean of exp(nc t s), where s has n degrees of freedom."""
    return _log_chi_moment(n, nc * t / np.sqrt(df + t * t)) - 0.5 * nc * nc


def _nct_t(df, nc, t):
    return np.exp(t_log_density(t, df) + _nct_exponent(df + 1, df, nc, t))


def _nct_nc(df, nc, t):
    return -np.exp(_nct_exponent(df, df, nc, t) - 0.5 * df * np.log1p(t * t / df)) / _ROOT_2PI


def _ncf_weight(dfn, dfd, nc, f, power):
    """Return a, a + b, z / (1 + z) of the odds z, and the log of a density times z**power."""
    a, z = 0.5 * dfn, dfn * f / dfd
    total = a + 0.5 * dfd
    return a, total, z / (1 + z), (
        xlogy(a - 1 + power, z) - total * np.log1p(z) - betaln(a, 0.5 * dfd) - 0.5 * nc)


def ncf_log_density(f, dfn, dfd, nc):
    a, total, x, log_weight = _ncf_weight(dfn, dfd, nc, f, 0)
    return log_weight + np.log(dfn / dfd) + np.log(hyp1f1(total, a, 0.5 * nc * x))


def ncf_density(dfn, dfd, nc, f):
    a, total, x, log_weight = _ncf_weight(dfn, dfd, nc, f, 0)
    return np.exp(log_weight) * dfn / dfd * hyp1f1(total, a, 0.5 * nc * x)


def ncf_in_nc(dfn, dfd, nc, f):
    a, total, x, log_weight = _ncf_weight(dfn, dfd, nc, f, 1)
    return -0.5 * np.exp(log_weight) / a * hyp1f1(total, a + 1, 0.5 * nc * x)


(
    nctdtr, nctdtrit, nctdtrinc, nctdtridf, ncfdtr, ncfdtri, ncfdtrinc, ncfdtridfd, ncfdtridfn,
    chndtridf,
) = _families({
    "nctdtr": (
        "df", lambda y, df, nc, t: _nct_nc(df, nc, t), lambda y, df, nc, t: _nct_t(df, nc, t)),
    "nctdtrit": (
        "df", lambda t, df, nc, p: -_nct_nc(df, nc, t) / _nct_t(df, nc, t),
        lambda t, df, nc, p: 1 / _nct_t(df, nc, t)),
    "nctdtrinc": (
        "df", lambda nc, df, p, t: 1 / _nct_nc(df, nc, t),
        lambda nc, df, p, t: -_nct_t(df, nc, t) / _nct_nc(df, nc, t)),
    "nctdtridf": ("p", "nc", "t"),
    "ncfdtr": (
        "dfn", "dfd", lambda y, m, n, nc, f: ncf_in_nc(m, n, nc, f),
        lambda y, m, n, nc, f: ncf_density(m, n, nc, f)),
    "ncfdtri": (
        "dfn", "dfd", lambda f, m, n, nc, p: -ncf_in_nc(m, n, nc, f) / ncf_density(m, n, nc, f),
        lambda f, m, n, nc, p: 1 / ncf_density(m, n, nc, f)),
    "ncfdtrinc": (
        "dfn", "dfd", lambda nc, m, n, p, f: 1 / ncf_in_nc(m, n, nc, f),
        lambda nc, m, n, p, f: -ncf_density(m, n, nc, f) / ncf_in_nc(m, n, nc, f)),
    "ncfdtridfd": ("dfn", "p", "nc", "f"), "ncfdtridfn": ("p", "dfd", "nc", "f"),
    "chndtridf": ("x", "p", "nc"),
})
