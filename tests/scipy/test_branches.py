"""Right-hand sides and integrands that branch by values: their derivatives, and few calls."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests.cases import each

pytest.importorskip("scipy")
from cytape.scipy.integrate import quad, solve_ivp  # noqa: E402

START, RATES = np.array([2.0, 1.0]), np.array([1.5, 0.7])
OPTIONS = {"rtol": 1e-6, "atol": 1e-6}
N_CALLS = [0]


def by_time(t, y, rates):
    speed = rates[0] if t < 0.3 else 2 * rates[1]
    return [-speed * y[0], speed * y[0] - y[1]]


def by_time_as_where(t, y, rates):
    speed = cnp.where(t < 0.3, rates[0], 2 * rates[1])
    return [-speed * y[0], speed * y[0] - y[1]]


def by_state(t, y, rates):
    if y[0] > 1.5:
        return [-rates[0] * y[0], y[0]]
    return [-rates[0] * (3 - y[0]), y[0] * rates[1]]


def by_state_as_where(t, y, rates):
    is_high = y[0] > 1.5
    return [-rates[0] * cnp.where(is_high, y[0], 3 - y[0]),
            y[0] * cnp.where(is_high, 1, rates[1])]


def by_rate_and_state(t, y, rates):
    if rates[0] > 2:
        return [-y[0], y[1] ** 2]
    if y[0] > 1.5:
        return [-rates[0] * y[0], y[0]]
    return [-rates[0] * (3 - y[0]), y[0] * rates[1]]


def by_steps(t, y, rates):
    """Branch in more ways than are computed in groups."""
    for i in range(40):
        if t < i / 40:
            break
    return [-rates[0] * y[0] / (1 + 0 * i), y[0] - rates[1] * y[1]]


def plainly(t, y, rates):
    return [-rates[0] * y[0], y[0] - rates[1] * y[1]]


def solved(rhs, **options):
    return lambda y0, rates: solve_ivp(
        rhs, (0, 1), y0, args=(rates,), **OPTIONS | options).y[:, -1]


@each("branching, other", [(by_time, by_time_as_where), (by_state, by_state_as_where),
                           (by_rate_and_state, by_state_as_where), (by_steps, plainly)])
def test_derivatives_are_those_without_branches(branching, other):
    further = {by_state: {"method": "Radau"}, by_time: {"gradient": "forward"}}.get(branching)
    for options in [{}] if further is None else [{}, further]:
        expected = cytape.jacobian(solved(other, **options), (0, 1))(START, RATES)
        for _ in range(4 if branching is not by_steps else 1):  # then traced
            found = cytape.jacobian(solved(branching, **options), (0, 1))(START, RATES)
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_allclose(x, y, 1e-7, 1e-9)
    tangents = [cytape.jvp(lambda rates: solved(f)(START, rates), (RATES,), (np.ones(2),))[1]  # noqa: B023
                for f in (branching, other)]
    np.testing.assert_allclose(*tangents, 1e-7)
    if branching is by_time:
        seconds = [cytape.hessian(lambda rates: solved(f)(START, rates)[1])(RATES)  # noqa: B023
                   for f in (branching, other)]
        np.testing.assert_allclose(*seconds, 1e-5, 1e-8)


def test_functions_of_unknown_reads_are_called_few_times():
    def counted(t, y, rates):
        N_CALLS[0] += 1
        return by_time(t, y, rates)

    cytape.grad(lambda rates: solved(counted)(START, rates)[0])(RATES)
    with_gradient, N_CALLS[0] = N_CALLS[0], 0
    solved(counted)(cytape.constant(START), RATES)
    assert 0 < with_gradient < 2 * N_CALLS[0]  # 9,000 at one time after the other


def test_integrands_with_branches():
    def kinked(x, rate):
        return cnp.exp(-rate * x) if x < 1 else cnp.exp(-rate) * (2 - x)

    def smooth(x, rate):
        return cnp.where(x < 1, cnp.exp(-rate * x), cnp.exp(-rate) * (2 - x))

    def by_rate(x, rate):
        return rate * x if rate > 2 else kinked(x, rate)

    gradients = [cytape.grad(lambda rate: quad(f, 0, 2, (rate,))[0])  # noqa: B023
                 for f in (kinked, by_rate, smooth)]
    for _ in range(4):
        expected = gradients[2](1.3)
        np.testing.assert_allclose([f(1.3) for f in gradients[:2]], [expected] * 2, 1e-9)
    check_grads(lambda rate: quad(kinked, 0, 2, (rate,), points=[1.0])[0], [1.3], order=2)
