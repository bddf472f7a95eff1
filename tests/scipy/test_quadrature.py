"""`quad` and its kin, and integrals of samples: SciPy's values, derivatives, refusals."""

import math
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.integrate")
ours = pytest.importorskip("cytape.scipy.integrate")

SAMPLED = {
    "trapezoid": ours.trapezoid, "simpson": ours.simpson,
    "cumulative_trapezoid": ours.cumulative_trapezoid,
    "cumulative_simpson": ours.cumulative_simpson}


@each("name, size", [(name, size) for name in SAMPLED for size in (2, 3, 4, 5, 8)])
def test_samples(name, size):
    rng = np.random.default_rng(size)
    y, x = rng.normal(size=(3, size)), np.cumsum(rng.uniform(0.5, 1.5, size))
    theirs, function = getattr(scipys, name), SAMPLED[name]
    both = np.broadcast_to(x, y.shape) + np.arange(3.0)[:, None] ** 2 * x
    options = [{}, {"x": x}, {"dx": 0.5}, {"x": both}]
    if name.startswith("cumulative"):
        options.append({"x": x, "initial": 0})
    for given in options:
        np.testing.assert_array_equal(function(y, **given), theirs(y, **given))
        found = function(cytape.constant(y), **given)
        np.testing.assert_allclose(found, theirs(y, **given), 1e-13, 1e-15)
        if "x" in given:
            found = function(y, **given | {"x": cytape.constant(given["x"])})
            np.testing.assert_allclose(found, theirs(y, **given), 1e-13, 1e-15)
    found = function(cytape.constant(y.T), x=x, axis=0)
    np.testing.assert_allclose(found, theirs(y.T, x=x, axis=0), 1e-13, 1e-15)
    if name != "trapezoid":  # which broadcasts
        with pytest.raises(ValueError, match="length|shape"):
            function(cytape.constant(y), x=np.arange(size + 1.0))


def test_derivatives_of_integrals_of_samples():
    x = np.array([0.0, 0.4, 1.0, 1.3, 2.1, 2.2])
    for n in (5, 6):
        for function in SAMPLED.values():
            check_grads(lambda y, x: function(y, x=x), [np.sin(x[:n]), x[:n]], order=2)  # noqa: B023
    check_grads(lambda y, dx: ours.simpson(y, dx=dx), [np.sin(x), 0.3], order=1)
    check_grads(ours.romb, [np.sin(np.arange(9.0)).reshape(1, 9), 0.5], order=1)
    ways.check(
        lambda x: ours.simpson(cnp.sin(x), x=x) ** 2, lambda x: cnp.trapezoid(
            cnp.sin(x), x)**2 if len(x) < 3 else ours.simpson(cnp.sin(x), x=x) ** 2, x,
        ways=ways.OF_KNOWN_EXTENTS, modes=["value", "reverse", "forward_over_reverse"])


def bell(x, mean, rates):
    return cnp.exp(-rates["scale"] * (x - mean) ** 2)


def test_quad_in_limits_and_arguments():
    def f(a, b, mean, scale):
        return ours.quad(bell, a, b, (mean, {"scale": scale}))[0]

    point = (-0.5, 1.5, 0.3, 2.0)
    expected = scipys.quad(bell, -0.5, 1.5, (0.3, {"scale": 2.0}))
    assert ours.quad(bell, -0.5, 1.5, (0.3, {"scale": 2.0})) == expected
    found = ours.quad(bell, -0.5, cytape.constant(1.5), (0.3, {"scale": 2.0}))
    assert float(found[0]) == expected[0] and found[1] == expected[1]
    check_grads(f, point, order=2)
    ways.check(
        lambda p: f(p[0], p[1], p[2], p[3]), lambda p: f(p[0], p[1], p[2], p[3]), point,
        modes=["value", "reverse", "forward", "forward_over_reverse"])


