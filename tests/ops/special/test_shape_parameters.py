"""Derivatives in shape parameters: an error that names the argument, in all modes."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

special = pytest.importorskip("scipy.special")


@each("call, name", [
    (lambda a: special.gammainc(a, 2.0), "gammainc .* argument a"),
    (lambda a: special.betainc(a, 1.0, 0.5), "betainc .* argument a"),
    (lambda b: special.betainc(1.0, b, 0.5), "betainc .* argument b"),
    (lambda b: special.betaincc(1.0, b, 0.5), "betaincc .* argument b"),
    (lambda df: special.stdtr(df, 0.5), "stdtr .* argument df")])
def test_it_is_refused_in_every_mode(call, name):
    slope = cytape.grad(call)
    for derivative in (
            slope, cytape.function(slope), lambda x: cytape.vmap(slope)(np.array([x])),
            lambda x: cytape.jvp(call, (x,), (x,)), cytape.grad(slope)):
        with pytest.raises(NotDifferentiableError, match=name) as caught:
            derivative(1.5)
        assert isinstance(caught.value, NotImplementedError)  # autograd's error


def test_it_may_be_stopped():
    slope = cytape.grad(lambda a: special.gammainc(cytape.stop_gradient(a), a))(1.0)
    np.testing.assert_allclose(slope, np.exp(-1.0))
