"""Derivatives of gamma and beta functions against mpmath, near poles and in tails."""

import numpy as np
import pytest

import cytape
from tests.cases import each
from tests.ops.special.precise import assert_derivative, assert_second_derivative

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")


POSITIVE = [1e-8, 0.3, 1.0, 1.4616, 2.0, 7.5, 40.0, 160.0]
LEFT = [-0.5, -1.5, -2.3, -7.9]


def test_complete_functions():
    assert_derivative(special.gamma, mp.gamma, [*POSITIVE, *LEFT])
    assert_derivative(special.gammaln, mp.loggamma, [*POSITIVE, 1e10])
    assert_derivative(special.psi, mp.digamma, [*POSITIVE, *LEFT, 1e6])
    near = [-1 + 1e-7, -3 - 1e-6, -1e-8]  # poles
    for function, reference in (
            (special.gamma, mp.gamma), (special.gammaln, lambda x: mp.loggamma(x).real),
            (special.psi, mp.digamma)):
        assert_derivative(function, reference, near)
    assert_derivative(lambda x: special.psi(x), mp.digamma, POSITIVE)
    assert_second_derivative(special.gammaln, mp.loggamma, POSITIVE)
    for n in (1, 3):
        from cytape.scipy.special import polygamma
        assert_derivative(lambda x: polygamma(n, x), lambda x: mp.polygamma(n, x), POSITIVE)  # noqa: B023


def test_the_reciprocal_has_a_derivative_at_the_poles_of_gamma():
    points = [*POSITIVE, *LEFT, 0.0, -1.0, -2.0, -5.0, -1 + 1e-9]
    assert_derivative(special.rgamma, mp.rgamma, points)


def test_beta_functions():
    for b in (0.5, 1.0, 30.0):
        assert_derivative(lambda a: special.beta(a, b), lambda a: mp.beta(a, b), POSITIVE[:-2])  # noqa: B023
        assert_derivative(lambda a: special.betaln(b, a), lambda a: mp.log(mp.beta(a, b)), POSITIVE)  # noqa: B023


def test_products_with_logarithms_at_zero():
    assert cytape.grad(lambda y: special.xlogy(0.0, y))(0.0) == 0.0
    assert cytape.grad(lambda y: special.xlog1py(0.0, y))(-1.0) == 0.0
    assert cytape.grad(lambda x: special.xlogy(x, 2.0))(0.0) == np.log(2.0)
    mixed = cytape.grad(cytape.grad(special.xlogy, argnums=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert mixed(0.0, 0.0) == np.inf
        assert np.isnan(cytape.grad(cytape.grad(special.xlogy), argnums=1)(1.0, -1.0))


def test_multigammaln_refuses_what_scipy_refuses():
    from cytape.scipy.special import multigammaln
    for a, d in ((0.5, 3), (2.0, 1.5)):
        with pytest.raises(ValueError) as theirs:
            special.multigammaln(a, d)
        with pytest.raises(ValueError) as ours:
            multigammaln(cytape.constant(a), d)
        assert str(ours.value) == str(theirs.value)


@each("order", [1, np.int8(1), np.float64(1), np.array([1, 2])])
def test_the_dtype_of_polygamma(order):
    from cytape.scipy.special import polygamma
    for dtype in ("float32", "float64"):
        x = cytape.constant(2.0, dtype)
        expected = np.result_type(order, x.numpy(), 0.0)
        for call in (polygamma, cytape.function(polygamma)):
            assert call(order, x).dtype == expected
