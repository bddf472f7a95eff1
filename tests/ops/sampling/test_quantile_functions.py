"""Quantiles that SciPy solves for, and the von Mises distribution of large concentration."""

import numpy as np
import pytest

import cytape
from tests.cases import each

quantiles = pytest.importorskip("cytape.ops.sampling.quantile_functions")


@each("cdf, ppf, shape", [
    (quantiles.skewnorm_cdf, quantiles.skewnorm_ppf, -2.0)])
@each("q", [1e-4, 0.5, 0.9])
def test_quantiles_have_the_derivatives_of_implicit_functions(cdf, ppf, shape, q):
    slopes = cytape.grad(lambda q, a: cdf(ppf(q, a), a), argnums=(0, 1))(q, shape)
    np.testing.assert_allclose(slopes, [1.0, 0.0], atol=1e-9)


def test_von_mises_of_large_kappa_is_normal():
    kappa = 1e6
    z = np.array([-2.0, -0.5, 0.3, 1.0, 3.0]) / np.sqrt(kappa)
    found = quantiles.vonmises_in_kappa(z, kappa)
    normal = 0.5 * z / np.sqrt(kappa) * np.exp(-0.5 * kappa * z * z) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(found, normal, 1e-5)
