"""Derivatives of Bessel functions against mpmath."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.ops.special.precise import assert_derivative, assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

SIGNED = [-20.0, -1e-9, 0.7, 45.0]
POSITIVE = [1e-3, 0.7, 45.0]


def test_functions_of_fixed_orders():
    for n, names in enumerate(["j0 y0 i0 k0", "j1 y1 i1 k1"]):
        for name, reference in zip(
                names.split(), [mp.besselj, mp.bessely, mp.besseli, mp.besselk], strict=True):
            assert_derivative(
                getattr(special, name), lambda x: reference(n, x),  # noqa: B023
                SIGNED if name[0] in "ji" else POSITIVE, 1e-9)


def test_functions_of_any_order():
    for v in (0, 1, 2.5):
        for name, reference in (
                ("jv", mp.besselj), ("yv", mp.bessely), ("iv", mp.besseli), ("kv", mp.besselk)):
            assert_derivative(
                lambda x: getattr(special, name)(v, x), lambda x: reference(v, x), POSITIVE, 1e-9)  # noqa: B023
    assert_derivative(lambda x: special.yn(2, x), lambda x: mp.bessely(2, x), POSITIVE, 1e-9)


def test_scaled_functions():
    for v, name in ((0, "i0e"), (1, "i1e")):
        assert_derivative(
            getattr(special, name), lambda x: mp.besseli(v, x) * mp.exp(-abs(x)), SIGNED, 1e-9)  # noqa: B023
        for compare in (assert_derivative, assert_second_derivative):
            for function in (getattr(special, name), lambda x: special.ive(v, x)):  # noqa: B023
                compare(function, lambda x: mp.besseli(v, x) * mp.exp(-abs(x)),  # noqa: B023
                        [-1e4, 299.0, 400.0, 650.0, 1e6], 1e-9)
    assert_derivative(
        lambda x: special.ive(2.5, x), lambda x: mp.besseli(2.5, x) * mp.exp(-x), POSITIVE, 1e-9)


def test_second_derivatives():
    points = [-1e-4, 0.0, 1e-12, 1e-8, 0.0099, 0.0101, 0.7, 9.0]
    assert_second_derivative(special.j1, lambda x: mp.besselj(1, x), points)
    assert_second_derivative(special.i1, lambda x: mp.besseli(1, x), points)
    assert_second_derivative(
        special.i1e, lambda x: mp.besseli(1, x) * mp.exp(-x), [1e-12, 1e-8, 0.0099, 0.7])


@pytest.mark.parametrize("transform", [lambda f: f, cytape.function])
def test_the_derivative_in_the_order_is_refused_by_name(transform):
    with pytest.raises(NotDifferentiableError, match=r"scipy\.special\.jv .* argument v"):
        transform(cytape.grad(lambda v: special.jv(v, 2.0)))(1.0)
    assert transform(cytape.grad(lambda v: 0.0 * special.jv(v, 2.0)))(1.0) == 0.0


def test_scaled_functions_of_second_kind():
    for v, name in ((0, "k0e"), (1, "k1e")):
        for compare in (assert_derivative, assert_second_derivative):
            for function in (getattr(special, name), lambda x: special.kve(v, x)):  # noqa: B023
                compare(function, lambda x: mp.besselk(v, x) * mp.exp(x),  # noqa: B023
                        [0.3, 299.0, 400.0, 1e6], 1e-9)
    assert_derivative(lambda x: special.kve(35.0, x),
                      lambda x: mp.besselk(35, x) * mp.exp(x), [5e4, 366574.0])


def test_complex_arguments():
    z, v = 1.5 + 0.7j, 1.25
    for name, reference in (
            ("jv", mp.besselj), ("yv", mp.bessely), ("iv", mp.besseli), ("kv", mp.besselk),
            ("hankel1", mp.hankel1), ("hankel2e", lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z))):
        function = getattr(special, name)
        expected = complex(mp.diff(lambda z: reference(v, z), z))  # noqa: B023
        for transform in (lambda f: f, cytape.function):
            found = cytape.jvp(transform(lambda z: function(v, z)), (z,), (1 + 0j,))[1]  # noqa: B023
            np.testing.assert_allclose(found, expected, 1e-10)
    with pytest.raises(NotDifferentiableError, match="complex"):
        cytape.grad(lambda z: np.real(special.jve(v, z)))(z)
