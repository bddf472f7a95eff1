"""Least squares and curve fitting: exact Jacobians, implicit derivatives, sparse Jacobians."""

import warnings

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
sparse = pytest.importorskip("scipy.sparse")

T = np.linspace(0, 3, 12)
Y = 2 * np.exp(-0.7 * T) + 0.3 + 0.1 * np.random.default_rng(0).normal(size=12)
SIGMA = np.linspace(0.1, 0.2, 12)
FINE = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}


def decay(t, a, b, c):
    return a * cnp.exp(-b * t) + c


def residuals(p, y):
    return decay(T, p[0], p[1], p[2]) - y


def cauchy(z):
    return cnp.stack([cnp.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])


def fitted(y, start=1.0, **options):
    return ours.least_squares(residuals, np.full(3, start), args=(y,), **FINE, **options)


@pytest.mark.exhaustive
@each("loss, scale", [
    ("linear", 1), ("soft_l1", 0.1), ("huber", 0.07), ("cauchy", 0.1), ("arctan", 0.1),
    (cauchy, 0.1)])
def test_losses(loss, scale):
    options = {"loss": loss, "f_scale": scale}
    check_grads(lambda y: fitted(y, **options).x, [Y], order=1, rtol=1e-4)
    found = fitted(cytape.constant(Y), **options)
    expected = scipys.least_squares(
        residuals, np.ones(3), args=(Y,), **FINE, loss="cauchy" if callable(loss) else loss,
        f_scale=scale)
    np.testing.assert_allclose(found.x, expected.x, 1e-6)
    np.testing.assert_allclose(found.cost, expected.cost, 1e-9)
    np.testing.assert_allclose(found.fun, expected.fun, 1e-6, 1e-8)


@each("method", ["trf", "dogbox", "lm"])
def test_methods_get_the_exact_jacobian(method):
    def exact(p, y):
        return np.array([np.exp(-p[1] * T), -p[0] * T * np.exp(-p[1] * T), np.ones(T.size)]).T

    options = {"args": (Y,), "method": method}
    expected = scipys.least_squares(residuals, np.ones(3), exact, **options)
    found = ours.least_squares(residuals, np.ones(3), **options)
    np.testing.assert_allclose(found.x, expected.x, 1e-5)
    assert found.nfev == expected.nfev
    np.testing.assert_allclose(found.jac, expected.jac, 1e-5, 1e-7)
    for jac in (exact, "2-point"):
        np.testing.assert_allclose(
            ours.least_squares(residuals, np.ones(3), jac, **options).x, expected.x, 1e-5)


def test_derivatives_on_all_ways():
    def f(y):
        return cnp.sum(cnp.sin(fitted(y).x))

    def newton(y):
        p = cnp.stack(list(scipys.least_squares(residuals, np.ones(3), args=(Y,)).x))
        cost = cytape.grad(lambda p: cnp.sum(residuals(p, y) ** 2))
        for _ in range(4):
            p = p - cnp.linalg.solve(cytape.jacfwd(cost)(p), cost(p))
        return cnp.sum(cnp.sin(p))

    ways.check(f, newton, Y, rtol=1e-5, atol=1e-7)


def test_a_jacobian_solves_a_differential_equation_once(monkeypatch):
    integrate, count = pytest.importorskip("scipy.integrate"), 0
    solve_ivp, ours_ivp = integrate.solve_ivp, pytest.importorskip("cytape.scipy.integrate")

    def counted(*args, **options):
        nonlocal count
        count += 1
        return solve_ivp(*args, **options)

    def model(t, a, b, c):
        return ours_ivp.solve_ivp(
            lambda t, y, b, c: -b * (y - c), (0, 3), [a], t_eval=T, args=(b, c), rtol=1e-8).y[0]

    monkeypatch.setattr(integrate, "solve_ivp", counted)
    found = ours.least_squares(lambda p: model(T, p[0], p[1], p[2]) - Y, np.ones(3))
    assert found.success and found.njev > 4
    assert count <= found.nfev + found.njev
    count = 0
    p, _, infodict, *_ = ours.curve_fit(model, T, Y, bounds=(0, 9), full_output=True)
    np.testing.assert_allclose(p, found.x, 1e-3)
    assert count <= 2 * infodict["nfev"]


