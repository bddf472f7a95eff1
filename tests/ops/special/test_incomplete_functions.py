"""Derivatives of incomplete gamma and beta functions against mpmath, at ends, and of inverses."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


def along(f):
    return lambda x: cytape.jvp(f, (x,), (np.ones_like(x),))[1]


def test_incomplete_functions_in_the_last_argument():
    for a in (0.5, 1.0, 20.0):
        for function, sign in ((special.gammainc, 1), (special.gammaincc, -1)):
            assert_derivative(
                lambda x: function(a, x),  # noqa: B023
                lambda x: sign * mp.gammainc(a, 0, x, regularized=True), [1e-6, 0.3, 5.0, 60.0])  # noqa: B023
        for function, sign in ((special.betainc, 1), (special.betaincc, -1)):
            assert_derivative(
                lambda x: function(a, 2.5, x),  # noqa: B023
                lambda x: sign * mp.betainc(a, 2.5, 0, x, regularized=True),  # noqa: B023
                [1e-6, 0.3, 0.9, 0.999])


@each("call, derivatives", [
    (lambda x: special.gammainc(1.0, x), [1, -1, 1]),
    (lambda x: -special.gammaincc(2.0, x), [0, 1, -2]),
    (lambda x: special.betainc(2.0, 3.0, x), [0, 12, -48]),
    (lambda x: special.betaincc(3.0, 2.0, 1 - x), [0, 12, -48]),
    (lambda x: special.betainc(2e3, 2e3, x), [0, 0, 0])])
def test_incomplete_functions_at_the_ends_of_their_domain(call, derivatives):
    backward = forward = call
    for expected in derivatives:
        backward, forward = cytape.grad(backward), along(forward)
        np.testing.assert_allclose([backward(0.0), forward(0.0)], expected)


@each("inverse, function, shapes, p", [
    (special.gammaincinv, special.gammainc, (2.5,), 0.3),
    (special.gammainccinv, special.gammaincc, (0.4,), 0.01),
    (special.betaincinv, special.betainc, (2.5, 0.7), 0.9),
    (special.betainccinv, special.betaincc, (2.5, 0.7), 0.9),
    (special.stdtrit, special.stdtr, (3.5,), 0.01)])
def test_inverses_have_the_derivatives_of_implicit_functions(inverse, function, shapes, p):
    def identity(p, *shapes):
        return function(*shapes, inverse(*shapes, p))

    indices = tuple(range(1 + len(shapes)))
    expected = [1.0] + [0.0] * len(shapes)
    np.testing.assert_allclose(
        cytape.grad(identity, argnums=indices)(p, *shapes), expected, atol=1e-10)
    np.testing.assert_allclose(cytape.hessian(identity, argnums=0)(p, *shapes), 0, atol=1e-8)


@each("f", [
    lambda a: special.gammainc(a, 0.0), lambda a: special.gammainc(a, np.inf),
    lambda a: special.betainc(a, 2.0, 0.0), lambda a: special.betainc(2.0, a, 1.0),
    lambda a: special.stdtr(a, 0.0), lambda a: special.stdtr(a, np.inf)])
def test_derivatives_in_shapes_vanish_at_the_ends(f):
    np.testing.assert_array_equal([cytape.grad(f)(2.0), along(f)(2.0)], 0.0)


@each("f", [
    lambda a: special.gammainc(a, 1.0), lambda a: special.gammainc(2.0 + 0 * a, a),
    lambda a: special.betainc(a, 2.0, 0.5), lambda a: special.betainc(2.0, a, 0.5),
    lambda a: special.stdtr(a, 0.5)])
def test_derivatives_outside_of_the_domain_are_nan(f):
    for x in (-1.5, np.nan):
        np.testing.assert_array_equal([cytape.grad(f)(x), along(f)(x)], np.nan)


def test_mixed_derivatives_at_the_ends_for_shape_one():
    def mixed(f, *given):
        with np.errstate(all="ignore"):
            return [cytape.grad(cytape.grad(f, i), j)(*given) for i, j in (
                (0, len(given) - 1), (len(given) - 1, 0))]

    assert mixed(special.gammainc, 1.0, 0.0) == [-np.inf, -np.inf]
    assert mixed(special.betainc, 1.0, 2.0, 0.0) == [-np.inf, -np.inf]
    assert mixed(special.betainc, 2.0, 1.0, 1.0) == pytest.approx([1.0, 1.0])