def test_infinite_limits_weights_and_points():
    def f(scale):
        return ours.quad(lambda x, s: cnp.exp(-s * x * x), -np.inf, np.inf, (scale,))[0]

    check_grads(f, [2.0], order=2)
    np.testing.assert_allclose(f(cytape.constant(2.0)), math.sqrt(math.pi / 2), 1e-9)
    assert cytape.grad(lambda b: ours.quad(lambda x: cnp.exp(-x), 0, b)[0])(np.inf) == 0
    for weight, wvar in ("cos", 3.0), ("sin", 3.0), ("cauchy", -1.0):
        def weighted(a, b, c):
            return ours.quad(
                lambda x, c: cnp.tanh(c * x), a, b, (c,), weight=weight, wvar=wvar)[0]  # noqa: B023

        check_grads(weighted, [0.2, 1.5, 0.7], order=1)
    check_grads(lambda c: ours.quad(
        lambda x, c: cnp.exp(-c * x), 0, 1, (c,), weight="alg", wvar=(-0.5, 0.5))[0], [0.7])
    check_grads(lambda c: ours.quad(
        lambda x, c: cnp.abs(x - 0.5) * c, 0, 1, (c,), points=[0.5])[0], [0.7], order=1)
    with pytest.raises(TypeError, match="'alg' depends on the limits"):
        ours.quad(cnp.exp, cytape.constant(0.0), 1, weight="alg", wvar=(0, 0))
    check_grads(lambda p: ours.quad(
        lambda x, p: cnp.abs(x - p), 0, 1, (p,), points=cnp.stack([p]))[0], [0.4], order=1)
    with pytest.raises(TypeError, match="no derivative in wvar"):
        ours.quad(cnp.exp, 0, 1, weight="cos", wvar=cytape.constant(1.0))


def test_integrands_that_underflow_by_an_infinite_denominator():
    def planck(a):
        return ours.quad(lambda t, a: t**3 / (cnp.exp(t * a) - 1), 0, np.inf, (a,))[0]

    expected = np.pi**4 / 15
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for derivative in (cytape.grad(planck), cytape.function(cytape.grad(planck))):
            np.testing.assert_allclose(derivative(1.0), -4 * expected, 1e-9)
        np.testing.assert_allclose(cytape.grad(cytape.grad(planck))(1.0), 20 * expected, 1e-9)
        np.testing.assert_allclose(cytape.grad(lambda a: ours.quad(
            lambda t, a: 1 / (cnp.exp(-a * t) + cnp.exp(2 * a * t)), -np.inf, np.inf, (a,))[0])(
                0.5), -2 * np.pi / 3**1.5 / 0.25, 1e-9)
        warnings.simplefilter("ignore", scipys.IntegrationWarning)
        with pytest.warns(RuntimeWarning, match="derivative of the integrand .* at 0.5, where its"):
            cytape.grad(lambda a: ours.quad(
                lambda x, a: cnp.sqrt(cnp.abs((x - 0.5) * a)), 0, 1, (a,))[0])(1.0)


def test_singular_integrands_keep_their_accuracy():
    def f(power):  # 1 / (1 + power), though the integrand is infinite at 0
        return ours.quad(lambda x, p: x**p, 0, 1, (power,))[0]

    np.testing.assert_allclose(cytape.grad(f)(-0.5), -4, 1e-7)


def test_integrands_that_need_values():
    def f(rate):
        return ours.quad(
            lambda x, rate: rate * math.sin(x) if x < 0.5 else rate**2 * x, 0, 1, (rate,),
            points=[0.5])[0]

    np.testing.assert_allclose(
        cytape.grad(f)(2.0), 1 - math.cos(0.5) + 2 * 2.0 * 0.375, 1e-9)


def test_complex_integrands():
    def f(k):
        value = ours.quad(lambda x, k: cnp.exp(1j * k * x), 0, 1, (k,), complex_func=True)[0]
        return cnp.stack([cnp.real(value), cnp.imag(value)])

    check_grads(f, [2.0], order=2)
    found = cytape.function(cytape.jacobian(f))(np.array(2.0))
    np.testing.assert_allclose(found, cytape.jacobian(f)(2.0), 1e-12)