def test_bounds_and_structures():
    def f(y, upper):
        result = ours.least_squares(
            lambda p, y: decay(T, p["a"], *p["rest"]) - y, {"a": 1.0, "rest": np.full(2, 0.3)},
            args=(y,), bounds=(-np.inf, {"a": 9.0, "rest": upper * np.ones(2)}), **FINE)
        return cnp.concatenate([[result.x["a"]], result.x["rest"]])

    found = cytape.jacobian(f, argnums=1)(Y, 0.5)
    np.testing.assert_allclose(found[1], 1, 1e-9)
    check_grads(f, [Y, 0.5], order=1, rtol=1e-3)
    limits = scipys.Bounds([-9, -9, -9], [9, 0.5, 9])
    np.testing.assert_allclose(fitted(cytape.constant(Y), bounds=limits, start=0.3).x[1], 0.5, 1e-6)


def test_sparse_jacobians():
    def differences(x, a):
        return cnp.concatenate([x[1:] - cnp.sin(x[:-1]), x[:1] - a])

    n = 30
    pattern = sparse.lil_array((n, n), dtype=int)
    pattern[range(n - 1), range(n - 1)] = pattern[range(n - 1), range(1, n)] = 1
    pattern[n - 1, 0] = 1
    options = {"args": (1.1,), "tr_solver": "lsmr"}
    dense = ours.least_squares(differences, np.ones(n), **options)
    found = ours.least_squares(differences, np.ones(n), jac_sparsity=pattern, **options)
    assert sparse.issparse(found.jac)
    np.testing.assert_allclose(found.jac.toarray(), dense.jac, 1e-4, 1e-4)
    np.testing.assert_allclose(found.x[:3], [1.1, np.sin(1.1), np.sin(np.sin(1.1))], 1e-4)
    with pytest.raises(ValueError, match="dense Jacobian"):
        ours.least_squares(differences, np.ones(n), method="lm", jac_sparsity=pattern, args=(1.0,))


@each("loss", ["soft_l1", "huber", "cauchy", "arctan", cauchy])
def test_covariance_of_robust_fits(loss):
    options = {"loss": loss, "f_scale": 0.8, "method": "trf", "xtol": 1e-13, "gtol": 1e-13}
    outlying = Y + 0.2 * (np.arange(len(Y)) == 2)
    for sigma, is_absolute in ((None, False), (SIGMA, True)):
        def covariance(y):
            return ours.curve_fit(
                decay, T, y, None, sigma, is_absolute, **options)[1]  # noqa: B023

        expected = scipys.curve_fit(decay, T, outlying, None, sigma, is_absolute, **options)[1]
        np.testing.assert_allclose(covariance(cytape.constant(outlying)), expected, 1e-5)
    if loss != "arctan":  # whose minima for this outlier are ill-conditioned
        check_grads(covariance, [outlying], order=1, rtol=1e-3)


