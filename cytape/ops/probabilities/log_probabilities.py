"""Logarithms of incomplete gamma, beta and normal functions and of Student's t, finite in tails.

The derivatives of log(P) are those of P over P. They are ops of the operands and of log(P) itself,
``P_a(a, x) * exp(-log(P))``, in tails by integrals that do not underflow
(`tail_logarithms`); the same op serves P and its complement. Shapes have no third
derivatives.
"""

import numpy as np

import cytape.ops.probabilities.tail_logarithms as kernels
import cytape.ops.special_kernels.special_ufuncs as special
import cytape.ops.special_kernels.t_integrals as t_integrals
from cytape.ops.elementwise import exp, expm1, log, log1p, minimum, where
from cytape.ops.engine.op_kinds import elementwise
from cytape.ops.special.digamma_functions import polygamma
from cytape.ops.special.elementary_functions import exprel
from cytape.ops.special.incomplete_functions import (
    beta_density,
    beta_density_in_x,
    beta_scores,
    betainc_in_a,
    betainc_in_b,
    no_third,
    odds,
    times_score,
)


def _minus(y, *_):
    """Differentiate a multiple of exp(-log(P)) in log(P)."""
    return -y


def _logarithm(name, kernel, p, q, *partials, **facts):
    """Declare log(p), of two functions that are each other's complements."""
    return elementwise(name, lambda *x: kernel(*x, p(*x), q(*x)), *partials, **facts)


def log_rest(log_p):
    """Return log(1 - exp(log_p)), the logarithm of the complement of a probability."""
    is_large = log_p > -0.7
    large, small = where(is_large, log_p, -1.0), where(is_large, -1.0, log_p)
    with np.errstate(divide="ignore"):
        return where(is_large, log(-expm1(large)), log1p(-exp(small)))


def log_of_hazard(log_v):
    """Return log(1 - exp(-v)), the logarithm of the probability of a cumulative hazard v."""
    is_small = log_v < 0
    small, large = where(is_small, log_v, -1.0), where(is_small, 0.0, log_v)
    return where(
        is_small, small + log(exprel(-exp(small))), log1p(-exp(-exp(minimum(large, 7.0)))))


# ---- gamma

gamma_over = elementwise(
    "ScipyTailGammaOver", kernels.gamma_x, lambda h, a, x, _: times_score(h, a, x),
    lambda h, a, x, _: h * ((a - 1) / x - 1), _minus)
gamma_aa_over = elementwise(
    "ScipyTailGammaAaOver", kernels.gamma_aa, no_third("gammainc", "a"),
    lambda _, a, x, y: times_score(
        gamma_over(a, x, y), a, x, lambda score: score**2 - polygamma(1, a)), _minus)
gamma_a_over = elementwise(
    "ScipyTailGammaAOver", kernels.gamma_a, lambda _, a, x, y: gamma_aa_over(a, x, y),
    lambda _, a, x, y: times_score(gamma_over(a, x, y), a, x), _minus)
log_gammainc = _logarithm(
    "ScipyTailLogGammainc", kernels.log_gamma, special.gammainc, special.gammaincc,
    lambda y, a, x: gamma_a_over(a, x, y), lambda y, a, x: gamma_over(a, x, y))
log_gammaincc = _logarithm(
    "ScipyTailLogGammaincc", kernels.log_gamma, special.gammaincc, special.gammainc,
    lambda y, a, x: -gamma_a_over(a, x, y), lambda y, a, x: -gamma_over(a, x, y))

# ---- beta, of odds z = x / (1 - x)

odds_over = elementwise(
    "ScipyTailOddsOver", kernels.beta_z, lambda h, a, b, z, _: h * beta_scores(h, a, b, z)[0],
    lambda h, a, b, z, _: h * beta_scores(h, a, b, z)[1],
    lambda h, a, b, z, _: h * ((a - 1) / z - (a + b) / (1 + z)), _minus)


def _in_shape(i, a, b, z, y):
    density = odds_over(a, b, z, y)
    return density * beta_scores(density, a, b, z)[i]


def _second(name, kernel, first, second, shapes):
    """Declare a second derivative in two shapes, of scores at these positions."""

    def in_z(_, a, b, z, y):
        density, slope = odds_over(a, b, z, y), polygamma(1, a + b)
        scores = beta_scores(density, a, b, z)
        for shape in shapes(a, b):
            slope = slope - polygamma(1, shape)
        return density * (scores[first] * scores[second] + slope)

    return elementwise(name, kernel, *[no_third("betainc", x) for x in "ab"], in_z, _minus)


beta_aa_over = _second("ScipyTailBetaAaOver", kernels.beta_aa, 0, 0, lambda a, b: [a])
beta_ab_over = _second("ScipyTailBetaAbOver", kernels.beta_ab, 0, 1, lambda a, b: [])
beta_bb_over = _second("ScipyTailBetaBbOver", kernels.beta_bb, 1, 1, lambda a, b: [b])
beta_a_over = elementwise(
    "ScipyTailBetaAOver", kernels.beta_a, lambda _, *given: beta_aa_over(*given),
    lambda _, *given: beta_ab_over(*given),
    lambda _, *given: _in_shape(0, *given), _minus)
beta_b_over = elementwise(
    "ScipyTailBetaBOver", kernels.beta_b, lambda _, *given: beta_ab_over(*given),
    lambda _, *given: beta_bb_over(*given),
    lambda _, *given: _in_shape(1, *given), _minus)


