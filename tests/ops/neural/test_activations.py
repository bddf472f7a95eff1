"""Sigmoid and softplus: values of every precision, and derivatives where others lose them."""

import numpy as np
import pytest
from scipy import special

import cytape
import cytape.numpy as cnp
from cytape import nn
from cytape.ops.neural import activations
from tests.cases import each

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 800, -800, 40, -40, 745, -740, 1e-8, -1e-8])


def exact(x):
    """Return both functions in long double, at numbers of less than 11,000."""
    x = x.astype(np.longdouble)
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power), np.where(x > 0, x, 0) + np.log1p(power)


@each("dtype", ["float16", "float32", "float64", "longdouble"])
def test_values(dtype):
    x = np.concatenate([SPECIAL, np.linspace(-900, 900, 2001), np.linspace(-8, 8, 500)])
    x = x.astype(dtype)
    with np.errstate(under="ignore"):
        expected = exact(x)
    limits = np.finfo(dtype)
    for function, values in zip((activations.sigmoid, activations.softplus), expected, strict=True):
        with np.errstate(all="raise", under="ignore"):  # NaN is no invalid operation
            found = function(x)
        assert found.dtype == dtype
        values = np.where(np.isnan(x), np.nan, values)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
        np.testing.assert_allclose(
            found.astype(np.longdouble), values, rtol=4 * limits.eps,
            atol=float(limits.smallest_subnormal))


def exact_slopes(x):
    """Return the derivatives of silu, mish and gelu in long double."""
    x = x.astype(np.longdouble)
    share, rest, size = exact(x)[0], exact(-x)[0], np.exp(-np.abs(x))
    above = np.where(x < 0, size * (2 + size), 1 + 2 * size)
    below = np.where(x < 0, 2 + size * (2 + size), 1 + 2 * size + 2 * size**2)
    steep = 4 * np.where(x < 0, 1, size**2) * (1 + size) ** 2 / below**2  # 1 - tanh(softplus)**2
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.longdouble(np.pi))
    return (share + x * share * rest, above / below + x * steep * share,
            special.ndtr(x.astype(float)) + x * density)


@each("dtype", ["float16", "float32", "float64", "longdouble"])
def test_slopes(dtype):
    x = np.concatenate([np.linspace(-60, 60, 2001), np.linspace(-8, 8, 500)]).astype(dtype)
    functions = (activations.silu_slope, activations.mish_slope, activations.gelu_slope)
    for function, values in zip(functions, exact_slopes(x), strict=True):
        eps = max(np.finfo(dtype).eps, np.finfo(float).eps)
        np.testing.assert_allclose(
            function(x).astype(np.longdouble), values, rtol=4 * eps, atol=4 * eps)


@each("dtype", ["float16", "float32", "float64", "longdouble"])
def test_gelu(dtype):
    x = np.concatenate([np.linspace(-12, 12, 2001), [0.0, 1e-4, -1e-4]]).astype(dtype)
    wide = x.astype(float)
    eps = max(np.finfo(dtype).eps, np.finfo(float).eps) * (8 + wide * wide)  # of the square
    limit = eps * np.abs(expected := wide * special.ndtr(wide)) + 2 * float(
        np.finfo(dtype).smallest_subnormal)
    assert (np.abs(activations.gelu(x).astype(float) - expected) <= limit).all()


def test_half_precision_is_rounded_once():
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        expected = exact(x)
        for function, values in zip((nn.sigmoid, nn.softplus), expected, strict=True):
            distance = np.abs(function(x).view(np.int16).astype(int)
                              - values.astype(np.float16).view(np.int16))
            assert distance[~np.isnan(x)].max() <= 1


@each("dtype", ["float16", "float32", "float64", "longdouble"])
@each("function", [activations.sigmoid, activations.softplus])
def test_all_strides(function, dtype):
    x = np.linspace(-5, 5, 1200).reshape(600, 2).astype(dtype)
    whole = function(x)
    np.testing.assert_array_equal(function(x[:, 1]), whole[:, 1])
    np.testing.assert_array_equal(function(x[::-3, 0]), whole[::-3, 0])
    result = np.zeros((600, 4), dtype)
    np.testing.assert_array_equal(function(x, out=result[:, ::2]), whole)


DERIVATIVES = {  # of sigmoid, by its value at x and at -x
    1: lambda s, t: s * t, 2: lambda s, t: s * t * (t - s),
    3: lambda s, t: s * t * ((t - s) ** 2 - 2 * s * t),
}


def nth(function, n):
    for _ in range(n):
        function = cytape.elementwise_grad(function)
    return function


@each("compiled", [False, True])
@each("dtype, rtol", [("float64", 1e-14), ("float32", 1e-5)])
def test_derivatives_of_every_order(dtype, rtol, compiled):
    x = np.array([0, -0.0, 40, -40, 80, -80, 800, -800, np.inf, -np.inf, 1.5, -1.5], dtype)
    s, t = exact(np.where(np.isinf(x), np.sign(x) * 1e4, x))[0], None
    t = exact(np.where(np.isinf(x), -np.sign(x) * 1e4, -x))[0]
    for order, formula in DERIVATIVES.items():
        for function, n in ((nn.sigmoid, order), (nn.softplus, order + 1)):
            run = nth(function, n)
            found = (cytape.function(run) if compiled else run)(cytape.constant(x))
            np.testing.assert_allclose(
                np.asarray(found), formula(s, t), rtol=rtol, atol=float(np.finfo(dtype).tiny))


@each("function, at_zero", [
    (nn.softplus, [np.log(2), 0.5, 0.25, 0.0, -0.125]), (nn.sigmoid, [0.5, 0.25, 0.0, -0.125, 0])])
def test_forward_mode_over_itself_and_over_tapes_at_zero(function, at_zero):
    def pushed(f):
        return lambda x: cytape.jvp(f, (x,), (cnp.ones_like(x),))[1]

    x = np.array([0.0, -0.0])
    for n, value in enumerate(at_zero):
        forward, mixed = function, function
        for i in range(n):
            forward = pushed(forward)
            mixed = pushed(mixed) if i % 2 else cytape.elementwise_grad(mixed)
        for run in (forward, mixed):
            np.testing.assert_allclose(np.asarray(run(x)), value, atol=1e-16)


def test_gradients_in_half_precision_and_nan():
    x = cytape.constant(np.array([0.0, 10.0, -10.0, np.nan, np.inf], np.float16))
    gradient = cytape.grad(lambda x: cnp.sum(nn.sigmoid(x)))(x).numpy()
    expected = 1 / (2 + 2 * np.cosh(np.array([0.0, 10.0, 10.0])))
    assert gradient.dtype == np.float16
    np.testing.assert_allclose(gradient[:3], expected, rtol=3e-3)
    assert np.isnan(gradient[3]) and gradient[4] == 0


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError):
        nn.sigmoid(cytape.constant(1j))
