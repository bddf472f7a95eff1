"""Draws without a derivative in their parameters; their numbers are in `tests/numpy`."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, UnconnectedGradientWarning
from cytape.ops.submodules import undifferentiated_draws
from tests.cases import each

# Draws whose parameter there is something to say of, with its name.
CONTINUOUS = {
    "beta": (lambda x: cnp.random.beta(2.0, x), "b"),
    "chisquare": (lambda x: cnp.random.chisquare(x), "df"),
    "dirichlet": (lambda x: cnp.random.dirichlet([1.0, x]), "alpha"),
    "f": (lambda x: cnp.random.f(x, 2.0, size=3), "dfnum"),
    "noncentral_chisquare": (lambda x: cnp.random.noncentral_chisquare(2, x), "nonc"),
    "noncentral_f": (lambda x: cnp.random.noncentral_f(2.0, x, 1.0), "dfden"),
    "standard_t": (lambda x: cnp.random.standard_t(x), "df"),
    "vonmises": (lambda x: cnp.random.vonmises(x, 2.0), "mu"),
    "wald": (lambda x: cnp.random.wald(x, x), "mean"),
}
DISCRETE = {
    "geometric": (lambda x: cnp.random.geometric(x), "p"),
    "logseries": (lambda x: cnp.random.logseries(x), "p"),
    "multinomial": (lambda x: cnp.random.multinomial(9, [x, 1 - x]), "pvals"),
    "negative_binomial": (lambda x: cnp.random.negative_binomial(x, 0.5), "n"),
    "zipf": (lambda x: cnp.random.zipf(x + 1), "a"),
}
EXACT = {"hypergeometric"}  # of integers alone
X = cytape.constant(0.5)


def test_all_are_here():
    assert {*CONTINUOUS, *DISCRETE, *EXACT} == set(undifferentiated_draws.__all__)


@each("name", [*CONTINUOUS, *DISCRETE])
def test_a_parameter_that_is_recorded_is_an_error(name):
    draw, parameter = {**CONTINUOUS, **DISCRETE}[name]
    message = rf"numpy\.random\.{name} has no derivative in {parameter}, .*stop_gradient"
    with pytest.raises(DetachedError, match=message):
        cytape.grad(lambda x: x * np.sum(draw(x)))(X)
    with pytest.raises(DetachedError, match=message):
        cytape.jvp(lambda x: x * np.sum(draw(x)), (X,), (X,))
    assert cytape.grad(lambda x: x * x + np.sum(draw(cytape.stop_gradient(x))))(X) == 1.0


@each("name", CONTINUOUS)
def test_in_a_trace_its_derivative_is_an_error(name):
    draw, parameter = CONTINUOUS[name]
    f = cytape.function(lambda x, y: cnp.sum(y * draw(x)))
    message = rf"numpy\.random\.{name} has no derivative in {parameter},"
    assert np.isfinite(f(X, X))
    with pytest.raises(DetachedError, match=message):
        cytape.grad(f)(X, X)
    with pytest.raises(DetachedError, match=message):
        cytape.jvp(f, (X, X), (X, X))
    cnp.random.seed(3)
    value = f(X, X)
    cnp.random.seed(3)
    np.testing.assert_allclose(cytape.grad(f, argnums=1)(X, X) * X, value)
    stopped = cytape.function(lambda x: cnp.sum(x * draw(cytape.stop_gradient(x))))
    cnp.random.seed(3)
    np.testing.assert_allclose(cytape.grad(stopped)(X) * X, value)


@each("name", DISCRETE)
def test_in_a_trace_derivatives_leave_counts_out(name):
    draw, parameter = DISCRETE[name]
    f = cytape.function(lambda x: cnp.sum(x * draw(x)))
    message = rf"random\.{name}, called in .*, line \d+, has no derivative in {parameter}:"
    cnp.random.seed(3)
    value = f(X)
    cnp.random.seed(3)
    with pytest.warns(UnconnectedGradientWarning, match=message):
        np.testing.assert_allclose(cytape.grad(f)(X) * X, value)


def test_single_precision_is_that_of_all_tensors():
    single, double = cytape.constant(np.ones(2, np.float32)), cytape.constant(np.ones(2))
    for draw in (cnp.random.beta, cytape.function(cnp.random.beta)):
        assert draw(single, 2.0).dtype == np.float32
        assert draw(single, double).dtype == np.float64
    assert cnp.random.dirichlet(single).dtype == np.float32


@each("place", [lambda f: f, cytape.function], ids=["eager", "function"])
@each("draw", [
    lambda: cnp.random.beta(-1.0, 2.0), lambda: cnp.random.zipf(0.5),
    lambda: cnp.random.multinomial(3, [0.75, 0.75, 0.75]), lambda: cnp.random.geometric(2.0),
    lambda: cnp.random.dirichlet([[1.0]]), lambda: cnp.random.f([1.0, 2.0], [1.0, 2.0, 3.0]),
])
def test_parameters_out_of_range_are_errors_at_once(draw, place):
    with pytest.raises(ValueError):  # noqa: PT011
        place(draw)()


def test_a_seed_of_a_call_decides_alone():
    first, second = (cnp.random.beta(2.0, 3.0, 4, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, np.random.default_rng(4).beta(2.0, 3.0, 4))


def test_vectors_of_unknown_length_and_number():
    f = cytape.function(
        lambda x, y: cnp.random.dirichlet(x, size=y.shape),
        input_signature=[cytape.Spec.of((None,), float), cytape.Spec.of((2, None), float)])
    drawn = f(np.ones(4), np.ones((2, 3)))
    assert drawn.shape == (2, 3, 4)
    np.testing.assert_allclose(np.sum(drawn, -1), 1.0)
