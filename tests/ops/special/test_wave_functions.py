"""Wave functions: both outputs, characteristic values, and parameters that are refused."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("name, orders", [
    ("mathieu_a", (3,)), ("mathieu_b", (3,)), ("pro_cv", (1, 3)), ("obl_cv", (0, 2))])
def test_characteristic_values(name, orders):
    function = getattr(special, name)
    for parameter in (0.3, 4.0):
        step = 1e-4 * parameter
        difference = function(*orders, parameter + step) - function(*orders, parameter - step)
        slope = cytape.grad(lambda q: function(*orders, q))(parameter)
        assert slope == pytest.approx(difference / (2 * step), rel=1e-6)


@each("name, given, place, argument", [
    ("mathieu_cem", (2, 1.5, 30.0), 1, "q"), ("pro_ang1", (1, 2, 1.3, 0.4), 2, "c"),
    ("pbdv", (1.5, 0.4), 0, "v"), ("pro_ang1_cv", (1, 2, 1.3, 6.4, 0.4), 3, "cv")])
def test_parameters_are_refused_by_name(name, given, place, argument):
    with pytest.raises(NotDifferentiableError, match=rf"\.{name} .* argument {argument}"):
        cytape.grad(lambda p: getattr(special, name)(*given[:place], p, *given[place + 1:])[0])(
            float(given[place]))


def test_angles_of_mathieu_are_degrees():
    slope = cytape.grad(lambda x: special.mathieu_cem(2, 1.5, x)[0])(30.0)
    assert slope == pytest.approx(np.pi / 180 * special.mathieu_cem(2, 1.5, 30.0)[1])
