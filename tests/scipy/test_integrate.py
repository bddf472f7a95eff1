"""`odeint`: SciPy's values, gradients by the adjoint equation, structures of arguments, errors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.testing import check_grads

scipys = pytest.importorskip("scipy.integrate")
ours = pytest.importorskip("cytape.scipy.integrate")

TIMES = np.array([0.0, 0.3, 1.0, 1.2])
FINE = {"rtol": 1e-10, "atol": 1e-10}


def lotka_volterra(y, t, rates):
    prey, predators = y
    return cnp.array([
        prey * (rates["birth"] - predators), predators * (rates["gain"] * prey - 1) + 0.1 * t])


RATES = {"birth": 1.1, "gain": 0.4}
START = np.array([1.0, 0.5])


def test_values_are_scipys():
    expected = scipys.odeint(lotka_volterra, START, TIMES, (RATES,))
    np.testing.assert_array_equal(ours.odeint(lotka_volterra, START, TIMES, (RATES,)), expected)
    found = ours.odeint(lotka_volterra, cytape.constant(START), TIMES, (RATES,))
    np.testing.assert_array_equal(found, expected)


def test_derivatives_in_start_times_and_structures_of_arguments():
    def f(y0, t, birth, gain):
        return ours.odeint(lotka_volterra, y0, t, ({"birth": birth, "gain": gain},), **FINE)

    check_grads(f, [START, TIMES + 0.1, 1.1, 0.4], order=1)


def test_second_derivatives():
    def f(y0, rate):
        return ours.odeint(lambda y, t, rate: -rate * y**2, y0, [0.0, 1.0], (rate,), **FINE)[-1, 0]

    # y = y0 / (1 + rate y0)
    hessian = cytape.hessian(f, argnums=(0, 1))(2.0, 0.5)
    np.testing.assert_allclose(
        np.array(hessian, float).reshape(2, 2), [[-0.125, -0.5], [-0.5, 2.0]], 1e-6)


def test_traced_and_forward():
    def f(rate):
        return ours.odeint(lambda y, t, rate: -rate * y, 1.0, [0.0, 1.0], (rate,), **FINE)[-1, 0]

    expected = -np.exp(-2.0)
    for slope in (cytape.grad(f), cytape.function(cytape.grad(f)),
                  lambda x: cytape.jvp(f, (x,), (1.0,))[1]):
        np.testing.assert_allclose(slope(2.0), expected, 1e-7)


def test_the_order_of_arguments_and_a_right_hand_side_without_y():
    y0 = cytape.constant([1.0])
    found = ours.odeint(lambda t, y, a: -a * y, y0, TIMES, (2.0,), tfirst=True)
    np.testing.assert_allclose(found[:, 0], np.exp(-2 * TIMES), 1e-6)
    slope = cytape.grad(lambda y0: ours.odeint(lambda y, t: [2 * t], y0, [0.0, 1.0])[-1, 0])(1.0)
    assert slope == 1.0
    slope = cytape.grad(
        lambda a: ours.odeint(lambda y, t, a: [a], 0.0, [0.0, 2.0], (a,))[-1, 0])(1.0)
    np.testing.assert_allclose(slope, 2.0, 1e-7)


def test_derivatives_in_captured_tensors_are_not_lost_silently():
    for y0 in (1.0, cytape.constant(1.0)):
        with pytest.raises(DetachedError, match="odeint: .* `args`"):
            cytape.grad(lambda k: ours.odeint(
                lambda y, t: -k * y, y0, [0.0, 1.0])[-1, 0])(2.0)  # noqa: B023
    with pytest.raises(TypeError, match="full_output"):
        ours.odeint(lambda y, t: -y, cytape.constant(1.0), [0.0, 1.0], full_output=True)
    assert ours.RK45 is scipys.RK45 and "odeint" in dir(ours)


def test_results_of_one_number_fit_a_state_of_one_as_in_scipy():
    for rhs in (lambda t, y, k: -k * y[0]), (lambda t, y, k: [-k * y]):
        f = cytape.grad(lambda k, rhs=rhs: ours.solve_ivp(
            rhs, (0, 1), [1.0], args=(k,), **FINE).y[0, -1])
        np.testing.assert_allclose(f(0.7), -np.exp(-0.7), rtol=1e-8)


def test_a_result_with_too_few_numbers_is_named():
    with pytest.raises(ValueError, match=r"solve_ivp: .* shape \(1,\) for a state of shape \(2,\)"):
        cytape.grad(lambda k: ours.solve_ivp(
            lambda t, y, k: [k * y[1]], (0, 1), [1.0, 2.0], args=(k,)).y[0, -1])(1.0)
