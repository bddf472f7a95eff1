"""Hypergeometric functions and polynomials: complex arguments, degree 0, refused parameters."""

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


def test_degrees_along_an_axis():
    n, x = np.arange(4)[:, None], np.array([-1.0, 0.3, 1.0])
    found = cytape.grad(lambda x: np.sum(special.eval_legendre(n, x)))(x)
    np.testing.assert_allclose(found, 1 + 3 * x + (15 * x * x - 3) / 2)
    for _ in range(2):
        found = cytape.grad(lambda x: np.sum(special.eval_chebyt(0, x)))(x)
        np.testing.assert_array_equal(found, 0)


def test_values_are_those_of_whole_degrees():
    x = cytape.constant([0.3])
    traced = cytape.function(lambda x: special.eval_legendre(40, x))
    for y in (special.eval_legendre(40, x), traced(x), special.eval_hermite(40, x)):
        assert y.dtype == np.float64
    assert traced(x)[0] == special.eval_legendre(40, 0.3)


def test_degrees_that_are_not_whole():
    slope = cytape.grad(lambda x: special.eval_legendre(2.5, x))(0.3)
    step = 1e-6
    difference = special.eval_legendre(2.5, 0.3 + step) - special.eval_legendre(2.5, 0.3 - step)
    assert slope == pytest.approx(difference / (2 * step))


def test_associated_functions_at_the_ends():
    with np.errstate(all="ignore"):
        for v in (2.0, 3.0):
            assert cytape.grad(lambda x: special.lpmv(0, v, x))(1.0) == v * (v + 1) / 2  # noqa: B023


@each("name, place, argument", [
    ("eval_jacobi", 1, "alpha"), ("eval_gegenbauer", 1, "alpha"), ("eval_legendre", 0, "n"),
    ("lpmv", 1, "v")])
def test_degrees_are_refused_by_name(name, place, argument):
    function = getattr(special, name)
    with pytest.raises(NotDifferentiableError, match=rf"\.{name} .* argument {argument}"):
        cytape.grad(function, argnums=place)(*[1.0] * (function.nin - 1), 0.3)


def test_dtypes_are_scipys():
    ours = pytest.importorskip("cytape.scipy.special")
    x = np.linspace(0.1, 0.9, 3, dtype=np.float32)
    for name, *parameters in (("chebyt",), ("laguerre",), ("gegenbauer", 0.7)):
        function = getattr(ours, f"eval_{name}")
        for n in (4, 4.0, 2.5, np.float32(2.5), np.float64(2.5)):
            expected = getattr(special, f"eval_{name}")(n, *parameters, x)

            def along(x):
                return function(n, *parameters, x)  # noqa: B023

            for call in (along, cytape.function(along), cytape.vmap(along)):
                found = call(cytape.constant(x))
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, 1e-6)


def test_large_degrees_take_no_time():
    with np.errstate(all="ignore"):
        for name in ("chebyt", "legendre", "sh_chebyu", "laguerre"):
            function = getattr(special, f"eval_{name}")
            np.testing.assert_equal(
                function(1e12, cytape.constant(0.3)).numpy(), function(1e12, 0.3))
            cytape.grad(lambda x: function(1e12, x))(0.3)  # noqa: B023


def test_legendre_polynomials_with_derivatives():
    ours = pytest.importorskip("cytape.scipy.special")
    n, z = np.array([[0], [3], [20]]), np.array([-1.0, 0.3, 1.0, 1.2])
    for order in (0, 1, 2):
        expected = special.legendre_p(n, z, diff_n=order)
        found, slopes = cytape.jvp(
            lambda z: ours.legendre_p(n, z, diff_n=order), (z,), (np.ones(4),))  # noqa: B023
        np.testing.assert_allclose(found, expected, 1e-10, 1e-13)
        np.testing.assert_allclose(slopes[:-1], expected[1:], 1e-10, 1e-13)
    np.testing.assert_array_equal(ours.legendre_p(n, z), special.legendre_p(n, z))
    with pytest.raises(NotImplementedError, match="diff_n"):
        ours.legendre_p(n, cytape.constant(z), diff_n=3)
