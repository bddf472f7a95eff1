"""Mantissa and exponent, fractional and integral part: values and derivatives."""

import warnings

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each


def test_two_outputs():
    x = cytape.constant([2.75, -0.5])
    for name in ("modf", "frexp"):
        for function in (getattr(cnp, name), getattr(np, name)):
            for actual, expected in zip(function(x), getattr(np, name)(x.numpy()), strict=True):
                np.testing.assert_array_equal(actual.numpy(), expected)
    assert cytape.grad(lambda x: cnp.modf(x)[0])(2.75) == 1
    assert cytape.grad(lambda x: cnp.frexp(x)[0])(2.75) == 0.25


def test_a_number_of_python_is_an_exponent_in_graphs_too():
    f = cytape.function(lambda x: np.ldexp(x, 2))
    assert f(3.0) == np.ldexp(3.0, 2) == 12
    assert cytape.grad(f)(3.0) == 4


@each("dtype", ["float16", "float32", "float64"])
def test_slopes_below_the_normal_numbers_are_infinite_without_a_warning(dtype):
    x = np.array([np.finfo(dtype).smallest_subnormal, 3.0], dtype)
    slope = cytape.elementwise_grad(lambda x: np.frexp(x)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in slope, cytape.function(slope):
            np.testing.assert_array_equal(f(x), np.array([np.inf, 0.25], dtype), strict=True)
