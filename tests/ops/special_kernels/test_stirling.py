"""Densities of parameters of all magnitudes, which are powers over gamma and beta functions."""

import numpy as np

from cytape.ops.special_kernels import stirling as kernels
from tests.cases import each


@each("a, x, expected", [  # of mpmath at 100 digits
    (0.001, 1e-08, 98231.39695405205),
    (2.5, 600.0, 2.9302288090943477e-257),
    (1000000.0, 1002000.0, 5.402686013678803e-05),
    (1000000000000.0, 1000001000000.0, 2.419705632054211e-07),
])
def test_gamma_densities(a, x, expected):
    np.testing.assert_allclose(kernels.gamma_density(a, x), expected, 2e-13)


@each("a, b, x, expected", [
    (0.001, 0.002, 0.25, 0.003548599255231293),
    (2.5, 10000.0, 0.001, 10.75875447577224),
    (1000000.0, 2000000.0, 0.3333, 1454.9273505995527),
    (1000000000.0, 3.0, 0.999999998, 270670567.2852369),
])
def test_beta_densities(a, b, x, expected):
    np.testing.assert_allclose(kernels.beta_density(a, b, x), expected, 2e-13)
    np.testing.assert_allclose(
        kernels.odds_density(a, b, x / (1 - x)), expected * (1 - x)**2, 2e-13)
