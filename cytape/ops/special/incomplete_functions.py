"""Incomplete gamma and beta functions, Student's t, and their inverses (DLMF 8).

Derivatives in shape parameters are integrals over a tail of the distribution, by quadrature
(`special_kernels.incomplete_integrals`); they have no third derivatives. Inverse functions have the
derivatives of implicit functions. Functions that end in `_in_a` and the like are derivatives; those
of the beta function take odds z = x / (1 - x), which are precise at both ends.
"""

import numpy as np

import cytape.ops.special_kernels.incomplete_integrals as kernels
import cytape.ops.special_kernels.special_ufuncs as special
import cytape.ops.special_kernels.stirling as stirling
import cytape.ops.special_kernels.t_integrals as t_integrals
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.digamma_functions import polygamma, psi
from cytape.ops.special.elementary_functions import inside
from cytape.ops.special.error_functions import t_log_density
from cytape.ops.special.shape_parameters import no_partial

__all__ = [
    "betainc", "betaincc", "betainccinv", "betaincinv", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "stdtr", "stdtrit"]


def no_third(function, argument):
    return no_partial(function, argument, "third derivative")


def _gamma_density_in_x(y, a, x):
    """Differentiate the density; at 0 by densities of lower shape, which give the limit."""
    at_0 = x == 0
    shape, zero = np.where(at_0, a, 2), np.where(at_0, x, 1)
    inner = np.where(at_0 | (x == np.inf), 1, x)  # the density is 0 at infinity
    return np.where(
        at_0, gamma_density(shape - 1, zero) - gamma_density(shape, zero),
        y * (a - 1 - inner) / inner)


gamma_density = elementwise(
    "ScipyGammaDensity", stirling.gamma_density,
    lambda y, a, x: times_score(y, a, x),
    _gamma_density_in_x)


def negative(slopes):
    """Return the negative of each array."""
    return [-slope for slope in slopes]


def times_score(density, a, x, factor=lambda score: score):
    """Multiply a density by its score in a, or by a function of it; 0 where the density is 0."""
    is_0 = density == 0
    return density * np.where(is_0, 0, factor(np.log(np.where(is_0, 1, x)) - psi(a)))


gammainc_in_aa = elementwise(
    "ScipyGammaincInAa", kernels.gammainc_aa, no_third("gammainc", "a"),
    lambda y, a, x: times_score(
        gamma_density(a, x), a, x, lambda score: score**2 - polygamma(1, a)))
gammainc_in_a = elementwise(
    "ScipyGammaincInA", kernels.gammainc_a, lambda y, a, x: gammainc_in_aa(a, x),
    lambda y, a, x: times_score(gamma_density(a, x), a, x))
gammainc = elementwise(
    "ScipyGammainc", special.gammainc, lambda y, a, x: gammainc_in_a(a, x),
    lambda y, a, x: gamma_density(a, x), together=lambda y, *given: kernels.gammainc_slopes(*given))
gammaincc = elementwise(
    "ScipyGammaincc", special.gammaincc, lambda y, a, x: -gammainc_in_a(a, x),
    lambda y, a, x: -gamma_density(a, x),
    together=lambda y, *given: negative(kernels.gammainc_slopes(*given)))


def _gammaincinv_in_a(y, a, p):
    is_0 = y == 0
    inner = np.where(is_0, 1, y)
    return np.where(is_0, 0, -gammainc_in_a(a, inner) / gamma_density(a, inner))


gammaincinv = elementwise(
    "ScipyGammaincinv", special.gammaincinv, _gammaincinv_in_a,
    lambda y, a, p: 1 / gamma_density(a, y))
gammainccinv = elementwise(
    "ScipyGammainccinv", special.gammainccinv, _gammaincinv_in_a,
    lambda y, a, p: -1 / gamma_density(a, y))


def odds(x):
    """Return x / (1 - x)."""
    at_1 = x == 1
    return np.where(at_1, np.inf, x / np.where(at_1, 1, 1 - x))


