"""Derivatives that are missing: an error that names the argument, in all modes."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

special = pytest.importorskip("scipy.special")


def thrice(f):
    return cytape.grad(cytape.grad(f))


@each("call, name", [
    (lambda v: special.jv(v, 2.0), "jv .* argument v"),
    (lambda df: special.chndtr(2.0, df, 1.0), "chndtr .* argument df"),
    (thrice(lambda a: special.gammainc(a, 2.0)), "gammainc has no third .* argument a"),
    (thrice(lambda b: special.betainc(1.0, b, 0.5)), "betainc has no third .* argument b"),
    (thrice(lambda df: special.stdtr(df, 0.5)), "stdtr has no third .* argument df")])
def test_it_is_refused_in_every_mode(call, name):
    slope = cytape.grad(call)
    for derivative in (
            slope, cytape.function(slope), lambda x: cytape.vmap(slope)(np.array([x])),
            lambda x: cytape.jvp(call, (x,), (x,)), cytape.grad(slope)):
        with pytest.raises(NotDifferentiableError, match=name) as caught:
            derivative(1.5)
        assert isinstance(caught.value, NotImplementedError)  # autograd's error


def test_it_may_be_stopped():
    slope = cytape.grad(lambda v: special.jv(cytape.stop_gradient(v), v))(1.0)
    np.testing.assert_allclose(slope, special.jvp(1.0, 1.0))


@each("name, given", [
    ("jv", (0.3,)), ("hyp2f1", (0.5, 1.5, 0.3)), ("eval_legendre", (0.3,)),
    ("eval_jacobi", (0.5, 1.5, 0.3)), ("spherical_jn", (0.3,))])
def test_complex_ones_are_refused(name, given):
    ours = pytest.importorskip("cytape.scipy.special")
    for call in (getattr(ours, name), cytape.function(getattr(ours, name))):
        with pytest.raises(TypeError):
            call(cytape.constant(1 + 2j), *given)
