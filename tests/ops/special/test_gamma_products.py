"""Binomial coefficients at the zeros that poles make, counts outside of their range, branches."""

import numpy as np
import pytest

import cytape
from tests.cases import each

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
ours = pytest.importorskip("cytape.scipy.special")


@each("n, k", [(3.0, 5.0), (3.0, -2.0), (4.0, 2.0), (2.5, 1.5), (40.0, 20.0)])
def test_binomial_coefficients(n, k):
    found = cytape.grad(special.binom, argnums=(0, 1))(n, k)
    expected = [float(mp.diff(lambda n: mp.binomial(n, k), n)),
                float(mp.diff(lambda k: mp.binomial(n, k), k))]
    np.testing.assert_allclose(found, expected, 1e-10, 1e-12)
    second = [[float(mp.diff(mp.binomial, (n, k), (2 - i - j, i + j))) for j in range(2)]
              for i in range(2)]
    np.testing.assert_allclose(
        cytape.hessian(special.binom, argnums=(0, 1))(n, k), second, 1e-8, 1e-10)


def test_counts():
    N, k = np.array([5.5, 1.0]), np.array([2.0, 3.0])
    for name in ("comb", "perm"):
        function = getattr(ours, name)
        found = function(cytape.constant(N), k)
        np.testing.assert_allclose(found.numpy(), getattr(special, name)(N, k))
        gradient = cytape.grad(lambda N: np.sum(function(N, k)))(N)  # noqa: B023
        assert gradient[0] > 0 and gradient[1] == 0
        assert function(5, 2, exact=True) == getattr(special, name)(5, 2, exact=True)
    found = ours.factorial(cytape.constant([3.0, -1.0]))
    np.testing.assert_allclose(found.numpy(), [6, 0])
    assert ours.factorial(5, exact=True) == 120


@each("n", [-1.5, 0.5, 3.0, 4.6, 1.2 + 0.3j])
def test_double_factorials(n):
    def function(n):
        return ours.factorial2(n, extend="complex")

    value, slope = cytape.jvp(function, (n,), (1.0,))
    np.testing.assert_allclose(value, special.factorial2(n, extend="complex"), 1e-13)
    np.testing.assert_allclose(slope, value * (np.log(2) + special.psi(n / 2 + 1)) / 2, 1e-12)
    assert ours.factorial2(7, exact=True) == 105
    with pytest.raises(ValueError, match="extend='complex' only, got"):
        ours.factorial2(cytape.constant(3.0))


@each("n", [1, 2, 5, 6])
@each("x", [0.0, 1e-9, 0.03, 1.7, np.pi, 2 * np.pi - 1e-6, 2 * np.pi, -4.0, 20.0, 6 * np.pi])
def test_the_periodic_sinc(n, x):
    def sum_of_exponentials(x):
        return mp.fsum(mp.cos((k - mp.mpf(n - 1) / 2) * x) for k in range(n)) / n

    with mp.workdps(40):
        expected = [float(mp.diff(sum_of_exponentials, x, order)) for order in range(3)]
    np.testing.assert_allclose(ours.diric(cytape.constant(x), n), expected[0], 1e-13, 1e-14)
    np.testing.assert_allclose(cytape.grad(ours.diric)(x, n), expected[1], 1e-11, 1e-14)
    np.testing.assert_allclose(
        cytape.grad(cytape.grad(ours.diric))(x, n), expected[2], 1e-10, 1e-12)
    assert ours.diric(x, n) == special.diric(x, n)
    assert np.isnan(ours.diric(cytape.constant(x), n + 0.5))


def test_branches_of_lambert():
    for branch, z in ((0, 0.3), (-1, -0.2), (1, 2.0)):
        found = cytape.jvp(lambda z: ours.lambertw(z, branch), (z + 0j,), (1 + 0j,))[1]  # noqa: B023
        expected = complex(mp.diff(lambda z: mp.lambertw(z, branch), z))  # noqa: B023
        np.testing.assert_allclose(found, expected, 1e-10)


def test_scipys_own_functions_take_tensors():
    for function, expected in (
            (special.lambertw, ours.lambertw), (special.zeta, ours.zeta),
            (lambda x: special.zeta(x, 1.5), lambda x: ours.zeta(x, 1.5))):
        assert cytape.jvp(function, (2.5,), (1.0,)) == cytape.jvp(expected, (2.5,), (1.0,))


def test_complex_arguments():
    for function, reference in (
            (special.psi, lambda z: mp.psi(0, z)), (special.loggamma, mp.loggamma)):
        for z in (1.5 + 0.7j, -2.3 + 0.4j):
            found = cytape.jvp(function, (z,), (1 + 0j,))[1]
            np.testing.assert_allclose(found, complex(mp.diff(reference, z)), 1e-10)
