"""Minima with constraints: exact Jacobians, structures, derivatives by the conditions of Karush,
Kuhn and Tucker.
"""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import NotDifferentiableError
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.optimize")
ours = pytest.importorskip("cytape.scipy.optimize")

A = np.array([0.3, 2.0])
ON_A_LINE = {"type": "eq", "fun": lambda x: x[0] + x[1] - 1}
FREE = (None, None)
CASES = {
    "equation": (ON_A_LINE, None),
    "active": ({"type": "ineq", "fun": lambda x: 1 - x[0] ** 2 - x[1] ** 2}, None),
    "inactive": ({"type": "ineq", "fun": lambda x: 9 - x[0] ** 2 - x[1] ** 2}, None),
    "both": ([ON_A_LINE, {"type": "ineq", "fun": lambda x: cnp.array([x[0] - 0.1, 9 - x[1]])}],
             None),
    "upper limit": (scipys.NonlinearConstraint(lambda x: x[0] * x[1], -np.inf, 0.2), None),
    "linear": (scipys.LinearConstraint([[1.0, 1.0]], 1, 1), None),
    "active bound": (scipys.LinearConstraint([[1.0, 1.0]], 1, 1), [(0.2, None), FREE]),
    "inactive bound": (scipys.LinearConstraint([[1.0, 1.0]], 1, 1), [(-3, None), (None, 3)]),
}


def cost(x, a):
    return cnp.sum((x - a) ** 2) + 0.1 * cnp.sum(x**4)


def smallest(a, constraints, bounds=None, method="SLSQP", tol=1e-12):
    return ours.minimize(
        cost, np.array([0.5, 0.4]), (a,), method, bounds=bounds, constraints=constraints, tol=tol).x


@each(name=CASES)
def test_derivatives_are_those_of_solving_again(name):
    check_grads(lambda a: smallest(a, *CASES[name]), [A], rtol=1e-4, atol=1e-6)


def test_derivatives_on_all_ways():
    def f(a):
        return cnp.sum(cnp.sin(smallest(a, ON_A_LINE)))

    def newton(a):
        x = 0.5
        for _ in range(8):
            slope = cytape.grad(lambda x: cost(cnp.stack([x, 1 - x]), a))
            x = x - slope(x) / cytape.grad(slope)(x)
        return cnp.sin(x) + cnp.sin(1 - x)

    ways.check(f, newton, A, rtol=1e-6, atol=1e-7)


def test_derivatives_in_arguments_of_constraints():
    def f(a, b):
        return ours.minimize(
            cost, np.zeros(2), (a,), tol=1e-12,
            constraints={"type": "eq", "fun": lambda x, b: x[0] + b * x[1] - 1, "args": (b,)}).x

    check_grads(f, [A, 1.5])
    # The multiplier is the derivative of the value in the limit.
    value = cytape.grad(lambda limit: ours.minimize(
        cost, np.zeros(2), (A,), tol=1e-12, constraints={
            "type": "eq", "fun": lambda x, limit: x[0] + x[1] - limit, "args": limit}).fun)(1.0)
    x = smallest(A, ON_A_LINE)
    np.testing.assert_allclose(value, 2 * (x[0] - A[0]) + 0.4 * x[0] ** 3, 1e-6)


@pytest.mark.exhaustive
@each("method", ["SLSQP", "trust-constr", "COBYLA"])
def test_methods_get_exact_jacobians(method):
    calls = []

    def circle(x):
        calls.append(type(x))
        return 1 - x[0] ** 2 - x[1] ** 2

    for constraint in ({"type": "ineq", "fun": circle},
                       scipys.NonlinearConstraint(circle, 0, np.inf)):
        del calls[:]
        found = smallest(A, constraint, method=method, tol=1e-8)
        np.testing.assert_allclose(found @ found, 1, 1e-3)
        assert (cytape.Tensor in calls) == (method != "COBYLA")
    given = {"type": "ineq", "fun": circle, "jac": lambda x: -2 * x}
    del calls[:]
    np.testing.assert_allclose(smallest(A, given), smallest(A, CASES["active"][0]), 1e-6)
    assert cytape.Tensor not in calls


def test_jacobians_are_computed_by_rows_if_these_are_few(monkeypatch):
    jacobians, calls = pytest.importorskip("cytape.scipy.optimize.exact_jacobians"), []
    monkeypatch.setattr(
        jacobians, "jvp", lambda *args, **options: calls.append(1) or cytape.jvp(*args, **options))
    x = np.linspace(0, 1, 300)
    for n_rows, n_calls in (1, 0), (4, 0), (250, 3):
        weights, calls[:] = np.sin(np.arange(300.0 * n_rows)).reshape(n_rows, 300), []
        found = jacobians.jacobian_of(lambda x: cnp.tanh(weights @ x), x)  # noqa: B023
        np.testing.assert_allclose(
            found, weights / np.cosh(weights @ x)[:, None] ** 2, 1e-12, 1e-14)
        assert len(calls) == n_calls


def test_structures():
    start, target = {"u": np.ones(2), "v": 1.0}, cytape.constant(2.0)
    constraint = {"type": "eq", "fun": lambda p, t: p["u"][0] + p["v"] - t}
    for t in (2.0, target):
        x = ours.minimize(lambda p: cnp.sum(p["u"] ** 2) + p["v"] ** 2, start,
                          constraints=constraint | {"args": (t,)}).x
        np.testing.assert_allclose(x["u"], [1, 0], atol=1e-6)
        np.testing.assert_allclose(x["v"], 1, 1e-6)


def test_a_failed_run_has_no_derivative():
    nowhere = [ON_A_LINE, {"type": "ineq", "fun": lambda x: x[0] + x[1] - 5}]
    with pytest.raises(NotDifferentiableError, match="failed"):
        cytape.grad(lambda a: smallest(a, nowhere)[0])(A)
    with pytest.raises(TypeError, match="missing type|type"):
        ours.minimize(cost, np.zeros(2), (A,), constraints=[{"type": 3, "fun": lambda x: x}])
