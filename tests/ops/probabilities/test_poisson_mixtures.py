"""Poisson mixtures: logarithms where probabilities underflow, and values without noncentrality."""

import numpy as np
import pytest

import cytape

special = pytest.importorskip("scipy.special")

from cytape.ops.probabilities import poisson_mixtures as mixtures  # noqa: E402


def test_wide_mixtures_and_tails():
    for x, df, nc in ((6700.0, 1.4, 6600.0), (5.0, 3.0, 1.5), (30.0, 900.0, 1e-3)):
        found = [np.exp(f(x, df, nc)) for f in (mixtures.log_chi_below, mixtures.log_chi_above)]
        np.testing.assert_allclose(found[0], special.chndtr(x, df, nc), 1e-11)
        np.testing.assert_allclose(sum(found), 1, 1e-11)
    # by mpmath
    np.testing.assert_allclose(mixtures.log_chi_above(3000.0, 3.0, 2.0), -1424.7796951852199, 1e-12)


def test_slopes_where_nc_is_zero():
    slope = cytape.grad(mixtures.log_chi_below, argnums=2)(3.0, 4.0, 0.0)
    below = [special.chdtr(df, 3.0) for df in (4.0, 6.0)]
    np.testing.assert_allclose(slope, 0.5 * (below[1] / below[0] - 1), 1e-12)
