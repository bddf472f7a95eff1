"""Integrals over a line: Bessel functions and their derivatives in the order."""

import mpmath
import numpy as np
import pytest

import cytape

pytest.importorskip("scipy")

from cytape.ops.probabilities.line_integrals import log_kve  # noqa: E402


def test_bessel_functions_and_their_derivatives_in_the_order():
    rng = np.random.default_rng(0)
    p, x = rng.uniform(-20, 20, 4), 10**rng.uniform(-3, 3, 4)
    values, slopes = cytape.jvp(lambda p: log_kve(p, x), (p,), (np.ones(4),))
    second = cytape.grad(lambda p: np.sum(cytape.grad(lambda p: np.sum(log_kve(p, x)))(p)))(p)
    with mpmath.workdps(25):
        for i in range(4):
            f = [mpmath.diff(
                lambda v, i=i: mpmath.log(mpmath.besselk(v, x[i])) + x[i], p[i], n)
                for n in range(3)]
            np.testing.assert_allclose(
                [values[i], slopes[i], second[i]], np.array(f, float), 1e-9, 1e-12)
