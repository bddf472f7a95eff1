"""Struve functions and integrals of Bessel functions at 0; refusal of orders."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("name, output, slope", [
    ("struve", None, 2 / np.pi), ("modstruve", None, 2 / np.pi), ("it2struve0", None, -2 / np.pi),
    ("itj0y0", 0, 1.0), ("iti0k0", 0, 1.0), ("it2j0y0", 0, 0.0), ("it2i0k0", 0, 0.0)])
def test_derivatives_at_zero(name, output, slope):
    def f(x):
        function = getattr(special, name)
        return function(0, x) if function.nin == 2 else (
            function(x) if output is None else function(x)[output])

    with np.errstate(all="ignore"):
        assert cytape.grad(f)(0.0) == pytest.approx(slope)


def test_orders_are_refused_by_name():
    for name, argument, place, given in (
            ("struve", "v", 0, (0.5, 1.0)), ("besselpoly", "nu", 2, (1.0, 1.0, 0.5))):
        with pytest.raises(NotDifferentiableError, match=rf"\.{name} .* argument {argument}"):
            cytape.grad(getattr(special, name), argnums=place)(*given)


def test_polynomials_of_order_zero():
    found = cytape.grad(lambda a: special.besselpoly(a, 1.5, 0.0))(1e-3)
    assert found == pytest.approx(-1e-3 / 4.5 * 2, rel=1e-5)


def test_slopes_have_the_type_of_the_argument():
    for f in (special.itstruve0, special.itmodstruve0):
        for x in (0.5, 7.0):  # on both sides of where the series ends
            slope = cytape.function(cytape.grad(lambda x: np.sum(f(x))))  # noqa: B023
            assert slope(np.full(3, x, np.float32)).dtype == np.float32
