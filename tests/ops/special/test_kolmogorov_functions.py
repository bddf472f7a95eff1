"""Distributions of Kolmogorov, Smirnov and Tukey against differences."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("name, given", [
    ("kolmogorov", (0.4,)), ("kolmogorov", (0.99,)), ("kolmogorov", (1.6,)), ("kolmogi", (0.2,)),
    ("smirnov", (7, 0.3)), ("smirnovi", (7, 0.3)), ("tklmbda", (0.4, -0.5))])
def test_derivatives(name, given):
    function, (*orders, x), step = getattr(special, name), given, 1e-5
    difference = function(*orders, x + step) - function(*orders, x - step)
    slope = cytape.grad(lambda x: function(*orders, x))(x)
    assert slope == pytest.approx(difference / (2 * step), rel=1e-7)


def test_densities_are_zero_in_the_tails():
    slope = cytape.grad(special.kolmogorov)
    assert slope(0.0) == slope(0.01) == slope(60.0) == 0
    assert np.isfinite(cytape.grad(slope)(1e-3))


def test_the_distribution_of_tukey_ends_for_positive_shapes():
    for x in (0.83, -0.83):
        assert cytape.grad(special.tklmbda, argnums=(0, 1))(x, 3.7) == (0, 0)
    for x in (0.2, -0.2):
        step = 1e-5
        difference = special.tklmbda(x, 3.7 + step) - special.tklmbda(x, 3.7 - step)
        assert cytape.grad(special.tklmbda, argnums=1)(x, 3.7) == pytest.approx(
            difference / (2 * step), rel=1e-6)


def test_the_second_derivative_of_smirnov_is_refused():
    slope = cytape.grad(lambda d: special.smirnov(7, d))
    with pytest.raises(NotDifferentiableError, match="smirnov"):
        cytape.grad(slope)(0.3)


def test_far_quantiles_of_smirnov_have_precise_slopes():  # (1 - d)**n is p where d is near 1
    n, p = 7.0, 1e-200
    assert cytape.grad(special.smirnovi, argnums=1)(n, p) == pytest.approx(
        -p**(1 / n - 1) / n, rel=1e-12)


@each(x=[-1e20, 1e20, -30.0, 30.0])
def test_tails_of_tukey_are_precise(x):
    shape = -1.5
    p = (1 + 1.5 * abs(x))**(1 / shape)  # p**shape is large: 1 in its place is (1 - p)**shape
    for _ in range(3):
        p = ((1 - p)**shape + 1.5 * abs(x))**(1 / shape)
    density = 1 / (p**(shape - 1) + (1 - p)**(shape - 1))
    assert cytape.grad(special.tklmbda)(x, shape) == pytest.approx(density, rel=1e-13)
    change = (shape - 1) * (p**(shape - 2) - (1 - p)**(shape - 2)) * density**3
    assert cytape.grad(cytape.grad(special.tklmbda))(x, shape) == pytest.approx(
        change * np.sign(x), rel=1e-12)
