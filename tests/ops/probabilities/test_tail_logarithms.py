"""Kernels of logarithms of tails: equal to the ordinary formulas where both apply, no warnings."""

import numpy as np

from cytape.ops.probabilities import tail_logarithms as kernels
from cytape.ops.special_kernels import incomplete_integrals, stirling, t_integrals
from tests.cases import each


@each("of_tail, derivative, shapes", [
    (kernels.gamma_a, incomplete_integrals.gammainc_a, (2.5, 80.0)),
    (kernels.gamma_aa, incomplete_integrals.gammainc_aa, (300.0, 90.0)),
    (kernels.beta_a, incomplete_integrals.betainc_a, (300.0, 200.0, 0.3)),
    (kernels.beta_b, incomplete_integrals.betainc_b, (30.0, 20.0, 400.0)),
    (kernels.beta_ab, incomplete_integrals.betainc_ab, (30.0, 20.0, 400.0)),
    (kernels.beta_z, stirling.odds_density, (300.0, 200.0, 0.3)),
    (kernels.t_df, t_integrals.stdtr_df, (90.0, 40.0)),
    (kernels.t_dfdf, t_integrals.stdtr_dfdf, (9.0, -1e5))])
def test_tails_and_ordinary_formulas_have_the_same_ratios(of_tail, derivative, shapes):
    # A probability of 1 gives the derivative itself, the tail gives ratios to the true one.
    ratio = of_tail(*shapes, -1e3)
    np.testing.assert_allclose(of_tail(*shapes, 0.0), derivative(*shapes), 1e-14)
    density = {"g": kernels.gamma_x, "b": kernels.beta_z, "t": kernels.t_t}[of_tail.__name__[0]]
    expected = derivative(*shapes) / density(*shapes, 0.0)
    np.testing.assert_allclose(ratio / density(*shapes, -1e3), expected, 1e-11)


def test_no_argument_warns():
    with np.errstate(all="raise", over="ignore", under="ignore"):
        for x in (0.0, 1.0, np.inf, 1e-300, 1e300, np.nan):
            for p in (0.0, 1.0, np.nan) if x == x else (np.nan,):
                a, log_p = [0.5, 200.0, np.nan if p != p else 1.0], -80.0 if p == 0 else 0 * p
                kernels.gamma_a(a, x, log_p)
                kernels.beta_a(a, 0.7, x, log_p)
                kernels.t_df(a, x, log_p)
                kernels.log_gamma(a, x, p, 1 - p)
                kernels.log_beta(a, 0.7, x, p, 1 - p)
                kernels.log_t(a, x, p, 1 - p)
