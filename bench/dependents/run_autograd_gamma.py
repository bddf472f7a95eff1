"""Tests of autograd-gamma, whose sources come without any: values, and gradients by differences."""

import autograd.numpy as np
import autograd_gamma
import pytest
import scipy.special
from autograd import elementwise_grad
from numpy.testing import assert_allclose

X = np.array([0.3, 1.0, 2.5, 7.0])
FUNCTIONS = {
    "gammainc": (1.7, X), "gammaincc": (1.7, X), "gammaincln": (1.7, X), "gammainccln": (1.7, X),
    "gammaincinv": (1.7, X / 10), "gammainccinv": (1.7, X / 10), "betainc": (1.7, 2.3, X / 10),
    "betaincln": (1.7, 2.3, X / 10), "betaincinv": (1.7, 2.3, X / 10)}
CALLS = [(name, i) for name, args in FUNCTIONS.items() for i in range(len(args))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value(name):
    args = FUNCTIONS[name]
    theirs = getattr(scipy.special, name.removesuffix("ln"))(*args)
    assert_allclose(
        getattr(autograd_gamma, name)(*args), np.log(theirs) if name.endswith("ln") else theirs)


@pytest.mark.parametrize("name, argnum", CALLS)
def test_gradient(name, argnum):
    function, args = getattr(autograd_gamma, name), list(FUNCTIONS[name])
    args[argnum] = args[argnum] * np.ones(4)
    for _ in range(50):
        slopes = elementwise_grad(function, argnum)(*args)
    values = [function(*args[:argnum], args[argnum] + step, *args[argnum + 1:])
              for step in (-1e-5, 1e-5)]
    assert_allclose(slopes, (values[1] - values[0]) / 2e-5, rtol=1e-3, atol=1e-4)
