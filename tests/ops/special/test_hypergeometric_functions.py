"""Hypergeometric functions: complex arguments, and parameters without a derivative."""

import re

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


@each("name, parameters", [
    ("hyp0f1", "v"), ("hyp1f1", "ab"), ("hyp2f1", "abc"), ("hyperu", "ab"),
    ("wright_bessel", "ab"), ("log_wright_bessel", "ab")])
def test_parameters_are_refused_by_name(name, parameters):
    function = getattr(special, name)
    for place, parameter in enumerate(parameters):
        text = re.escape(f"scipy.special.{name} has no derivative in its argument {parameter}")
        with pytest.raises(NotDifferentiableError, match=text):
            cytape.grad(function, argnums=place)(*[1.5] * len(parameters), 0.3)


@each("name, parameters, reference", [
    ("hyp0f1", (1.5,), mp.hyp0f1), ("hyp1f1", (0.5, 1.5), mp.hyp1f1),
    ("hyp2f1", (0.5, 1.5, 2.5), mp.hyp2f1)])
def test_complex_arguments(name, parameters, reference):
    z = 0.3 + 0.4j
    slope = cytape.grad(lambda z: np.real(getattr(special, name)(*parameters, z)))
    expected = complex(mp.diff(lambda z: reference(*parameters, z), z))
    np.testing.assert_allclose(slope(z), np.conj(expected), 1e-12)
