"""Derivatives of error functions, distribution functions and logistic functions, with tails."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_derivative, assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
t_log_density = pytest.importorskip("cytape.ops.special.error_functions").t_log_density

SIGNED = [-30.0, -6.0, -0.5, 0.0, 0.5, 6.0]


def test_error_functions():
    assert_derivative(special.erf, mp.erf, SIGNED[1:])
    assert_derivative(special.erfc, mp.erfc, [*SIGNED[1:], 20.0])
    scaled = [-3.0, 0.0, 2.0, 30.0, 31.0, 1e3, 1e6]
    for compare in (assert_derivative, assert_second_derivative):
        compare(special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), scaled)
    assert_derivative(special.erfinv, mp.erfinv, [-0.999, 0.0, 0.4, 0.99])
    assert_derivative(special.erfcinv, lambda x: mp.erfinv(1 - x), [0.01, 0.4, 1.9])


def test_the_normal_distribution_in_its_tails():
    assert_derivative(special.ndtr, mp.ncdf, SIGNED)
    points = [-1000.0, *SIGNED]
    assert_derivative(special.log_ndtr, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), points)
    assert_second_derivative(
        special.log_ndtr, lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), points)
    slope = cytape.grad(special.log_ndtr)
    for x in (-1e8, -1e200, -np.inf):
        assert cytape.grad(slope)(x) == cytape.jvp(slope, (x,), (1.0,))[1] == pytest.approx(-1)
    for x in (40.0, 1e8):  # of probability 1
        assert cytape.grad(slope)(x) == cytape.jvp(slope, (x,), (1.0,))[1] == 0
    assert_derivative(special.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [0.01, 0.5, 0.9])


def test_the_distribution_of_t():
    for df in (1.0, 4.5, 1e6):
        def density(t):
            return mp.gamma((df + 1) / 2) / mp.gamma(df / 2) / mp.sqrt(df * mp.pi) * (  # noqa: B023
                1 + t * t / df) ** (-(df + 1) / 2)  # noqa: B023
        points = np.array([-30.0, -1.0, 0.0, 3.0])
        with mp.workdps(40):
            expected = [float(density(mp.mpf(t))) for t in points]
        found = cytape.grad(lambda t: np.sum(special.stdtr(df, t)))(points)  # noqa: B023
        np.testing.assert_allclose(found, expected, 1e-9)


def log_density_of_t(t, df):
    return mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2 - (
        df + 1) / 2 * mp.log1p(t * t / df)


@each("t", [0.0, -0.5, 30.0])
def test_derivatives_of_the_log_density_of_t_in_all_degrees_of_freedom(t):
    for compare in (assert_derivative, assert_second_derivative):
        compare(lambda df: t_log_density(t, df), lambda df: log_density_of_t(t, df),
                [0.5, 5.0, 99.0, 101.0, 1e5, 1e6])
        for df in (2.5, 1e7):
            compare(lambda t: t_log_density(t, df), lambda t: log_density_of_t(t, df), [t])  # noqa: B023


@each(("f", "points"), [
    (special.erf, [np.inf, -np.inf]), (special.erfc, [np.inf, -np.inf]),
    (special.ndtr, [np.inf, -np.inf]), (special.log_ndtr, [np.inf]),
    (lambda x: special.gammainc(2.5, x), [np.inf]),
    (lambda x: special.gammaincc(0.5, x), [np.inf]),
    (lambda t: special.stdtr(2.5, t), [np.inf, -np.inf])])
def test_derivatives_at_infinity_are_0(f, points):
    slope = cytape.grad(f)
    for x in points:
        assert slope(x) == cytape.grad(slope)(x) == cytape.grad(cytape.grad(slope))(x) == 0


def test_infinite_degrees_of_freedom_are_the_normal_distribution():
    found = [f(lambda t: special.stdtr(np.inf, t))(0.5) for f in (
        cytape.grad, lambda f: cytape.grad(cytape.grad(f)))]
    density = np.exp(-0.125) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(found, [density, -0.5 * density])


def test_logistic_functions_in_their_tails():
    def expit(x):
        return 1 / (1 + mp.exp(-x))

    assert_derivative(special.expit, expit, [-700.0, -30.0, 0.0, 30.0, 60.0])
    assert_derivative(special.log_expit, lambda x: mp.log(expit(x)), [-700.0, 0.0, 30.0])
    assert_derivative(special.logit, lambda p: mp.log(p / (1 - p)), [1e-10, 0.5, 1 - 1e-3])


def test_expit_is_a_ufunc_as_the_others():
    ours, x = cytape.scipy.special.expit, np.append(np.linspace(-700, 700, 999), np.nan)
    np.testing.assert_array_equal(ours(cytape.constant(x)), special.expit(x))
    out = np.zeros(x.shape)
    assert ours(x, out) is out and np.array_equal(out, special.expit(x), equal_nan=True)
    assert (ours.nin, ours.nout) == (1, 1)
    ours.at(x, [0])
    assert x[0] == special.expit(-700.0)


def test_complex_arguments():
    slope = cytape.grad(lambda z: np.real(special.erf(z)))(0.3 + 0.4j)
    np.testing.assert_allclose(slope, np.conj(2 / np.sqrt(np.pi) * np.exp(-(0.3 + 0.4j) ** 2)))
    for z in (0.3 + 0.4j, 40.0 + 3.0j):
        slope = cytape.grad(lambda z: np.real(special.erfcx(z)))(z)
        expected = mp.diff(lambda z: mp.exp(z * z) * mp.erfc(z), z)
        np.testing.assert_allclose(slope, np.conj(complex(expected)), 1e-10)