def beta_scores(density, a, b, z):
    """Return log(x) + psi(a + b) - psi(a), log(1 - x) + psi(a + b) - psi(b) for odds z.

    They are the derivatives of the log density in a and b, and finite where the density is 0.
    """
    inner, both = np.where(density == 0, 1, z), psi(a + b)
    return both - psi(a) - np.log1p(1 / inner), both - psi(b) - np.log1p(inner)


def beta_density_in_x(y, a, b, x):
    """Differentiate the density; at 0 and 1 by densities of lower shape, which give the limit."""
    at_end = (x == 0) | (x == 1)
    a_end, b_end, end = np.where(at_end, a, 2), np.where(at_end, b, 2), np.where(at_end, x, 0.5)
    inner = np.where(at_end, 0.5, x)
    return np.where(
        at_end,
        (a + b - 1) * (beta_density(a_end - 1, b_end, end) - beta_density(a_end, b_end - 1, end)),
        y * ((a - 1) / inner - (b - 1) / (1 - inner)))


beta_density = elementwise(
    "ScipyBetaDensity", stirling.beta_density,
    lambda y, a, b, x: y * np.where(y == 0, 0, beta_scores(y, a, b, odds(x))[0]),
    lambda y, a, b, x: y * np.where(y == 0, 0, beta_scores(y, a, b, odds(x))[1]), beta_density_in_x)


def _odds_density_in_z(y, a, b, z):
    at_0 = z == 0
    shape, zero, inner = np.where(at_0, a, 2), np.where(at_0, z, 1), np.where(at_0, 1, z)
    return np.where(
        at_0, b * (odds_density(shape - 1, b + 1, zero) - odds_density(shape, b + 1, zero)),
        y * ((a - 1) / inner - (a + b) / (1 + inner)))


odds_density = elementwise(
    "ScipyOddsDensity", stirling.odds_density,
    lambda y, a, b, z: y * np.where(y == 0, 0, beta_scores(y, a, b, z)[0]),
    lambda y, a, b, z: y * np.where(y == 0, 0, beta_scores(y, a, b, z)[1]), _odds_density_in_z)


def _in_shape(i, density, a, b, z):
    """Differentiate the density of x, or of its odds z, in one of the shapes."""
    return density * beta_scores(density, a, b, z)[i]


def _second(name, kernel, first, second, shapes):
    """Declare a second derivative of `betainc`, in two shapes, of scores at these positions."""

    def in_z(y, a, b, z):
        density, both = odds_density(a, b, z), polygamma(1, a + b)
        scores = beta_scores(density, a, b, z)
        slope = both - polygamma(1, shapes(a, b)) if shapes else both
        return density * (scores[first] * scores[second] + slope)

    refusals = [no_third("betainc", x) for x in "ab"]
    return elementwise(name, kernel, *refusals, in_z)


betainc_in_aa = _second("ScipyBetaincInAa", kernels.betainc_aa, 0, 0, lambda a, b: a)
betainc_in_ab = _second("ScipyBetaincInAb", kernels.betainc_ab, 0, 1, None)
betainc_in_bb = _second("ScipyBetaincInBb", kernels.betainc_bb, 1, 1, lambda a, b: b)
betainc_in_a = elementwise(
    "ScipyBetaincInA", kernels.betainc_a, lambda y, a, b, z: betainc_in_aa(a, b, z),
    lambda y, a, b, z: betainc_in_ab(a, b, z),
    lambda y, *given: _in_shape(0, odds_density(*given), *given))
betainc_in_b = elementwise(
    "ScipyBetaincInB", kernels.betainc_b, lambda y, a, b, z: betainc_in_ab(a, b, z),
    lambda y, a, b, z: betainc_in_bb(a, b, z),
    lambda y, *given: _in_shape(1, odds_density(*given), *given))


