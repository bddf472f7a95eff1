"""Derivatives of polynomials against mpmath's, and degrees below 0."""

import numpy as np
import pytest

import cytape
from tests.cases import each

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")
ours = pytest.importorskip("cytape.scipy.special")


def hermite(n, x):
    return mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2)**n


@each("name, function", [
    ("chebyt", mp.chebyt), ("chebyu", mp.chebyu), ("legendre", mp.legendre),
    ("chebys", lambda n, x: mp.chebyu(n, x / 2)), ("hermitenorm", hermite),
    ("sh_chebyt", lambda n, x: mp.chebyt(n, 2 * x - 1))])
def test_derivatives_of_every_order(name, function):
    n, x = np.array([0, 1, 2, 3, 7, 7, 12]), np.linspace(-1.4, 1.3, 7)
    polynomial = slope = lambda x: getattr(special, f"eval_{name}")(n, x)  # noqa: B023
    for order in (1, 2, 3):
        slope = cytape.grad(lambda x, slope=slope: np.sum(slope(x)))
        with mp.workdps(40):
            expected = [float(mp.diff(lambda x, k=int(k): function(k, x), a, order))
                        for k, a in zip(n, x, strict=True)]
        np.testing.assert_allclose(slope(x), expected, 1e-11, 1e-11)
    np.testing.assert_array_equal(polynomial(cytape.constant(x)), polynomial(x))


def test_degrees_below_zero():
    x, below = np.linspace(-1.2, 1.2, 5), {
        "chebyt": lambda n: (-n, 1), "chebyu": lambda n: (-n - 2, -1),
        "legendre": lambda n: (-n - 1, 1)}
    for name, reflected in below.items():
        slope = lambda n: cytape.grad(  # noqa: E731
            lambda x: np.sum(getattr(special, f"eval_{name}")(n, x)))(x)  # noqa: B023
        for n in (-1, -4, -2.5):
            degree, sign = reflected(n)
            np.testing.assert_allclose(slope(n), sign * slope(degree), 1e-12)
    for function in (special.eval_hermitenorm, ours.eval_hermitenorm):
        assert np.isnan(cytape.grad(function, argnums=1)(-1, 0.5))
    assert np.isnan(ours.eval_hermitenorm(2.5, cytape.constant(0.5)).numpy())
    with pytest.raises(TypeError, match="not supported for the input types"):
        ours.eval_hermitenorm(2.5, np.ones(2))