def test_curve_fit():
    covariance = np.diag(SIGMA) + 0.05

    def all_of(y, t, sigma, **options):
        p, pcov = ours.curve_fit(decay, t, y, sigma=sigma, ftol=1e-14, xtol=1e-14, **options)
        return cnp.concatenate([p, cnp.ravel(pcov)])

    def symmetric(y, matrix):
        return all_of(y, T, 0.5 * (matrix + matrix.T), absolute_sigma=True)

    check_grads(all_of, [Y, T, SIGMA], order=1, rtol=1e-3)
    check_grads(symmetric, [Y, covariance], order=1, rtol=1e-3)
    check_grads(lambda y: all_of(y, T, 0.3), [Y], order=1, rtol=1e-3)
    for options in ({}, {"sigma": SIGMA}, {"sigma": covariance, "absolute_sigma": True},
                    {"bounds": (0, 3)}, {"p0": [1, 1, 1], "loss": "huber", "method": "trf"}):
        expected = scipys.curve_fit(decay, T, Y, **options)
        for y in (Y, cytape.constant(Y)):
            p, pcov, infodict, *_ = ours.curve_fit(decay, T, y, full_output=True, **options)
            np.testing.assert_allclose(p, expected[0], 1e-5)
            np.testing.assert_allclose(pcov, expected[1], 1e-4)
            assert "nfev" in infodict

    few = T[:3], Y[:3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipys.OptimizeWarning)
        expected = scipys.curve_fit(decay, *few)[1]
        found = cytape.function(lambda y: ours.curve_fit(decay, few[0], y)[1])(few[1])
    np.testing.assert_array_equal(found, expected)  # infinite

    def redundant(t, a, b):
        return a + b + 0 * t

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipys.OptimizeWarning)
        p, pcov = ours.curve_fit(redundant, T, cytape.constant(Y), [0.5, 0.5])
    np.testing.assert_allclose(redundant(T, *p), np.mean(Y))
    assert pcov.shape == (2, 2)

    def f(y):
        return cnp.sum(ours.curve_fit(decay, list(T), y)[0])

    ways.check(f, f, Y, rtol=1e-5, modes=ways.FIRST_MODES)


def test_linear_least_squares_with_bounds(rng):
    matrix, b = rng.normal(size=(6, 4)), rng.normal(size=6)
    b += matrix @ [1, 2, -3, 0.5]
    assert 0 < np.count_nonzero(scipys.nnls(matrix, b)[0]) < 4
    check_grads(lambda a, b: ours.nnls(a, b)[0], [matrix, b])
    check_grads(lambda a, b: ours.nnls(a, b)[1], [matrix, b], order=1)
    np.testing.assert_array_equal(
        ours.nnls(cytape.constant(matrix), b)[0], scipys.nnls(matrix, b)[0])

    def bounded(a, b, u):
        result = ours.lsq_linear(a, b, (-u, u), tol=1e-14)
        return cnp.concatenate([result.x, [result.cost], result.fun])

    check_grads(bounded, [matrix, b, 0.8], order=1, rtol=1e-4)
    assert ours.lsq_linear(matrix, b).cost == scipys.lsq_linear(matrix, b).cost


def test_assignments():
    cost = np.array([[4.0, 1, 3], [2, 0, 5]])
    expected = scipys.linear_sum_assignment(cost)
    for f in (ours.linear_sum_assignment, cytape.function(ours.linear_sum_assignment)):
        ways.agree(f(cytape.constant(cost)), expected)
    rows, columns = ours.linear_sum_assignment(cytape.constant(cost), maximize=True)
    slope = cytape.grad(lambda c: cnp.sum(c[ours.linear_sum_assignment(c)]))(cost)
    np.testing.assert_array_equal(slope, [[0, 1, 0], [1, 0, 0]])
    assert columns.numpy().tolist() == [0, 2] and rows.dtype == np.int64


def test_failures():
    y = cytape.constant(Y)
    assert not fitted(y, max_nfev=1).success
    with pytest.raises(NotDifferentiableError, match="maximum number of function evaluations"):
        cytape.grad(lambda y: fitted(y, max_nfev=1).cost)(Y)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        ours.curve_fit(decay, T, y, maxfev=2)
    with pytest.raises(TypeError, match="nan_policy"):
        ours.curve_fit(decay, T, y, nan_policy="omit")
    with pytest.raises(ValueError, match="outside of provided bounds"):
        ours.least_squares(residuals, np.ones(3), args=(y,), bounds=(2, 3))
    with pytest.raises(ValueError, match="`x0` must have at most 1 dimension"):
        ours.least_squares(residuals, np.ones((3, 1)), args=(Y,))
