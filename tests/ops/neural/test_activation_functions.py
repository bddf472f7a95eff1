"""Activations: extreme values, kinks, parameters; specs_activations.py has the values."""

import numpy as np
import pytest
from scipy import special

import cytape
from cytape import nn
from tests.cases import each
from tests.ways import check, gradient


def test_activations_at_extreme_values():
    x = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 1e4, np.inf, -np.inf])
    np.testing.assert_allclose(nn.sigmoid(x), special.expit(x), rtol=1e-12)
    np.testing.assert_allclose(nn.softplus(x), np.logaddexp(x, 0), rtol=1e-12)
    np.testing.assert_allclose(gradient(nn.softplus, x), special.expit(x), rtol=1e-12)
    slope = special.expit(x) * special.expit(-x)
    np.testing.assert_allclose(gradient(nn.sigmoid, x), slope, rtol=1e-12, atol=1e-16)
    np.testing.assert_array_equal(gradient(nn.relu, x), x > 0)


EXTREME = np.array([-1e4, -800.0, -40.0, -30.0, 0.0, 40.0, 1e4])
FORMULAS = {
    "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "gelu": lambda x: x * special.ndtr(x),
    "log_sigmoid": special.log_expit,
    "selu": lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "softsign": lambda x: x / (1 + abs(x)),
}


@each("name", FORMULAS)
def test_values_in_the_tails(name):
    np.testing.assert_allclose(getattr(nn, name)(EXTREME), FORMULAS[name](EXTREME), rtol=1e-12)
    assert np.isfinite(gradient(getattr(nn, name), EXTREME)).all()
    assert np.isnan(getattr(nn, name)(np.array([np.nan]))).all()


def test_gelu_of_large_numbers_does_not_overflow():
    x = np.array([1e200, -1e200])
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(nn.gelu(x), [1e200, 0])
        np.testing.assert_array_equal(gradient(nn.gelu, x), [1, 0])


def test_gelu_refuses_words():
    with pytest.raises(TypeError, match="True or False, got 'none'"):
        nn.gelu(np.ones(2), approximate="none")


def test_slopes_in_the_tails_do_not_cancel():
    x = np.array([-30.0])
    np.testing.assert_allclose(gradient(nn.elu, x), np.exp(x), rtol=1e-12)
    np.testing.assert_allclose(gradient(nn.log_sigmoid, -x), special.expit(x), rtol=1e-12)
    density = np.exp(-18.0) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(
        gradient(nn.gelu, np.array([-6.0])), special.ndtr(-6.0) - 6.0 * density, rtol=1e-12)


def test_slopes_at_kinks():
    slopes = {"relu": 0, "relu6": 0, "leaky_relu": 0.2, "elu": 1, "celu": 1,
              "selu": 1.0507009873554805 * 1.6732632423543772, "softsign": 1}
    for name, slope in slopes.items():
        assert gradient(getattr(nn, name), np.zeros(1)) == slope
    assert gradient(nn.relu6, np.full(1, 6.0)) == 0
    assert gradient(nn.hard_tanh, np.array([-1.0, 1.0])).numpy().tolist() == [0, 0]


@each("function", [nn.leaky_relu, nn.elu, nn.celu])
def test_parameters_have_derivatives_and_keep_the_dtype(function):
    x, step = np.array([-2.0, -0.5, 1.0]), 1e-6
    found = cytape.grad(lambda a: np.sum(function(x, a)))(0.7)
    difference = (function(x, 0.7 + step) - function(x, 0.7 - step)).sum() / (2 * step)
    np.testing.assert_allclose(found, difference, rtol=1e-8)
    assert function(x.astype("f4"), 0.7).dtype == np.float32
    assert function(cytape.constant(x.astype("f2")), 0.7).dtype == np.float16


def test_the_approximation_of_gelu_is_close():
    x = np.linspace(-6, 6, 200)
    assert 1e-4 < np.abs(nn.gelu(x) - nn.gelu(x, approximate=True)).max() < 5e-4


@each("x, expected", [
    (19.0, -4.520351104468879e-15), (15.0, -1.0480522954513246e-11), (0.0, 0.64)])
def test_the_curvature_of_mish_does_not_cancel(x, expected):
    np.testing.assert_allclose(cytape.grad(cytape.grad(nn.mish))(x), expected, 1e-12)


def everything(x):
    return np.sum(sum(f(x) for f in (
        nn.gelu, nn.silu, nn.mish, nn.elu, nn.celu, nn.selu, nn.leaky_relu, nn.softsign,
        nn.hard_silu, nn.log_sigmoid, lambda x: nn.gelu(x, approximate=True))))


def test_all_ways_agree():
    x = np.array([-2.5, -0.3, 0.2, 1.7])
    check(everything, everything, x)
    check(lambda x: np.sum(nn.glu(x) ** 2),
          lambda x: np.sum((x[:2] / (1 + np.exp(-x[2:]))) ** 2), x)


def test_glu_needs_two_halves():
    with pytest.raises(ValueError):
        nn.glu(np.ones(3))


def test_second_derivatives_at_kinks_are_those_of_the_left_side():
    for function, expected in (
            (nn.elu, 1), (nn.celu, 1), (nn.selu, 1.0507009873554805 * 1.6732632423543772)):
        found = gradient(lambda x, f=function: cytape.grad(f)(x), np.array(0.0))
        np.testing.assert_allclose(found, expected)


def test_the_slope_of_nan_is_nan():
    assert np.isnan(gradient(nn.hard_silu, np.array([np.nan])))


def test_slopes_of_the_approximation_of_gelu_do_not_overflow():
    for dtype, size in (("e", 300), ("e", 6e4), ("f", 1e20), ("d", 1e200)):
        x = np.array([-size, size], dtype)
        np.testing.assert_array_equal(nn.gelu(x, True), np.maximum(x, 0))
        np.testing.assert_array_equal(gradient(lambda x: nn.gelu(x, True), x), [0, 1])