def test_integrals_over_several_variables():
    def f(c, end):
        return ours.dblquad(
            lambda y, x, c: cnp.exp(-c * x * y), 0, end, 0, lambda x: 1 + x, (c,))[0]

    value = scipys.dblquad(
        lambda y, x, c: np.exp(-c * x * y), 0, 1.5, 0, lambda x: 1 + x, (0.7,))[0]
    np.testing.assert_allclose(f(cytape.constant(0.7), 1.5), value, 1e-12)
    check_grads(f, [0.7, 1.5], order=1)
    slope = cytape.grad(lambda c: ours.tplquad(
        lambda z, y, x, c: c * c * x * z, 0, 1, 0, 1, 0, lambda x, y: x + y, (c,),
        epsabs=1e-6)[0])(0.7)
    np.testing.assert_allclose(slope, 0.7 * (1 / 4 + 1 / 3 + 1 / 6), 1e-9)
    check_grads(lambda c, d: ours.nquad(
        lambda u, v, c, d: cnp.exp(-c * u * v) * d["k"] + u,
        [lambda v, c, d: (0, v * d["k"]), (0.1, 1.7)], args=(c, {"k": d}),
        opts={"epsabs": 1e-4})[0], [0.7, 0.6], order=1)
    slope = cytape.grad(lambda end: ours.dblquad(lambda y, x: x * y, 0, 1, 0, end)[0])(1.5)
    np.testing.assert_allclose(slope, 0.75, 1e-9)
    with pytest.raises(TypeError, match="call nquad"):
        cytape.grad(lambda p: ours.dblquad(
            lambda y, x: x * y, 0, 1, 0, lambda x: p * x)[0])(2.0)
    with pytest.raises(TypeError, match="nquad of tensors"):
        ours.nquad(cnp.exp, [[0, cytape.constant(1.0)]], full_output=True)


def test_gradients_over_several_variables_evaluate_each_point_once():
    calls = []

    def function(x, y, c):
        calls.append(1)
        return cnp.exp(-c * x * y)

    def f(c):
        return ours.nquad(function, [(0, 1), lambda *_: (0, 1)], args=(c,))[0]

    value = scipys.nquad(function, [(0, 1), (0, 1)], args=(0.7,))
    n_points = len(calls)
    assert ours.nquad(function, [(0, 1), (0, 1)], args=(cytape.constant(0.7),)) == value
    check_grads(f, [0.7], order=2)
    calls.clear()
    found = cytape.grad(f)(0.7)
    assert n_points < len(calls) < n_points + 5
    np.testing.assert_allclose(cytape.function(cytape.grad(f))(0.7), found, 1e-12)


def test_arrays_as_integrands():
    def f(rates, end):
        return ours.quad_vec(lambda x, rates: cnp.exp(-rates * x), 0, end, args=(rates,))[0]

    rates = np.array([0.5, 2.0])
    np.testing.assert_allclose(
        f(cytape.constant(rates), 1.0), (1 - np.exp(-rates)) / rates, 1e-9)
    check_grads(f, [rates, 1.2], order=2)
    check_grads(lambda c, a, b: ours.fixed_quad(
        lambda x, c: cnp.exp(c * x), a, b, (c,))[0], [0.5, 0.1, 1.2], order=2)
    np.testing.assert_allclose(ours.fixed_quad(np.exp, 0, 1)[0], scipys.fixed_quad(np.exp, 0, 1)[0])
    with pytest.raises(TypeError, match="quad_vec does not work in graphs"):
        cytape.function(lambda r: f(r, 1.0))(rates)


def test_derivatives_that_would_be_lost():
    for end in (1.0, cytape.constant(1.0)):
        with pytest.raises(DetachedError, match="(?s)test_quadrature.py, line.*quad: .* `args`"):
            cytape.grad(lambda k: ours.quad(lambda x: k * x, 0, end)[0])(2.0)  # noqa: B023
    with pytest.raises(DetachedError, match="value left its tensor"):
        cytape.grad(lambda k: ours.quad(
            lambda x, k: x * cytape.convert_to_tensor(k).numpy(), 0, 1, (k,))[0])(2.0)


def test_cubature_of_tensors_that_the_function_reads():
    def f(rate, power):
        return ours.cubature(
            lambda x, power: np.exp(-rate * x[:, 0]) * x[:, 1] ** power, [0, 0], [1, 1],
            args=(power,)).estimate

    check_grads(f, [1.3, 2.0], order=1)