def _density_over_in_x(h, a, b, x, y):
    at_end = (x == 0) | (x == 1)
    return beta_density_in_x(h, a, b, x) * np.exp(-np.where(at_end, y, 0))


density_over = elementwise(
    "ScipyTailDensityOver", kernels.beta_x,
    lambda h, a, b, x, _: h * np.where(h == 0, 0, beta_scores(h, a, b, odds(x))[0]),
    lambda h, a, b, x, _: h * np.where(h == 0, 0, beta_scores(h, a, b, odds(x))[1]),
    _density_over_in_x, _minus)


def _of_odds(function):
    return lambda a, b, z: function(a, b, z / (1 + z))


def _of_rest(function):
    """Return a function of odds by one of the complement, 1 / (1 + z)."""
    return lambda a, b, z: function(b, a, 1 / (1 + z))


def betainc_rest(a, b, x):
    """Return 1 - betainc(a, b, x); `betaincc`, which takes ten times as long, for small x only."""
    is_small = np.asarray(x < 0.1)
    value = np.asarray(special.betainc(b, a, 1 - x))
    return special.betaincc(a, b, x, out=value, where=is_small) if is_small.any() else value


def _slopes(kernel, sign):
    return lambda y, *given: [sign * slope for slope in kernel(*given, y)]


def _log_beta(name, p, q, sign):
    return elementwise(
        name, lambda a, b, x: kernels.log_beta(a, b, odds(x), p(a, b, x), q(a, b, x)),
        lambda y, a, b, x: sign * beta_a_over(a, b, odds(x), y),
        lambda y, a, b, x: sign * beta_b_over(a, b, odds(x), y),
        lambda y, a, b, x: sign * density_over(a, b, x, y),
        together=_slopes(kernels.log_beta_slopes, sign))


def _log_odds(name, p, q, sign):
    return _logarithm(
        name, kernels.log_beta, p, q, lambda y, a, b, z: sign * beta_a_over(a, b, z, y),
        lambda y, a, b, z: sign * beta_b_over(a, b, z, y),
        lambda y, a, b, z: sign * odds_over(a, b, z, y),
        together=_slopes(kernels.log_odds_slopes, sign))


beta_rest = elementwise(
    "ScipyTailBetaRest", betainc_rest, lambda y, a, b, x: -betainc_in_a(a, b, odds(x)),
    lambda y, a, b, x: -betainc_in_b(a, b, odds(x)), lambda y, a, b, x: -beta_density(a, b, x))
log_betainc = _log_beta("ScipyTailLogBetainc", special.betainc, betainc_rest, 1)
log_betaincc = _log_beta("ScipyTailLogBetaincc", betainc_rest, special.betainc, -1)
log_odds = _log_odds("ScipyTailLogOdds", _of_odds(special.betainc), _of_rest(special.betainc), 1)
log_oddsc = _log_odds("ScipyTailLogOddsc", _of_rest(special.betainc), _of_odds(special.betainc), -1)

# ---- Student's t

t_score = elementwise(
    "ScipyTailTScore", t_integrals.t_score_df, *2 * [no_third("stdtr", "df")])
t_over = elementwise(
    "ScipyTailTOver", kernels.t_t, lambda h, df, t, _: h * t_score(df, t),
    lambda h, df, t, _: -h * (1 + 1 / df) * t / (1 + t * t / df), _minus)
t_dfdf_over = elementwise(
    "ScipyTailTDfdfOver", kernels.t_dfdf, *2 * [no_third("stdtr", "df")], _minus)
t_df_over = elementwise(
    "ScipyTailTDfOver", kernels.t_df, lambda _, *given: t_dfdf_over(*given),
    lambda _, df, t, y: t_over(df, t, y) * t_score(df, t), _minus)
log_stdtr = _logarithm(
    "ScipyTailLogStdtr", kernels.log_t, special.stdtr, lambda df, t: special.stdtr(df, -t),
    lambda y, df, t: t_df_over(df, t, y), lambda y, df, t: t_over(df, t, y))

# ---- normal probability of an interval


def _is_narrow(a, width):
    """Return whether the interval is given by an end and its width, as the ends cancel."""
    return width * (1 + np.abs(a)) < 1e-3


def _in_end(a, width):
    """Return the difference of the densities at both ends of a narrow interval over that at a."""
    is_narrow = _is_narrow(a, width)
    a, width = np.where(is_narrow, a, 0), np.where(is_narrow, width, 0)
    return np.where(is_narrow, np.expm1(-width * (a + 0.5 * width)), -1)


mass_slope = elementwise(
    "ScipyTailMassSlope", kernels.mass_slope,
    lambda h, a, b, width: -h * (np.where(h == 0, 0, a) + h * _in_end(a, width)),
    lambda h, a, b, width: np.where(_is_narrow(a, width), 0, -h * mass_slope(-b, -a, width)),
    lambda h, a, b, width: np.where(_is_narrow(a, width), -h * mass_slope(-b, -a, width), 0))
_mass = elementwise(
    "ScipyTailLogMass", kernels.log_mass,
    lambda y, a, b, width: mass_slope(a, b, width) * _in_end(a, width),
    lambda y, a, b, width: np.where(_is_narrow(a, width), 0, mass_slope(-b, -a, width)),
    lambda y, a, b, width: np.where(_is_narrow(a, width), mass_slope(-b, -a, width), 0))


def log_mass(a, b, width=None):
    """Return the logarithm of the normal probability of a < x < b, without cancellation."""
    return _mass(a, b, b - a if width is None else width)
