"""`solve_ivp`: SciPy's values, gradients by both methods, times, events, stiff systems, errors."""

import math
from typing import ClassVar

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.graph.tracing import kept_traces
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.integrate")
ours = pytest.importorskip("cytape.scipy.integrate")
linear_steps = pytest.importorskip("cytape.scipy.integrate.linear_steps")
trajectories = pytest.importorskip("cytape.scipy.integrate.trajectories")

TIMES = np.linspace(0.0, 3.0, 7)
FINE = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-10}
WEIGHTS = np.sin(np.arange(14.0)).reshape(2, 7)
POINT = np.array([1.0, 0.5, 1.1, 0.4])


def lotka_volterra(t, y, birth, kill):
    prey, predators = y
    return [birth * prey - kill * prey * predators, prey * predators - predators + 0.1 * t]


def fitted(p, **options):
    found = ours.solve_ivp(
        lotka_volterra, (0, 3), [p[0], p[1]], t_eval=TIMES, args=(p[2], p[3]), **FINE | options)
    return cnp.sum(WEIGHTS * found.y)


def decay(t, y, rate):
    return -rate * y


@each("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
def test_values_are_scipys_and_gradients_as_accurate(method):
    options = {"method": method, "rtol": 1e-6, "atol": 1e-6}
    expected = scipys.solve_ivp(
        lotka_volterra, (0, 3), POINT[:2], t_eval=TIMES, args=tuple(POINT[2:]), **options)
    arrays = ours.solve_ivp(
        lotka_volterra, (0, 3), POINT[:2], t_eval=TIMES, args=tuple(POINT[2:]), **options)
    np.testing.assert_array_equal(arrays.y, expected.y)
    found = ours.solve_ivp(
        lotka_volterra, (0, 3), cytape.constant(POINT[:2]), t_eval=TIMES, args=tuple(POINT[2:]),
        **options)
    # The implicit methods get the exact Jacobian.
    tolerance = 1e-5 if method in ("Radau", "BDF", "LSODA") else 0
    np.testing.assert_allclose(found.y, expected.y, tolerance)
    assert isinstance(found.y, cytape.Tensor) and found.success and found.status == 0
    exact = cytape.grad(fitted)(POINT)
    for gradient in ("adjoint", "forward") if method != "RK23" else ("adjoint",):
        slope = cytape.grad(lambda p: fitted(p, gradient=gradient, **options))(POINT)  # noqa: B023
        np.testing.assert_allclose(slope, exact, 2e-3 if method in ("BDF", "LSODA") else 1e-4)


def test_derivatives_in_all_modes():
    check_grads(fitted, [POINT], order=2)


@each("mode", [mode for mode in ways.ALL_MODES if mode != "reverse_over_forward"])
def test_crossings(mode):
    names = list(ways.WAYS) if mode in ("reverse", "value") else ["eager", "function", "graph"]
    if mode == "forward_over_reverse":
        names += ["vmap", "unknown extents"]
    ways.check(fitted, fitted, POINT, ways=names, modes=[mode], rtol=1e-6, atol=1e-7)


def test_members_of_vmap_with_steps_of_their_own():
    def last(rate):
        return ours.solve_ivp(lambda t, y, rate: -rate * y, (0, 1), [1.0], args=(rate,)).y[0, -1]

    rates = np.array([0.5, 20.0])
    for f in (last, cytape.grad(last)):
        np.testing.assert_allclose(cytape.vmap(f)(rates), [f(rate) for rate in rates], 1e-9)


def test_ends_and_times():
    def f(t0, t1, p):
        t_eval = cnp.linspace(t0, t1, 4)
        return ours.solve_ivp(
            lotka_volterra, (t0, t1), [p[0], p[1]], t_eval=t_eval, args=(p[2], p[3]), **FINE).y

    check_grads(f, [0.2, 2.0, POINT], order=1)
    check_grads(f, [2.0, 0.2, POINT], order=1)  # backwards in time

    def last(t0, t1):
        found = ours.solve_ivp(decay, (t0, t1), [2.0], args=(3.0,), **FINE)
        return found.y[0, -1] * found.t[-1]  # the solver's times

    check_grads(last, [0.5, 1.0], order=2)


def test_dense_output():
    def f(rate, t):
        found = ours.solve_ivp(
            decay, (0, 2), [2.0], args=(cytape.convert_to_tensor(rate),), dense_output=True, **FINE)
        return found.sol(t)[0], found.sol(cnp.stack([t, 0.5 * t]))[0]

    check_grads(f, [0.7, 1.3], order=2)
    sol = ours.solve_ivp(
        decay, (0, 2), [2.0], args=(cytape.constant(1.0),), dense_output=True).sol
    assert sol.t_max == 2
    with pytest.raises(ValueError, match="beyond"):
        sol(2.5)


def test_events():
    def hit(t, y, speed, gravity):
        return y[0]

    hit.terminal, hit.direction = True, -1

    def peak(t, y, speed, gravity):
        return y[1]

    def flight(speed, gravity):
        return ours.solve_ivp(
            lambda t, y, speed, gravity: [y[1], -gravity + 0 * y[0]], (0, 100), [0.0, speed],
            events=[hit, peak], args=(speed, gravity), **FINE)

    def f(speed, gravity):
        found = flight(speed, gravity)
        return (found.t_events[0][0], found.y_events[0][0, 1], found.t_events[1][0],
                found.y_events[1][0, 0], found.t[-1], found.y[1, -1])

    expected = [6.0, -15.0, 3.0, 22.5, 6.0, -15.0]  # 2 v / g, -v, v / g, v**2 / 2 g
    np.testing.assert_allclose(f(cytape.constant(15.0), 5.0), expected, 1e-9)
    check_grads(f, [15.0, 5.0], order=1)
    curvature = cytape.hessian(lambda v: f(v[0], v[1])[3])(np.array([15.0, 5.0]))
    np.testing.assert_allclose(curvature, [[0.2, -0.6], [-0.6, 1.8]], 1e-7)
    slow = {"method": "RK45", "rtol": 1e-8}  # the event is within the last step
    slope = cytape.grad(lambda g: ours.solve_ivp(
        lambda t, y, g: [y[1], -g], (0, 5), [1.0, 0.0], events=lambda t, y, g: y[0], args=(g,),
        **slow).t_events[0][0])(9.8)
    np.testing.assert_allclose(slope, -0.5 * math.sqrt(2 / 9.8**3), 1e-6)
    hit_once = lambda t, y, g: y[0]  # noqa: E731
    hit_once.terminal = True
    for method in ("RK45", "Radau", "BDF", "LSODA"):
        slope = cytape.grad(lambda g: ours.solve_ivp(
            lambda t, y, g: [y[1], -g + 0 * y[0]], (0, 5), [1.0, 0.0], method, events=hit_once,  # noqa: B023
            args=(g,), rtol=1e-8, atol=1e-10).t[-1])(9.8)
        np.testing.assert_allclose(slope, -0.5 * math.sqrt(2 / 9.8**3), 1e-5)
    traced = cytape.function(cytape.grad(lambda v: flight(v, 5.0).t_events[0][0]))
    np.testing.assert_allclose(traced(15.0), 0.4, 1e-9)


def test_complex_states_and_single_precision():
    def f(rate, start):
        found = ours.solve_ivp(
            lambda t, y, rate: 1j * rate * y + 0.1 * cnp.conj(y), (0, 1),
            cnp.stack([start, 1j * start]), t_eval=[0.5, 1.0], args=(rate,), **FINE)
        return cnp.real(found.y), cnp.imag(found.y)

    check_grads(f, [0.7, 1.3], order=1)
    start = np.array([1.0], np.float32)
    slope = cytape.grad(lambda y, rate: ours.solve_ivp(
        decay, (0, 1), y, args=(rate,), **FINE).y[0, -1], argnums=(0, 1))(start, np.float32(2))
    assert [x.dtype for x in slope] == [np.float32, np.float32]
    np.testing.assert_allclose([np.ravel(x)[0] for x in slope], [math.exp(-2), -math.exp(-2)], 1e-6)


def robertson(t, y, k):
    a, b, c = y
    slow, fast = k[0] * a, k[1] * b * c
    return [-slow + fast, slow - fast - k[2] * b * b, k[2] * b * b]


def test_stiff_systems():
    rates = np.array([0.04, 1e4, 3e7])

    def f(rates, method="Radau", gradient="adjoint"):
        found = ours.solve_ivp(
            robertson, (0, 100), [1.0, 0.0, 0.0], method, [1.0, 100.0], args=(rates,), rtol=1e-7,
            atol=1e-11, gradient=gradient)
        return cnp.sum(found.y[0])

    slope = cytape.grad(f)(rates)
    difference = (f(1.001 * rates) - f(0.999 * rates)) / 0.002
    np.testing.assert_allclose(slope @ rates, difference, 1e-5)
    np.testing.assert_allclose(cytape.grad(lambda k: f(k, "BDF"))(rates), slope, 1e-4)
    np.testing.assert_allclose(cytape.jvp(f, (rates,), (rates,))[1], slope @ rates, 1e-5)


class CountedSteps(trajectories.LinearSteps):
    """Steps that count their intervals."""

    counts: ClassVar[list] = []

    def __init__(self, rhs, grid, *args):
        self.counts.append(len(grid))
        super().__init__(rhs, grid, *args)


@pytest.fixture
def grids(monkeypatch):
    """Return the number of points of each grid on which the linearized equation is solved."""
    monkeypatch.setattr(trajectories, "LinearSteps", CountedSteps)
    CountedSteps.counts.clear()
    return CountedSteps.counts


def epidemic(t, y, k):  # the sum of the states is constant
    infected, recovered = k[0] * y[0] * y[1], k[1] * y[1]
    return [-infected, infected - recovered, recovered]


@each("rtol", [1e-6, 1e-10])
@each("method", ["RK45", "DOP853", "BDF", "Radau", "LSODA", "odeint"])
def test_gradients_of_invariants_need_no_further_steps(method, rtol, grids):
    def total(k, y0, end):
        if method == "odeint":
            return cnp.sum(ours.odeint(
                epidemic, y0, [0.0, 1.0, end], (k,), tfirst=True, rtol=rtol, atol=rtol))
        return cnp.sum(ours.solve_ivp(
            epidemic, (0, end), y0, method, [0.0, 1.0, end], args=(k,), rtol=rtol, atol=rtol).y)

    grids.clear()
    given = np.array([1.0, 0.3]), np.array([1.0, 0.01, 0.0]), 5.0
    of_rates, of_start, of_end = cytape.grad(total, argnums=(0, 1, 2))(*given)
    np.testing.assert_allclose([*of_rates, of_end], 0, atol=1e-12)
    np.testing.assert_allclose(of_start, 3)
    assert len(grids) == 1
    tangent = cytape.jvp(lambda k: total(k, *given[1:]), given[:1], given[:1])[1]
    np.testing.assert_allclose(tangent, 0, atol=1e-12)
    if method == "RK45":
        grids.clear()
        np.testing.assert_allclose(cytape.hessian(total)(*given), 0, atol=1e-11)
        assert len(grids) <= 4


def test_gradients_of_other_constants(grids):
    def radius(rate, rtol):  # constant to the accuracy of the solution
        found = ours.solve_ivp(
            lambda t, y, rate: [-rate * y[1], rate * y[0]], (0, 5), [1.0, 0.0], args=(rate,),
            t_eval=[5.0], rtol=rtol, atol=rtol)
        return cnp.sum(found.y**2)

    for rtol in 1e-6, 1e-10:
        grids.clear()
        np.testing.assert_allclose(cytape.grad(radius)(1.3, rtol), 0, atol=20 * rtol)
        assert len(grids) <= 3
    grids.clear()
    of_rates = cytape.grad(lambda k: ours.solve_ivp(  # nearly constant after a while
        lambda t, y, k: [-k[0] * y[0], k[0] * y[0] - k[1] * y[1], k[1] * y[1]], (0, 200),
        [1.0, 0.01, 0.0], "LSODA", args=(k,), rtol=1e-8, atol=1e-10).y[2, -1])(np.array([1.0, 0.3]))
    np.testing.assert_allclose(of_rates, 0, atol=1e-10)
    assert len(grids) <= 12
    grids.clear()
    scale = 1.3
    rates = np.array([1.1, 0.7, 0.3, 0.37])

    def at_rest(scale):  # up to rounding, whatever the rates
        return ours.solve_ivp(
            lambda t, y, k: [
                (k[0] - k[2]) * y[0] - k[1] * y[0] * y[1], (k[3] * y[0] - k[0]) * y[1]],
            (0, 30), [1.1 / 0.37, 0.8 / 0.7], args=(scale * rates,), **FINE).y[0, -1]

    for slope in cytape.grad(at_rest)(scale), cytape.jvp(at_rest, (scale,), (1.0,))[1]:
        np.testing.assert_allclose(slope, 0, atol=1e-8)
    assert len(grids) <= 12


def test_steps_are_computed_once(monkeypatch):
    counts = []

    class Counted(linear_steps.TracedLinearization):
        def call(self, function, *arrays):
            if function is linear_steps._matrices_at:
                counts.append(len(arrays[0]))
            return super().call(function, *arrays)

    monkeypatch.setattr(linear_steps, "TracedLinearization", Counted)
    for end in 10.0, -0.01:
        counts.clear()
        cytape.grad(lambda k: cnp.sum(ours.solve_ivp(
            robertson, (0, end), [1.0, 0.0, 0.0], "Radau", [0.5 * end, end], args=(k,),  # noqa: B023
            rtol=1e-6, atol=1e-9).y[1]))(np.array([0.04, 1e4, 3e7]))
        assert len(counts) > 2 and max(counts[1:]) < counts[0] / 4


def test_functions_that_need_values():
    def f(p):
        def fun(t, y, rate):
            push = math.sin(t) if t > 0.5 else 0.25  # floats of Python
            return [-rate * y[0] + push if y[0] > 0 else rate + y[1], y[0] * push]

        return ours.solve_ivp(fun, (0, 2), [p[0], 1.0], args=(p[1],), max_step=0.1, **FINE).y[:, -1]

    check_grads(f, [np.array([0.3, 1.5])], order=1, rtol=1e-4)
    with pytest.raises(DetachedError, match=r"value left its tensor by numpy"):
        cytape.grad(lambda y: ours.solve_ivp(
            lambda t, y: -cytape.convert_to_tensor(y).numpy(), (0, 1), y).y[0, -1])(np.ones(1))


def test_parts_of_the_derivative_faster_than_the_solution():
    def f(push):  # the solution is 0, whatever the steps
        return ours.solve_ivp(
            lambda t, y, push: [-y[0] + push * cnp.sin(50 * t)], (0, 10), [0.0], t_eval=[10.0],
            args=(push,), rtol=1e-6).y[0, -1]

    expected = (math.sin(500) - 50 * math.cos(500) + 50 * math.exp(-10)) / 2501
    for slope in cytape.grad(f)(0.0), cytape.jvp(f, (0.0,), (1.0,))[1]:
        np.testing.assert_allclose(slope, expected, 1e-5)


def test_many_components():
    n = 40
    rng = np.random.default_rng(1)
    matrix, start = 0.1 * rng.normal(size=(n, n)) - np.eye(n), rng.normal(size=n)

    def f(matrix, start, method):
        found = ours.solve_ivp(
            lambda t, y, a: a @ y, (0, 1), start, method, [0.5, 1.0], args=(matrix,), rtol=1e-9,
            atol=1e-9)
        return cnp.sum(cnp.tanh(found.y))

    slopes = [cytape.grad(f, argnums=(0, 1))(matrix, start, method)
              for method in ("RK45", "LSODA")]
    for one, other in zip(*slopes, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-6)
    t = rng.normal(size=n)
    tangent = cytape.jvp(lambda y: f(matrix, y, "RK45"), (start,), (t,))[1]
    np.testing.assert_allclose(tangent, slopes[0][1] @ t, 1e-6)


def test_structures_jacobians_and_results_without_steps():
    def f(rates, scale):
        return ours.solve_ivp(
            lambda t, y, rates, scale, power: -rates["slow"] * y**power * scale, (0, 1), [2.0],
            "Radau", args=({"slow": rates}, scale, 2), rtol=1e-9, atol=1e-9,
            jac=lambda t, y, rates, scale, power: [[-2 * rates["slow"] * y[0] * scale]]).y[0, -1]

    check_grads(f, [0.5, 1.5], order=1)
    found = ours.solve_ivp(decay, (0, 1), cytape.constant([2.0]), t_eval=[0.0], args=(1.0,))
    assert found.y.shape == (1, 1)
    slope = cytape.grad(lambda y: ours.solve_ivp(
        decay, (0, 1), y, t_eval=[0.0], args=(1.0,)).y[0, 0])(np.array([2.0]))
    assert slope == 1
    empty = ours.solve_ivp(decay, (0, 1), cytape.constant([2.0]), t_eval=[], args=(1.0,))
    assert len(empty.t) == len(empty.y) == 0


def test_errors():
    with pytest.raises(ValueError, match="gradient must be"):
        ours.solve_ivp(decay, (0, 1), [1.0], args=(1.0,), gradient="other")
    for y0 in (np.ones(1), cytape.constant(np.ones(1))):
        with pytest.raises(DetachedError, match=r"solve_ivp: .* `args`"):
            cytape.grad(lambda k: ours.solve_ivp(
                lambda t, y: -k * y, (0, 1), y0).y[0, -1])(2.0)  # noqa: B023
    with pytest.raises(ValueError, match="method"):
        ours.solve_ivp(decay, (0, 1), cytape.constant([1.0]), "RK99", args=(1.0,))
    with pytest.raises(TypeError, match="as a tuple"):
        ours.solve_ivp(decay, (0, 1), [1.0], args=cytape.constant(1.0))
    failed = ours.solve_ivp(
        lambda t, y: y**2, (0, 2), cytape.constant([1.0]), rtol=1e-6, t_eval=[0.5, 1.5])
    assert not failed.success and failed.status == -1
    traced = cytape.function(lambda y: ours.solve_ivp(
        lambda t, y: y**2, (0, 2), y, t_eval=[0.5, 1.5]).y)
    with pytest.raises(RuntimeError, match="solve_ivp failed: Required step size"):
        traced(np.ones(1))
    with pytest.raises(TypeError, match="dense_output"):
        cytape.function(lambda y: ours.solve_ivp(decay, (0, 1), y, dense_output=True).y)(np.ones(1))


def test_later_gradients_are_traced_and_the_same():
    offset = 0.0

    def f(rates, power, end):
        found = ours.solve_ivp(
            lambda t, y, rates, power: [-rates["a"] * y[0] ** power + offset, rates["b"] * y[0]],
            (0, end), [1.0, 0.0], args=(rates, power), rtol=1e-8, atol=1e-8)
        return found.y[0, -1] + found.y[1, -1]

    rates = {"a": np.float64(2.0), "b": np.array(0.5)}
    for power in (cytape.constant(1), 1):
        for end in (1.0, 1.5, 3.0):
            expected = [-np.exp(-2 * end) * end, (1 - np.exp(-2 * end)) / 2]
            expected[0] += 0.5 * (np.exp(-2 * end) * (1 + 2 * end) - 1) / 4
            for _ in range(4):
                found = cytape.grad(f)(rates, power, end)
                np.testing.assert_allclose([found["a"], found["b"]], expected, 1e-6)
                tangent = cytape.jvp(
                    lambda a: f({"a": a, "b": 0.5}, power, end), (2.0,), (1.0,))[1]  # noqa: B023
                np.testing.assert_allclose(tangent, expected[0], 1e-6)
    before = cytape.grad(f)(rates, 1, 1.0)["b"]
    offset = 1.0  # y[0] = exp(-2 t) / 2 + 1 / 2
    assert cytape.grad(f)(rates, 1, 1.0)["b"] > before + 0.1


def test_later_gradients_that_would_be_lost():
    def f(k):
        return ours.solve_ivp(
            lambda t, y, k: -cytape.convert_to_tensor(k).numpy() * y, (0, 1), [1.0],
            args=(k,)).y[0, -1]

    for _ in range(5):
        with pytest.raises(DetachedError, match="value left its tensor"):
            cytape.grad(f)(2.0)
        with pytest.raises(DetachedError, match="value left its tensor"):
            cytape.jvp(f, (2.0,), (1.0,))


def test_kept_traces_take_grids_of_any_size():
    def last(rate, end):
        return ours.solve_ivp(
            lambda t, y, rate: -rate * y, (0, end), [1.0], args=(rate,), rtol=1e-8).y[0, -1]

    kept_traces._kept.clear()
    for end in (0.1, 0.1, 0.1, 0.3, 1.0, 2.0, 3.0):
        np.testing.assert_allclose(cytape.grad(last)(1.0, end), -end * np.exp(-end), 1e-6)
    assert kept_traces._kept and all(x._takes_symbols for x in kept_traces._kept.values())


def test_kept_traces_are_of_states_of_one_size():
    def rhs(t, y, rate):
        return -rate * y * (2.0 if y.shape[0] == 3 else 1.0)

    def last(rate, n):
        return cnp.sum(ours.solve_ivp(
            rhs, (0, 1), np.ones(n), args=(rate,), rtol=1e-8, atol=1e-8).y[:, -1])

    for n, factor in [(2, 1), (2, 1), (2, 1), (3, 2), (3, 2), (3, 2), (3, 2), (2, 1)]:
        expected = -n * factor * np.exp(-factor)
        np.testing.assert_allclose(cytape.grad(last)(1.0, n), expected, 1e-5)


def test_errors_of_signal_handlers_are_raised():
    def interrupted(t, y, rate):
        if isinstance(y, cytape.Tensor) and y.graph is not None:
            raise TimeoutError
        return -rate * y

    with pytest.raises(TimeoutError):
        cytape.grad(lambda rate: ours.solve_ivp(
            interrupted, (0, 1), [1.0], args=(rate,)).y[0, -1])(2.0)


def test_jacobian_in_a_function_solves_once(monkeypatch):
    def states(rate, scale):
        return scale * ours.solve_ivp(
            lambda t, y, rate: -rate * y, (0, 1), [1.0], t_eval=np.linspace(0, 1, 10),
            args=(rate,), rtol=1e-8).y[0]

    calls = []
    solve = scipys.solve_ivp
    jacobians = cytape.jacobian(states, (0, 1))(2.0, 3.0)
    monkeypatch.setattr(scipys, "solve_ivp", lambda *args, **options: (
        calls.append(1), solve(*args, **options))[1])
    found = cytape.function(cytape.jacobian(states, (0, 1)))(2.0, 3.0)
    assert len(calls) == 2  # the value, and the gradients of all of its elements
    np.testing.assert_allclose(found, jacobians, 1e-12)
    second = cytape.function(cytape.jacobian(cytape.jacobian(states)))(2.0, 3.0)
    times = np.linspace(0, 1, 10)
    np.testing.assert_allclose(second, 3 * times**2 * np.exp(-2 * times), 1e-6, 1e-9)


@pytest.mark.parametrize(("n", "gradient"), [(2, "forward"), (40, "adjoint")])
def test_complex_arguments_of_real_equations(n, gradient):
    def last(p):
        return cnp.sum(ours.solve_ivp(
            lambda t, y, p: cnp.imag(p) - cnp.real(p * p) * y, (0, 1), np.ones(n), args=(p,),
            rtol=1e-8, atol=1e-9, gradient=gradient).y[:, -1])

    p, h = 0.7 + 0.2j, 1e-5
    differences = [(last(p + step) - last(p - step)) / (2 * h) for step in (h, h * 1j)]
    found = cytape.grad(last)(p)
    np.testing.assert_allclose([found.real, found.imag], differences, 1e-5)


def test_sensitivities_of_stiff_systems_take_few_steps(monkeypatch):
    def stiff(t, y, p):
        return [-50 * (1 + p[0]) * (y[0] - cnp.cos(t) * p[1]), y[0] - p[2] * y[1]]

    def last(p):
        return ours.solve_ivp(
            stiff, (0, 1), [0.5, 0.3], "BDF", args=(p,), rtol=1e-6, atol=1e-9,
            gradient="forward").y[1, -1]

    counts, solve = [], scipys.solve_ivp
    p = np.array([0.6, 0.7, 0.9])
    expected = cytape.jacfwd(last)(p)
    monkeypatch.setattr(scipys, "solve_ivp", lambda *args, **options: (
        found := solve(*args, **options), counts.append(found.nfev))[0])
    for _ in range(kept_traces.CALLS_BEFORE + 2):
        np.testing.assert_allclose(cytape.grad(last)(p), expected, 1e-4)
    assert max(counts) < 3 * min(counts)
