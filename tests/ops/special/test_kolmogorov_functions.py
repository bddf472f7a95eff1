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
