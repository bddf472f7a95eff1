"""Densities of the noncentral chi-squared distribution, against mpmath's and at the ends."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
densities = pytest.importorskip(
    "cytape.ops.special_kernels.noncentral_sums").noncentral_densities


def density(x, df, nc):
    x, df, nc = mp.mpf(x), mp.mpf(df), mp.mpf(nc)
    return mp.exp(-(x + nc) / 2) * (x / 2)**(df / 2 - 1) / mp.gamma(df / 2) * mp.hyp0f1(
        df / 2, x * nc / 4) / 2


def test_densities():
    rng = np.random.default_rng(0)
    x, df, nc = np.exp(rng.uniform(-7, 8, (3, 60)))
    x[::2] = ((df + nc) * np.exp(0.3 * rng.normal(size=60)))[::2]
    for more, found in zip((0, 2), densities(x, df, nc), strict=True):
        with mp.workdps(40):
            expected = [float(density(*given)) for given in zip(x, df + more, nc, strict=True)]
        np.testing.assert_allclose(found, expected, 1e-11, 1e-290)
    assert densities(np.float32(1), np.float32(2), np.float32(1))[0].dtype == np.float32


def test_ends():
    with np.errstate(all="ignore"):
        found = densities([0, 0, 0, 0, -1, np.nan, 1, 1], [1, 2, 3, 2, 2, 2, -1, 2],
                          [1, 1, 1, -1, 1, 1, 1, np.inf])
    np.testing.assert_allclose(found, [
        [np.inf, 0.5 * np.exp(-0.5), 0, *[np.nan] * 5], [0, 0, 0, *[np.nan] * 5]])
    np.testing.assert_allclose(densities(1.0, 3.0, 0.0), [0.24197072451914337, 0.0806569081730478])


def test_gradients_in_x_and_nc():
    both = cytape.grad(special.chndtr, argnums=(0, 2))(2.0, 3.0, 1.2)
    single = [cytape.grad(special.chndtr, argnums=i)(2.0, 3.0, 1.2) for i in (0, 2)]
    np.testing.assert_allclose(both, single, 1e-12)
    with pytest.raises(NotDifferentiableError, match=r"chndtr .* argument df"):
        cytape.grad(special.chndtr, argnums=(0, 1, 2))(2.0, 3.0, 1.2)