betainc_less_in_b = elementwise(
    "ScipyBetaincLessInB", t_integrals.betainc_less_b,
    lambda y, a, b, z: betainc_in_ab(a, b, z) - z / b * _in_shape(
        0, odds_density(a, b, z), a, b, z),
    lambda y, a, b, z: betainc_in_bb(a, b, z) - z / b * (
        _in_shape(1, odds_density(a, b, z), a, b, z) - odds_density(a, b, z) / b),
    lambda y, a, b, z: _in_shape(1, odds_density(a, b, z), a, b, z) + (
        (a + b) * z / (1 + z) - a) / b * odds_density(a, b, z))


def _of_x(name, in_shape, i, *seconds):
    """Declare a derivative in a shape as a function of x, as infinite odds have no derivatives."""
    return elementwise(
        name, lambda a, b, x: in_shape.forward(a, b, odds(x)),
        *[lambda y, a, b, x, f=f: f(a, b, odds(x)) for f in seconds],
        lambda y, a, b, x: _in_shape(i, beta_density(a, b, x), a, b, odds(x)))


betainc_in_a_of_x = _of_x("ScipyBetaincInAOfX", betainc_in_a, 0, betainc_in_aa, betainc_in_ab)
betainc_in_b_of_x = _of_x("ScipyBetaincInBOfX", betainc_in_b, 1, betainc_in_ab, betainc_in_bb)
betainc = elementwise(
    "ScipyBetainc", special.betainc, lambda y, a, b, x: betainc_in_a_of_x(a, b, x),
    lambda y, a, b, x: betainc_in_b_of_x(a, b, x),
    lambda y, a, b, x: inside(y == y, beta_density(a, b, x)),
    together=lambda y, *given: kernels.betainc_slopes(*given))
betaincc = elementwise(
    "ScipyBetaincc", special.betaincc, lambda y, a, b, x: -betainc_in_a_of_x(a, b, x),
    lambda y, a, b, x: -betainc_in_b_of_x(a, b, x),
    lambda y, a, b, x: inside(y == y, -beta_density(a, b, x)),
    together=lambda y, *given: negative(kernels.betainc_slopes(*given)))
betaincinv = elementwise(
    "ScipyBetaincinv", special.betaincinv,
    lambda y, a, b, p: -betainc_in_a_of_x(a, b, y) / beta_density(a, b, y),
    lambda y, a, b, p: -betainc_in_b_of_x(a, b, y) / beta_density(a, b, y),
    lambda y, a, b, p: 1 / beta_density(a, b, y))
betainccinv = elementwise(
    "ScipyBetainccinv", special.betainccinv,
    lambda y, a, b, p: -betainc_in_a_of_x(a, b, y) / beta_density(a, b, y),
    lambda y, a, b, p: -betainc_in_b_of_x(a, b, y) / beta_density(a, b, y),
    lambda y, a, b, p: -1 / beta_density(a, b, y))


t_density_in_df = elementwise(
    "ScipyTDensityInDf", t_integrals.t_density_in_df, *2 * [no_third("stdtr", "df")])
stdtr_in_dfdf = elementwise(
    "ScipyStdtrInDfdf", t_integrals.stdtr_dfdf, *2 * [no_third("stdtr", "df")])
stdtr_in_df = elementwise(
    "ScipyStdtrInDf", t_integrals.stdtr_df, lambda y, df, t: stdtr_in_dfdf(df, t),
    lambda y, df, t: t_density_in_df(df, t))


def _t_density(t, df):
    """Return the density of Student's t, with derivatives of 0 at infinity."""
    is_end = np.isinf(t)
    return np.where(is_end, 0, np.exp(t_log_density(np.where(is_end, 0, t), df)))


stdtr = elementwise(
    "ScipyStdtr", special.stdtr, lambda y, df, t: stdtr_in_df(df, t),
    lambda y, df, t: _t_density(t, df), together=lambda y, *given: t_integrals.stdtr_slopes(*given))
stdtrit = elementwise(
    "ScipyStdtrit", special.stdtrit,
    lambda y, df, p: -stdtr_in_df(df, y) * np.exp(-t_log_density(y, df)),
    lambda y, df, p: np.exp(-t_log_density(y, df)))
