"""Users' functions that store the result of their last call, and return it for equal arguments."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.kept_traces import identity_of
from cytape.scipy.optimize import (
    curve_fit,
    least_squares,
    minimize,
    newton,
    root,
    root_scalar,
)
from cytape.scipy.optimize.exact_jacobians import jacobian_of
from cytape.testing import check_grads

START, TIMES = np.ones(2), np.linspace(0, 3, 20)
DATA = 2 * np.exp(-0.7 * TIMES) + 0.1 * np.cos(5 * TIMES)


class Model:
    """Powers and decays, with or without the last ones stored."""

    def __init__(self, stores):
        self.stores, self.last, self.found = stores, None, None

    def stored(self, x, compute):
        if not self.stores:
            return compute(x)
        if self.last is None or not np.array_equal(x, self.last):
            self.found, self.last = compute(x), np.copy(x)
        return self.found

    def decay(self, x):
        return self.stored(x, lambda x: x[0] * cnp.exp(-x[1] * TIMES)) - DATA

    def penalised(self, x):  # of which a part is connected without the stored one
        return cnp.concatenate([self.decay(x), 0.1 * x])

    def decay_of_times(self, t, a, k):
        return self.stored(cnp.array([a, k]), lambda x: cnp.exp(-x[1] * t)) * a

    def powers(self, x):
        return self.stored(x, lambda x: cnp.array([x[0] ** 2, x[1] ** 3])) - 2

    def cubes(self, x):
        return self.stored(x, lambda x: x**3 + x) - np.arange(x.size)

    def size(self, x):
        return cnp.sum((self.powers(x) - 1) ** 2)

    def power(self, x):
        return self.stored(x, lambda x: x**2) + x - 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solve", [
    lambda m: least_squares(m.decay, START).x,
    lambda m: least_squares(m.penalised, START).x,
    lambda m: least_squares(m.penalised, START, jac_sparsity=np.ones((22, 2))).x,
    lambda m: curve_fit(m.decay_of_times, TIMES, DATA, START)[0],
    lambda m: least_squares(m.cubes, np.ones(130)).x,
    lambda m: minimize(
        lambda x: cnp.sum((x - 2) ** 2), np.ones(130), method="SLSQP", constraints={
            "type": "eq", "fun": lambda x: cnp.sum(m.cubes(x))}).x,
    *[lambda m, method=method: root(m.powers, START, method=method).x
      for method in ("hybr", "lm", "newton")],
    *[lambda m, method=method: minimize(m.size, START, method=method, tol=1e-9).x
      for method in ("Newton-CG", "trust-exact")],
    lambda m: minimize(
        m.size, START, method="SLSQP", tol=1e-12, constraints={
            "type": "ineq", "fun": lambda x: 0.5 - m.powers(x)}).x,
    lambda m: newton(m.power, 1.0),
    lambda m: root_scalar(m.power, x0=1.0).root,
    lambda m: root_scalar(m.power, x0=1.0, method="halley").root])
def test_solutions(solve):
    np.testing.assert_allclose(solve(Model(True)), solve(Model(False)), rtol=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("transform", [cytape.jacrev, cytape.jacfwd])
@pytest.mark.parametrize("solve", [
    lambda f, a: root(f, START, (a,)).x,
    lambda f, a: least_squares(f, START, args=(a,)).x,
    lambda f, a: minimize(lambda x, a: cnp.sum(f(x, a) ** 2), START, (a,), tol=1e-9).x])
def test_derivatives_of_solutions(solve, transform):
    def solved(a, stores):
        model = Model(stores)

        def residual(x, a):
            both = cnp.concatenate([x, a])
            return model.stored(
                both, lambda x: cnp.array([x[0] ** 2 + x[2], x[1] ** 3 - x[3] * x[0]])) - 2 * a

        return solve(residual, a)

    stored, computed = [transform(solved)(np.ones(2), stores) for stores in (True, False)]
    np.testing.assert_allclose(stored, computed, rtol=1e-4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", [
    "BFGS", "L-BFGS-B", "CG", "TNC", "SLSQP", "Newton-CG", "trust-exact", "trust-constr"])
def test_minimize_after_a_call_at_the_start(method):
    model = Model(True)
    model.size(START)
    found = minimize(model.size, START, method=method, tol=1e-9).x
    np.testing.assert_allclose(found, [3**0.5, 3 ** (1 / 3)], rtol=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("transform", [cytape.grad, cytape.jacfwd])
@pytest.mark.parametrize("solve", [
    lambda f, a: root_scalar(f, args=(a,), x0=1.0).root,
    lambda f, a: root(f, np.ones(1), (a,)).x[0],
    lambda f, a: least_squares(f, np.ones(1), args=(a,)).x[0]])
def test_stored_function_of_parameters(solve, transform):
    def solved(a, stores):
        model = Model(stores)
        return solve(lambda x, a: x**3 + x * model.stored(a, cnp.exp) - a, a)

    stored, computed = [transform(solved)(0.7, stores) for stores in (True, False)]
    np.testing.assert_allclose(stored, computed, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_error_at_larger_numbers():
    model = Model(True)

    def square(x):
        if cytape.stop_gradient(x) > 1:
            raise ValueError("outside")
        return model.stored(x, lambda x: x**2)

    def solved(a):
        return root_scalar(lambda x, a: square(x) + x - a, (a,), "bisect", (0.0, 1.0)).root

    np.testing.assert_allclose(cytape.grad(solved)(2.0), 1 / 3)


def test_errors_of_signal_handlers_are_raised():
    def late(x):
        if not isinstance(x, cytape.Tensor) and x[0] > 1:
            raise TimeoutError
        return Model(True).size(x)

    with pytest.raises(TimeoutError):
        minimize(late, START)


@pytest.mark.filterwarnings("error")
def test_products_with_the_jacobian(monkeypatch):
    monkeypatch.setattr("cytape.scipy.optimize.implicit.LARGEST_DENSE", 2)

    def solved(a, stores):
        model = Model(stores)
        return cnp.sum(root(lambda x, a: model.cubes(x) + x / 2 - a, np.ones(4), (
            a * np.ones(4),), method="newton").x)

    stored, computed = [cytape.grad(solved)(1.0, stores) for stores in (True, False)]
    np.testing.assert_allclose(stored, computed, rtol=1e-8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["newton", "hybr"])
def test_second_derivative(method):
    def solved(a, stores):
        model = Model(stores)
        return cnp.sum(root(lambda x, a: model.cubes(x) + x / 2 - a, np.ones(3), (
            a * np.ones(3),), method=method).x)

    stored, computed = [cytape.grad(cytape.grad(solved))(1.0, stores) for stores in (True, False)]
    np.testing.assert_allclose(stored, computed, rtol=1e-8)


@pytest.mark.parametrize("reads", [0, 1])
def test_calls_of_jacobian_of(reads):
    calls = []

    def cubes(x):
        calls.append(isinstance(x, cytape.Tensor))
        return x**3

    jacobian_of(cubes, np.ones(300), identity_of(cnp.exp) if reads else None)
    assert calls.count(False) == (1 if reads else 4)


@pytest.mark.parametrize("method, fraction", [("SLSQP", 0.0), ("Newton-CG", 0.6)])
def test_calls_by_method(method, fraction):
    calls, unknown = [], np.zeros(1000)  # too large to be compared

    def size(x):
        calls.append(isinstance(x, cytape.Tensor))
        return cnp.sum((x - unknown[0]) ** 4)

    minimize(size, START, method=method, constraints={
        "type": "ineq", "fun": lambda x: x[0] - 0.5} if method == "SLSQP" else ())
    n_exact = calls.count(True)
    assert n_exact > 5 and calls.count(False) <= 2 + fraction * n_exact  # 2: at the start


def test_objective_and_constraint_with_one_cache():
    def solved(a):
        cache = {"last": None}

        def both(x, a):
            cache["last"] = cnp.sum((x - a) ** 2), x[0] * x[1] - a[0]
            return cache["last"]

        return minimize(
            lambda x, a: both(x, a)[0], [1.0, 2.0], (a,), method="SLSQP", tol=1e-12, constraints={
                "type": "eq", "fun": lambda x, a: both(x, a)[1], "args": (a,)}).x[0]

    check_grads(solved, [np.array([1.0, 1.5])], order=1, rtol=1e-4)
