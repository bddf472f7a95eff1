"""Derivatives of elementary functions of SciPy at 0, at the ends of domains and beyond them."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def slope(f, *xs, place=0):
    with np.errstate(all="ignore"):
        return cytape.grad(f, argnums=place)(*xs)


def test_second_derivatives_near_zero():
    points = [-1e-9, 1e-9, 0.49, 0.51, -3.0, 20.0]
    assert_second_derivative(special.exprel, lambda x: mp.expm1(x) / x, points)
    assert slope(cytape.grad(special.exprel), 0.0) == pytest.approx(1 / 3)


def test_transformations_of_exponent_zero():
    for f in (special.boxcox, lambda x, lmbda: special.boxcox1p(x - 1, lmbda)):
        assert slope(f, 3.0, 0.0, place=1) == pytest.approx(0.5 * np.log(3)**2)
    assert slope(special.inv_boxcox, 1.5, 0.0, place=1) == pytest.approx(-1.125 * np.exp(1.5))
    assert slope(special.inv_boxcox1p, 1.5, 0.0) == pytest.approx(np.exp(1.5))


def test_transformations_of_zero():
    assert slope(special.boxcox, 0.0, 3.0, place=1) == pytest.approx(1 / 9)
    assert slope(special.boxcox1p, -1.0, 3.0, place=1) == pytest.approx(1 / 9)
    for f, x in (special.boxcox, 0.0), (special.boxcox1p, -1.0):
        assert slope(cytape.grad(f), x, 2.0) == 1
        in_exponent = cytape.grad(f, argnums=1)
        assert slope(in_exponent, x, 0.5) == -np.inf
        assert slope(in_exponent, x, 2.0) == 0
        assert slope(in_exponent, x, 0.5, place=1) == pytest.approx(-16)


def test_entropies_at_zero():
    assert slope(special.entr, 0.0) == np.inf
    assert slope(special.rel_entr, 0.0, 2.0) == -np.inf
    assert slope(special.rel_entr, 0.0, 2.0, place=1) == 0
    assert slope(special.kl_div, 0.0, 2.0, place=1) == 1
    assert slope(special.kl_div, 1.0, np.inf, place=1) == 1
    assert slope(special.kl_div, 1.0, 1.0) == slope(special.kl_div, 1.0, 1.0, place=1) == 0


def test_losses_of_delta_zero():
    assert slope(special.pseudo_huber, 0.0, 3.0, place=1) == 0
    for point in ((0.0, 0.0), (1.0, -1.0)):  # the curvature within
        curvature = cytape.hessian(special.huber, argnums=(0, 1))(*point)
        np.testing.assert_array_equal(curvature, [[0, 0], [0, 1]])
    assert [slope(special.huber, 1.0, r, place=1) for r in (3.0, -3.0, 0.5)] == [1, -1, 0.5]


@each("name, point", [
    ("entr", (-1.0,)), ("rel_entr", (1.0, -1.0)), ("kl_div", (-1.0, 1.0)), ("log1p", (-2.0,)),
    ("boxcox", (-2.0, 0.5)), ("boxcox1p", (-2.0, 0.5)), ("huber", (-1.0, 0.5)),
    ("pseudo_huber", (-1.0, 0.5)), ("powm1", (-2.0, 0.5)), ("inv_boxcox", (-3.0, 0.5)),
    ("boxcox", (-2.0, 2.0)), ("boxcox1p", (-2.0, 2.0)), ("rel_entr", (-1.0, -1.0)),
    ("kl_div", (-1.0, -1.0))])
def test_derivatives_beyond_the_domain_are_undefined(name, point):
    for place in range(len(point)):
        found = slope(getattr(special, name), *point, place=place)
        assert not np.isfinite(found) or found == 0, place


def test_rounding_is_not_connected():
    x = cytape.constant(1.7)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = special.round(x)
    assert y == 2 and tape.gradient(y, x) is None
