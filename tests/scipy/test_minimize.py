"""`minimize`: exact derivatives for SciPy's methods, structures, implicit derivatives, failures."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, NotDifferentiableError, UnconnectedGradientWarning
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.optimize")
ours = pytest.importorskip("cytape.scipy.optimize")

START = np.array([1.3, 0.7, 0.8])
METHODS = [
    "nelder-mead", "powell", "cobyla", "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP",
    "Newton-CG", "trust-ncg", "trust-krylov", "trust-constr", "trust-exact", None]
FINE = {"method": "trust-exact", "options": {"gtol": 1e-12}}


def rosen(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bowl(x, a):
    """Return a convex function of two variables, whose minimum has no formula."""
    return cnp.sum(cnp.cosh(x - a)) + cnp.sum(x**2 * a) + x[0] * x[1]


def argmin(a, **options):
    return ours.minimize(bowl, np.zeros(2), (a,), **FINE, **options).x


@pytest.mark.exhaustive
@each("method", METHODS)
def test_methods_get_the_exact_derivatives_that_they_take(method):
    jac, hess, hessp = scipys.rosen_der, scipys.rosen_hess, scipys.rosen_hess_prod
    kind = (method or "BFGS").lower()
    options = {} if method in METHODS[:3] else {"jac": jac}
    if kind in ("trust-exact", "dogleg"):
        options["hess"] = hess
    elif kind in ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"):
        options["hessp"] = hessp
    expected = scipys.minimize(rosen, START, method=method, **options)
    found = ours.minimize(rosen, START, method=method)
    np.testing.assert_allclose(found.x, expected.x, 1e-5)
    assert (found.nfev, found.message) == (expected.nfev, expected.message)


def test_each_point_is_evaluated_once():
    points = []

    def counted(x):
        points.append(x.numpy())
        return np.sum((x - 1) ** 4)

    result = ours.minimize(counted, np.zeros(3), method="BFGS")
    assert type(result.x) is np.ndarray and type(result.fun) is np.float64
    assert len(points) == result.nfev


@each("options", [
    {}, {"maxiter": 3}, {"gtol": 1e-14}, {"norm": 2}, {"norm": 1, "gtol": 1e-3}])
def test_bfgs_takes_the_steps_of_scipy(options):
    start = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    for tol in (None, 1e-4):
        expected = scipys.minimize(
            rosen, start, method="BFGS", jac=scipys.rosen_der, options=options, tol=tol)
        found = ours.minimize(rosen, start, options=options, tol=tol)
        assert found.keys() == expected.keys()
        assert (found.success, found.status, found.message) == (
            expected.success, expected.status, expected.message)
        if options.get("gtol") != 1e-14:  # where rounding errors decide
            assert (found.nit, found.nfev) == (expected.nit, expected.nfev)
        np.testing.assert_allclose(found.x, expected.x, 1e-5)
        np.testing.assert_allclose(found.jac, expected.jac, atol=1e-4)
        if options.get("gtol") != 1e-14:
            np.testing.assert_allclose(found.hess_inv, expected.hess_inv, 1e-3)


def test_bfgs_of_scipy_serves_where_it_has_no_line_search(monkeypatch):
    from cytape.scipy.optimize import quasi_newton

    assert quasi_newton.is_available()
    found = ours.minimize(rosen, START)
    monkeypatch.setattr(quasi_newton, "_line_search_wolfe12", None)
    np.testing.assert_allclose(ours.minimize(rosen, START).x, found.x, 1e-6)


def test_bfgs_of_functions_that_are_not_finite():
    for f, slope in (
            (lambda x: np.sum(x), np.ones_like), (lambda x: np.sum(np.log(x)), lambda x: 1 / x),
            (lambda x: np.sum(x) * np.nan, lambda x: np.full_like(x, np.nan))):
        with np.errstate(all="ignore"):
            expected = scipys.minimize(f, np.ones(2), jac=slope)
            found = ours.minimize(f, np.ones(2))
        assert (found.message, found.status, found.nit) == (
            expected.message, expected.status, expected.nit)


def test_functions_with_branches_that_depend_on_values():
    def f(x, a):
        return cnp.sum((x - a) ** 2) if x[0] > 1 else cnp.sum((x - 2 * a) ** 2)

    found = cytape.grad(lambda a: ours.minimize(f, [5.0], (a,)).x[0])(3.0)
    np.testing.assert_allclose(found, 1.0, 1e-6)
    inside = cytape.function(cytape.grad(lambda a: ours.minimize(f, [5.0], (a,)).x[0]))
    np.testing.assert_allclose(inside(3.0), 1.0, 1e-6)


def test_users_derivatives_and_scipys_differences():
    kinds = []

    def f(x):
        kinds.append(type(x))
        return np.sum((x - 1) ** 2)

    for options in ({"jac": lambda x: 2 * (x - 1)}, {"jac": False}, {"jac": "3-point"},
                    {"method": "Nelder-Mead"}):
        np.testing.assert_allclose(ours.minimize(f, np.zeros(2), **options).x, 1, atol=1e-4)
    assert set(kinds) == {np.ndarray}
    np.testing.assert_allclose(ours.minimize(lambda x: (x - 3) ** 2, [0.0]).x, 3)
    both = ours.minimize(
        lambda x, a: (np.sum((x - a) ** 2), 2 * (x - a)), np.zeros(2), 1.0, jac=True)
    np.testing.assert_allclose(both.x, 1)


def test_structures_bounds_and_callbacks_in_them():
    steps, states = [], []

    def f(p, target):
        return cnp.sum((p["a"] - target) ** 2) + (p["b"] - target[0]) ** 2

    def state(intermediate_result):
        states.append(intermediate_result.x["a"].shape)

    start = {"a": np.zeros((1, 2)), "b": 0.5}
    for target in (np.array([1.0, 2.0]), cytape.constant([1.0, 2.0])):
        for callback in (steps.append, state):
            result = ours.minimize(
                f, start, (target,), bounds={"a": (0, 1.5), "b": None}, callback=callback)
            np.testing.assert_allclose(result.x["a"], [[1, 1.5]], 1e-6)
            np.testing.assert_allclose(result.x["b"], 1, 1e-6)
    assert steps[0].keys() == start.keys() and set(states) == {(1, 2)}
    result = ours.minimize(lambda p: p[0] @ p[0] + p[1] ** 2, (np.ones(2), 1.0), method="CG")
    assert type(result.x) is tuple and result.x[0].shape == (2,) and result.x[1].shape == ()


def test_implicit_derivatives_against_solving_again():
    check_grads(argmin, [np.array([0.5, 1.5])])


def test_implicit_derivatives_on_all_ways():
    def f(a):
        return cnp.sum(cnp.sin(argmin(a)))

    def newton(a):
        x = cnp.zeros(2)
        for _ in range(6):
            slope = cnp.sinh(x - a) + 2 * x * a + x[::-1]
            curvature = cnp.diag(cnp.cosh(x - a) + 2 * a) + np.eye(2)[::-1]
            x = x - cnp.linalg.solve(curvature, slope)
        return cnp.sum(cnp.sin(x))

    ways.check(f, newton, [0.5, 1.5], rtol=1e-6)


def test_derivatives_at_active_bounds():
    def f(a, lower):
        return ours.minimize(
            lambda x, a: cnp.sum((x - a) ** 2 * cnp.exp(x)), 3 * np.ones(3), (a,), "L-BFGS-B",
            bounds=[(None, 0.9), (lower[0], 4), (lower[1] * lower[0], None)], tol=1e-12).x

    a, lower = np.array([1.0, 2.0, 3.0]), np.array([2.5, 0.3])
    check_grads(f, [a, lower])
    in_a, in_bounds = cytape.jacobian(f, argnums=(0, 1))(a, lower)
    np.testing.assert_allclose(in_a, np.diag([0, 0, 1]), atol=1e-9)
    np.testing.assert_allclose(in_bounds, [[0, 0], [1, 0], [0, 0]], atol=1e-9)
    limits = scipys.Bounds([-1, 2.5, 0], [0.9, 4, 5])
    for method in ("L-BFGS-B", "TNC", "SLSQP", "trust-constr"):
        found = cytape.jacobian(lambda a, m: ours.minimize(
            lambda x, a: cnp.sum((x - a) ** 2), np.zeros(3), (a,), m, bounds=limits).x)(a, method)
        np.testing.assert_allclose(found, np.diag([0, 0, 1]), atol=1e-9)


def test_fields_of_the_result():
    with cytape.GradientTape() as tape:
        a = cytape.constant([0.5, 1.5])
        tape.watch(a)
        result = ours.minimize(bowl, cytape.constant([0.0, 0.0]), (a,))
    plain = ours.minimize(bowl, np.zeros(2), (a.numpy(),))
    assert result.success and result.message == plain.message and result.nit == plain.nit
    np.testing.assert_array_equal(result.x, plain.x)
    of_value = tape.gradient(result.fun, a)  # the envelope theorem
    expected = cytape.grad(lambda a: bowl(plain.x, a))(a)
    np.testing.assert_allclose(of_value, expected, 1e-6)


def test_variables_integers_and_single_precision_among_the_arguments():
    weight, index = cytape.Variable(np.float32(2)), cytape.constant(1)
    with cytape.GradientTape() as tape:
        x = ours.minimize(
            lambda x, w, i, name: cnp.sum((x - w) ** 2) + x[i] ** 2, np.zeros(2, np.float32),
            (weight, index, "text")).x
    gradient = tape.gradient(x, weight)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, 1.5, 1e-6)


def test_the_start_has_no_derivative():
    with pytest.warns(UnconnectedGradientWarning):
        assert cytape.grad(lambda s: ours.minimize(rosen, s).fun)(START).tolist() == [0] * 3


def test_a_failed_run_has_no_derivative():
    def f(a):
        return ours.minimize(bowl, np.zeros(2), (a,), "BFGS", options={"maxiter": 1})

    result = f(cytape.constant([0.5, 1.5]))
    assert not result.success and result.x.shape == (2,)
    for slope in (cytape.jacobian(lambda a: f(a).x), cytape.jacfwd(lambda a: f(a).x),
                  cytape.function(cytape.grad(lambda a: f(a).fun))):
        with pytest.raises(NotDifferentiableError, match="failed.*Maximum number of iterations"):
            slope(np.array([0.5, 1.5]))
    # Rounding errors keep this run from its tolerance, at the solution.
    result = ours.minimize(bowl, np.zeros(2), (cytape.constant([0.5, 1.5]),), "trust-exact",
                           options={"gtol": 1e-15})
    assert not result.success
    assert cytape.grad(lambda a: ours.minimize(
        bowl, np.zeros(2), (a,), "trust-exact", options={"gtol": 1e-15}).fun)(np.ones(2)).all()


def test_a_minimum_that_is_not_isolated_has_no_derivative():
    f = cytape.grad(lambda a: ours.minimize(lambda x, a: (x[0] + x[1] - a) ** 2, [0, 0], (a,)).x[0])
    with pytest.raises(NotDifferentiableError, match="singular"):
        f(1.0)


def test_derivatives_in_captured_tensors_are_not_lost_silently():
    v = cytape.Variable(2.0)
    for start in (np.zeros(2), cytape.constant([0.0, 0.0])):
        with pytest.raises(DetachedError, match="(?s)minimize diff.*`args`"), cytape.GradientTape():
            ours.minimize(lambda x: cnp.sum((x - v) ** 2), start)
    with pytest.raises(DetachedError, match="(?s)minimize diff.*`args`"):
        cytape.function(lambda a: ours.minimize(
            lambda x: cnp.sum((x - a) ** 2), np.zeros(2)).x)(cytape.constant(1.0))
    with pytest.raises(DetachedError, match=r"^.*by float\(\) in .*test_minimize.py, line \d+"):
        ours.minimize(lambda x: float(x[0]) ** 2, np.zeros(2))  # names the user's line first


def test_a_solution_that_is_too_inaccurate_has_no_derivative():
    f = cytape.grad(lambda a: ours.minimize(
        bowl, np.zeros(2), (a,), "Nelder-Mead", options={"xatol": 1, "fatol": 1}).x[0])
    with pytest.raises(NotDifferentiableError, match="too inaccurate.*smaller tolerances"):
        f(np.array([0.5, 1.5]))


def test_errors_are_scipys():
    cases = [dict(x0=np.zeros((2, 2))), dict(x0=np.zeros(2), method="nonsense"),
             dict(x0=np.zeros(2), bounds=[(0, 1)] * 3),
             dict(x0=np.zeros(2), bounds=[(1, 0), (0, 1)])]
    for case in cases:
        with pytest.raises(Exception) as expected:  # noqa: PT011
            scipys.minimize(rosen, **case)
        with pytest.raises(expected.type) as found:
            ours.minimize(rosen, **case)
        assert str(found.value) == str(expected.value)
    assert ours.Bounds is scipys.Bounds and "minimize" in dir(ours)
    with pytest.raises(TypeError, match="must return a scalar"):
        ours.minimize(lambda x: x * 2, np.zeros(2))


def test_scipys_own_minimizer_names_the_version_with_a_derivative_last():
    def smallest(p):
        return scipys.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(2)).fun

    with pytest.raises(ValueError, match="scalar value") as error:
        cytape.grad(smallest)(np.ones(2))
    [note] = error.value.__notes__
    assert "Call cytape.scipy.optimize.minimize, which has a derivative" in note
