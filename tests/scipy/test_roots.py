"""`root`, `root_scalar`, fixed points, minima of one variable: implicit derivatives, failures."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, NotDifferentiableError
from cytape.graph.tracing import kept_traces
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.optimize")
ours = pytest.importorskip("cytape.scipy.optimize")
integrate = pytest.importorskip("cytape.scipy.integrate")
implicit = pytest.importorskip("cytape.scipy.optimize.implicit")
systems = pytest.importorskip("cytape.scipy.optimize.implicit_systems")


def sum_and_product(x, a):
    """Return zeros at (1, 2) for a = 3; the roots are those of t**2 - a t + 2."""
    return cnp.array([x[0] + x[1] - a, x[0] * x[1] - 2])


def cubes(x, a):
    return x**3 - a


def discretised(x, a):
    """Return the residual of a boundary value problem."""
    neighbours = cnp.concatenate([[0.0], x[:-1]]) + cnp.concatenate([x[1:], [1.0]])
    return 2 * x - neighbours + a * cnp.exp(x) / x.size**2


@each("method", ["hybr", "lm", "newton", "krylov", "broyden1"])
def test_roots_and_their_derivatives(method):
    def f(a):
        return ours.root(sum_and_product, [0.5, 2.6], (a,), method, tol=1e-12).x

    def sum_of_squares(a):
        return a**3 - 4 * a

    some = ways.WAYS if method == "newton" else ["eager"]
    ways.check(lambda a: cnp.sum(f(a) ** 2 * a), sum_of_squares, 3.3, ways=some)
    if method != "newton":
        options = {"jac": lambda x, a: [[1, 1], [x[1], x[0]]]} if method in ("hybr", "lm") else {}
        expected = scipys.root(sum_and_product, [0.5, 2.6], (3.3,), method, tol=1e-12, **options)
        found = ours.root(sum_and_product, [0.5, 2.6], (3.3,), method, tol=1e-12)
        np.testing.assert_allclose(found.x, expected.x, 1e-12)
        assert found.nfev == expected.nfev if "nfev" in expected else True


@each("options", [
    dict(x0=1.0), dict(x0=1.0, method="newton"), dict(x0=1.0, method="halley"),
    dict(x0=1.0, fprime=lambda x, a: 3 * x**2), dict(x0=1.0, x1=2.0), dict(bracket=[0, 8]),
    *[dict(bracket=[0, 8], method=method)
      for method in ("bisect", "brentq", "brenth", "ridder", "toms748")]])
def test_roots_of_one_variable(options):
    def f(a):
        return ours.root_scalar(cubes, (a,), **options).root

    ways.check(f, cnp.cbrt, 8.3, rtol=1e-7,
               ways=ways.WAYS if options == {"x0": 1.0} else ["eager"])
    found = ours.root_scalar(cubes, (8.0,), **options)
    assert type(found) is scipys.RootResults and found.converged and round(found.root, 9) == 2
    pair = ours.root_scalar(
        lambda x, a: (cubes(x, a), 3 * x**2), (cytape.constant(8.0),), fprime=True, x0=1.0)
    assert pair.converged and round(float(pair.root), 9) == 2


@each("name", ["bisect", "brenth", "brentq", "ridder", "toms748"])
def test_brackets_have_no_derivative(name):
    solver = getattr(ours, name)
    a = cytape.constant(8.0)
    with ways.watching(a) as tape:
        x, found = solver(cubes, a - 8, a, (a,), full_output=True)
    np.testing.assert_allclose(tape.gradient(x, a), 1 / 12, 1e-9)
    assert found.converged
    assert solver(cubes, 0, 8, (8.0,)) == getattr(scipys, name)(cubes, 0, 8, (8.0,))
    with pytest.raises(ValueError, match="different signs"):
        solver(cubes, 3.0, a, (a,))


def test_independent_roots():
    def f(a):
        return cnp.sum(ours.newton(cubes, np.ones(2), args=(a,)))

    ways.check(f, lambda a: cnp.sum(cnp.cbrt(a)), [8.3, 2.0], rtol=1e-8)
    x, converged, _ = ours.newton(
        cubes, np.ones(2), args=(cytape.constant([1.0, 8.0]),), full_output=True)
    assert converged.all() and round(float(x[1]), 9) == 2
    assert ours.newton(cubes, 1.0, args=(8.0,), x1=2.0) == scipys.newton(
        cubes, 1.0, args=(8.0,), x1=2.0)


def test_fixed_points():
    def f(a):
        return cnp.sum(ours.fixed_point(lambda x, a: 0.5 * (x + a / x), np.ones(2), (a,)))

    ways.check(f, lambda a: cnp.sum(cnp.sqrt(a)), [8.3, 2.0], rtol=1e-6)
    coupled = np.array([[0.3, 0.2], [0.1, 0.4]])
    check_grads(lambda a: ours.fixed_point(
        lambda x, a: coupled @ cnp.sin(x) + a, np.zeros(2), (a,)), [np.array([1.0, 2.0])])


@each("options", [
    {"bracket": (2.0, 3.0)}, {"bounds": (0, 5)}, {"method": "golden", "bracket": (2.0, 3.0)}])
def test_minima_of_one_variable(options):
    def f(a):
        return ours.minimize_scalar(
            lambda x, a: (x**2 - a) ** 2, args=(a,), options={}, **options).x

    ways.check(f, cnp.sqrt, 8.3, rtol=1e-4, ways=ways.WAYS if "bounds" in options else ["eager"])
    plain = ours.minimize_scalar(lambda x, a: (x**2 - a) ** 2, args=(8.3,), **options)
    assert plain == scipys.minimize_scalar(lambda x, a: (x**2 - a) ** 2, args=(8.3,), **options)
    result = ours.minimize_scalar(
        lambda x, a: a * (x - 9) ** 2, bounds=(0, cytape.constant(5.0)), args=(1.0,))
    np.testing.assert_allclose(result.fun, 16, 1e-4)
    slope = cytape.grad(lambda b: ours.minimize_scalar(
        lambda x: (x - 9) ** 2, bounds=(0, b)).x)(5.0)
    assert slope == 1


def test_structures_of_unknowns():
    def f(x, a):
        return {"u": x["u"] + x["v"] - a, "v": x["u"] * x["v"] - 2 * cnp.ones(1)}

    start = {"u": np.array([0.5]), "v": np.array([2.6])}
    for method in ("hybr", "newton"):
        np.testing.assert_allclose(ours.root(f, start, (3.0,), method).x["v"], 2, 1e-7)
        slope = cytape.grad(lambda a: ours.root(f, start, (a,), method).x["v"][0])  # noqa: B023
        np.testing.assert_allclose(slope(3.0), 2, 1e-6)
    matrix = cytape.jacobian(lambda a: ours.root(
        lambda x, a: x @ x - a, np.eye(2), (a,), "krylov", options={"fatol": 1e-13}).x)(
            np.diag([4.0, 9.0]))
    np.testing.assert_allclose(matrix[0, 1, 0, 1], 1 / 5, 1e-7)  # of the square root


def test_one_factorisation_for_all_derivatives(monkeypatch):
    counts = []
    factorise = systems.lapack.dgetrf
    monkeypatch.setattr(
        systems.lapack, "dgetrf", lambda *args, **options: (
            counts.append(1), factorise(*args, **options))[1])
    a, start = cytape.constant(0.5), np.linspace(0, 1, 50)

    def derivatives(method):
        with cytape.ForwardAccumulator(a, 1.0) as accumulator, ways.watching(
                a, persistent=True) as outer:
            with ways.watching(a, persistent=True) as tape:
                x = ours.root(discretised, start, (a,), method).x
                y = cnp.sum(x**2)
            first = tape.gradient(y, a)
            tape.gradient(x[3], a)
        return first, outer.gradient(first, a), accumulator.jvp(y), accumulator.jvp(first)

    by_hybr = derivatives("hybr")
    assert len(counts) == 1
    steps = ours.root(discretised, start, (0.5,), "newton").njev
    assert len(counts) == 1 + steps
    by_newton = derivatives("newton")
    assert len(counts) == 1 + 2 * steps  # none but those of the steps
    np.testing.assert_allclose(by_newton, by_hybr, 1e-7)
    check_grads(lambda a: ours.root(discretised, start, (a,), "newton").x, [0.5])


@pytest.mark.exhaustive
def test_many_unknowns_are_solved_for_without_a_matrix(monkeypatch):
    def f(a):
        return ours.root(discretised, np.linspace(0, 1, 8), (a,), tol=1e-12).x

    def smallest(a):
        return ours.minimize(
            lambda x, a: x @ x * a + cnp.sum(cnp.cosh(x - 1)), np.zeros(8), (a,),
            "trust-exact").x

    for function in (f, smallest):
        expected = cytape.jacobian(function)(0.5), cytape.hessian(function)(0.5)
        with monkeypatch.context() as patch:
            patch.setattr(implicit, "LARGEST_DENSE", 5)
            found = cytape.jacobian(function)(0.5), cytape.hessian(function)(0.5)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-8, 1e-12)
    monkeypatch.setattr(implicit, "LARGEST_DENSE", 5)
    monkeypatch.setattr(implicit, "TOLERANCE", 0.0)
    with pytest.raises(NotDifferentiableError, match="not solved"):
        cytape.jacobian(f)(0.5)


def test_a_singular_jacobian_is_an_error_in_each_run_of_a_function():
    slope = cytape.function(cytape.grad(lambda a: cnp.sum(ours.root(
        lambda x, a: (x - a) ** 3, np.zeros(2), (a,)).x)))
    np.testing.assert_allclose(slope(np.array([1.0, 2.0])), [1, 1])
    for _ in range(2):
        with pytest.raises(NotDifferentiableError, match="singular"):
            slope(np.zeros(2))


@each(solve=[
    lambda a: ours.root(lambda x, a: x**3 - a, [1.0], (a,)).x[0],
    lambda a: ours.brentq(lambda x, a: x**3 - a, 0, 3, (a,)),
    lambda a: ours.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, (a,)),
    lambda a: ours.minimize(lambda x, a: cnp.sum((x - a) ** 2), [1.0], (a,)).x[0],
    lambda a: ours.curve_fit(lambda x, p: p * x, np.arange(3.0), a * np.arange(3.0))[0][0],
    lambda a: integrate.quad(lambda x, a: a * x, 0, 1, (a,))[0],
    lambda a: integrate.solve_ivp(lambda t, y, a: -a * y, (0, 1), [1.0], args=(a,)).y[0, -1]])
def test_functions_that_solve_are_freed(solve):
    slope = cytape.function(cytape.grad(lambda a: solve(a)))
    reference = weakref.ref(slope.get_concrete_function(cytape.constant(2.0)).graph)
    del slope
    gc.collect()
    assert reference() is None


def test_each_thread_has_its_own_last_solution():
    equation = implicit.Equation("root", lambda x, a: x**3 - a, None)
    points = [(np.array([k]), (np.array([k**3]),)) for k in (1.0, 2.0)]
    system = equation.system(*points[0])
    thread = threading.Thread(target=equation.system, args=points[1])
    thread.start()
    thread.join()
    assert equation.system(*points[0]) is system


def test_a_solution_is_that_of_its_thread():
    def solve_in_a_thread(k):
        thread = threading.Thread(
            target=implicit._solve, args=(np.zeros(1), k), kwargs={"equation": equation})
        thread.start()
        thread.join()

    class Interrupted(scipys.OptimizeResult):
        @property
        def x(self):
            solve_in_a_thread(2.0)
            return np.array([1.0])

    equation = implicit.Equation("root", None, lambda x0, k: Interrupted(
        success=True) if k == 1 else scipys.OptimizeResult(x=np.array([k]), success=False))
    x, is_solved = implicit._solve(np.zeros(1), 1.0, equation=equation)
    assert x == 1 and is_solved


def test_failures():
    a = cytape.constant(3.0)
    for method, message in (("hybr", "failed"), ("newton", "failed.*residual|singular")):
        def f(a):
            return ours.root(lambda x, a: x**2 + a, [1.0], (a,), method).x[0]  # noqa: B023

        assert not ours.root(lambda x, a: x**2 + a, [1.0], (a,), method).success
        with pytest.raises(NotDifferentiableError, match=message):
            cytape.grad(f)(3.0)
        with pytest.raises(NotDifferentiableError, match=message):
            cytape.function(cytape.grad(f))(a)

    def stopped(a):
        return ours.root_scalar(cubes, (a,), bracket=(0, 9), maxiter=2).root

    assert not ours.root_scalar(cubes, (a,), bracket=(0, 9), maxiter=2).converged
    with pytest.raises(NotDifferentiableError, match="convergence error"):
        cytape.grad(stopped)(3.0)
    with pytest.raises(NotDifferentiableError, match="0 or NaN"):
        cytape.grad(lambda a: ours.newton(
            lambda x, a: (x - a) ** 3, a, args=(a,), x1=a + 0.1))(3.0)
    with pytest.raises(RuntimeError, match="Failed to converge"):
        ours.fixed_point(lambda x, a: x + a, 1.0, (a,))
    with pytest.raises(RuntimeError, match="Failed to converge"):
        ours.newton(lambda x, a: x**2 + a, 1.0, args=(a,))
    with pytest.raises(DetachedError, match="(?s)root_scalar differ.*`args`"), ways.watching(a):
        ours.root_scalar(lambda x: x - a, bracket=(0, 9))
    with pytest.raises(DetachedError, match="(?s)root differ.*`args`"), ways.watching(a):
        ours.root(lambda x: x - a, [0.0, 0.0])
    with pytest.raises(TypeError, match="complex"):
        ours.newton(lambda x, a: x**2 + a, 1j, args=(a,), x1=2j)
    with pytest.raises(TypeError, match="complex"):
        ours.newton(lambda x, a: x**2 + a, 1.0, args=(a,), x1=2j)
    with pytest.raises(NotDifferentiableError, match="2 equations with 1 unknowns"):
        cytape.grad(lambda a: ours.root(
            lambda x, a: cnp.concatenate([x - a, x - 2 * a]), [1.0], (a,), "lm").x[0])(3.0)


def test_members_of_a_batch_that_differ():
    def by_bracket(a):
        return ours.root_scalar(lambda x, a: x**2 - a, (a,), bracket=[0, 10]).root

    def by_newton(a):
        return ours.root(lambda x, a: x**2 - a, [1.0], (a,), "newton").x[0]

    def by_minimum(a):
        return ours.minimize(
            lambda x, a: cnp.sum((x**2 - a) ** 2), np.ones(1), (a,), tol=1e-9).x[0]

    a = np.array([2.0, 3.5, 5.0])
    for f in (by_bracket, by_newton, by_minimum):
        for slopes in (cytape.vmap(cytape.grad(f)), cytape.function(cytape.vmap(cytape.grad(f))),
                       cytape.grad(lambda a: cnp.sum(cytape.vmap(f)(a)))):  # noqa: B023
            np.testing.assert_allclose(slopes(a), 0.5 / np.sqrt(a), 1e-6)
        curvature = cytape.vmap(cytape.grad(cytape.grad(f)))
        np.testing.assert_allclose(curvature(a), -0.25 * a**-1.5, 1e-5)


def test_tensors_captured_in_traces_are_not_constants():
    programs = (
        lambda a: ours.brentq(lambda x: x**2 - a, 0, 10),
        lambda a: ours.fixed_point(lambda x: 0.5 * (x + a / x), 1.0),
        lambda a: ours.root(lambda x: x**2 - a, [1.0]).x[0],
        lambda a: ours.minimize(lambda x: (x[0] - a) ** 2, [1.0]).x[0],
        lambda a: ours.minimize_scalar(lambda x: (x - a) ** 2).x,
        lambda a: ours.least_squares(lambda x: x - a, [1.0]).x[0],
        lambda a: ours.curve_fit(lambda t, p: p * t - a, [1.0, 2.0], [1.0, 2.0])[0][0])
    for program in programs:
        def traced(a):
            return cytape.function(lambda: program(a) * cytape.constant(1.0))()  # noqa: B023

        with pytest.raises(DetachedError, match="`args`"):
            cytape.grad(traced)(2.0)
    # Functions of arrays run while a graph is built.
    inside = cytape.function(lambda a: a * ours.minimize(lambda x: (x[0] - 3) ** 2, [1.0]).x[0])
    np.testing.assert_allclose(inside(cytape.constant(2.0)), 6)


def test_later_solutions_are_traced_and_the_same():
    level = 1.0

    def square_root(a):  # of a * level
        return ours.root(lambda x, a: [x[0] ** 2 - a * level, x[1] - x[0]], [1.0, 1.0], (a,)).x[1]

    def mean(y):
        return ours.minimize(lambda x, y: np.sum((x - level * y) ** 2), [0.0], (y,)).x[0]

    def fit(y):
        return ours.least_squares(
            lambda x, y: (x - level * y) ** 3 + (x - level * y), [0.0], args=(y,)).x[0]

    def curve(y):
        return ours.curve_fit(lambda x, p: level * p + 0 * x, np.arange(2.0), y)[0][0]

    y = np.array([4.0, 4.0])
    for level in (1.0, 2.0, 1.0):
        for _ in range(5):
            root = 2 * np.sqrt(level)
            np.testing.assert_allclose(cytape.grad(square_root)(4.0), level / (2 * root), 1e-6)
            np.testing.assert_allclose(
                cytape.grad(cytape.grad(square_root))(4.0), -level**2 / (4 * root**3), 1e-6)
            np.testing.assert_allclose(cytape.grad(mean)(y), [level / 2] * 2, 1e-6)
            np.testing.assert_allclose(cytape.grad(fit)(y), [level / 2] * 2, 1e-6)
            np.testing.assert_allclose(cytape.grad(curve)(y), [1 / level / 2] * 2, 1e-6)


def test_kept_traces_take_any_number_of_unknowns():
    kept_traces._kept.clear()
    slope = cytape.grad(lambda c: cnp.sum(ours.root(lambda x, c: x**3 - c, c, (c,)).x))
    for n in (2, 2, 2, 3, 4, 5):
        np.testing.assert_allclose(slope(np.full(n, 8.0)), np.full(n, 1 / 12), 1e-6)
    assert kept_traces._kept and all(x._takes_symbols for x in kept_traces._kept.values())


def test_kept_traces_are_of_one_number_of_unknowns():
    def residuals(x, c):
        return x**3 * (2.0 if x.shape[0] == 3 else 1.0) - c

    slope = cytape.grad(lambda c: cnp.sum(ours.root(residuals, c, (c,)).x))
    for n in (2, 2, 2, 3, 3, 3, 3, 2):
        x = np.cbrt(8.0 / (2.0 if n == 3 else 1.0))
        np.testing.assert_allclose(slope(np.full(n, 8.0)), np.full(n, x / 24), 1e-6)
