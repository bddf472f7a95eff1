"""FITPACK's functions and interpolants of all data: SciPy's values, derivatives, refusals."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.interpolate")
ours = pytest.importorskip("cytape.scipy.interpolate")

RNG = np.random.default_rng(0)
X = np.array([0.0, 0.7, 1.1, 2.0, 2.4, 3.3, 3.9])
Y = RNG.normal(size=7)
T = np.array([-0.5] * 4 + [1.7] + [4.5] * 4)
POINTS = np.array([0.1, 1.5, 3.6])
CENTRES, AT = RNG.uniform(-1, 1, (8, 2)), RNG.uniform(-1, 1, (3, 2))
DATA = RNG.normal(size=(8, 2))
ONES = np.ones(7)
CURVES = {
    "interpolated": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y)(p),
    "interpolated, k=2": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y, k=2)(p, 1),
    "interpolated, zeros": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y, ext=1)(2 * p),
    "interpolated, const": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y)(2 * p, ext=3),
    "const, derivative": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y)(2 * p, 1, 3),
    "derivative, const": lambda m, x, y, p: m.UnivariateSpline(
        x, y, s=0, ext=3).derivative()(2 * p),
    "antiderivative, zeros": lambda m, x, y, p: m.UnivariateSpline(
        x, y, s=0, ext=1).antiderivative()(2 * p),
    "bbox": lambda m, x, y, p: m.InterpolatedUnivariateSpline(x, y, bbox=[-1, 4.5], k=4)(p),
    "integral": lambda m, x, y, p: m.UnivariateSpline(x, y, s=0).integral(p[0] - 1, p[1]),
    "derivative": lambda m, x, y, p: m.UnivariateSpline(x, y, s=0).derivative()(p),
    "antiderivative": lambda m, x, y, p: m.UnivariateSpline(x, y, s=0).antiderivative(2)(p),
    "splev": lambda m, x, y, p: m.splev(p, m.splrep(x, y), der=2),
    "splint": lambda m, x, y, p: m.splint(p[0], p[2], m.splrep(x, y, k=5)),
    "splder": lambda m, x, y, p: m.splev(p, m.splder(m.splrep(x, y), 2)),
    "splantider": lambda m, x, y, p: m.splev(p, m.splantider(m.splrep(x, y))),
    "lsq": lambda m, x, y, p: m.make_lsq_spline(x, y, T, w=x + 1)(p),
    "krogh": lambda m, x, y, p: m.KroghInterpolator(x, y)(p),
    "krogh derivatives": lambda m, x, y, p: m.KroghInterpolator(x, y).derivatives(p, 3),
    "barycentric": lambda m, x, y, p: m.BarycentricInterpolator(x, y)(p),
    "barycentric derivative": lambda m, x, y, p: m.BarycentricInterpolator(x, y).derivative(p)}
KERNELS = ["linear", "thin_plate_spline", "cubic", "quintic", "multiquadric",
           "inverse_multiquadric", "inverse_quadratic", "gaussian"]


@each("name", CURVES)
def test_curves(name):
    f = CURVES[name]
    expected = f(scipys, X, Y, POINTS)
    for call in (lambda: f(ours, X, cytape.constant(Y), POINTS),
                 lambda: f(ours, cytape.constant(X), Y, POINTS),
                 lambda: f(ours, X, Y, cytape.constant(POINTS)),
                 lambda: cytape.function(lambda y, p: f(ours, X, y, p))(Y, POINTS),
                 *([] if name == "bbox" else [lambda: cytape.function(
                     lambda x, y, p: f(ours, x, y, p))(X, Y, POINTS)])):
        np.testing.assert_allclose(call(), expected, 1e-8, 1e-8)
    check_grads(lambda *args: f(ours, *args), [X, Y, POINTS], order=1)


@each("kernel", KERNELS)
def test_radial_functions(kernel):
    def f(m, y, d, epsilon, x):
        return m.RBFInterpolator(y, d, smoothing=0.1, kernel=kernel, epsilon=epsilon)(x)

    expected = f(scipys, CENTRES, DATA, 1.3, AT)
    for i in range(4):
        args = [CENTRES, DATA, 1.3, AT]
        args[i] = cytape.constant(args[i])
        np.testing.assert_allclose(f(ours, *args), expected, 1e-9, 1e-9)
    check_grads(lambda y, d, x: f(ours, y, d, 1.3, x), [CENTRES, DATA, AT], order=1)
    check_grads(lambda epsilon, s: ours.RBFInterpolator(
        CENTRES, DATA, None, s, kernel, epsilon)(AT), [np.array(1.3), np.array(0.1)], order=1)


def test_surfaces():
    x, y, z = X, X[:6] + 0.1, RNG.normal(size=(7, 6))
    p, q = POINTS, POINTS[:2] + 0.5
    for f in (lambda m, x, y, z, p, q: m.RectBivariateSpline(x, y, z)(p, q),
              lambda m, x, y, z, p, q: m.RectBivariateSpline(x, y, z, kx=2, ky=4)(2 * p, q, 1, 2),
              lambda m, x, y, z, p, q: m.RectBivariateSpline(x, y, z).ev(p[:2], q, dy=1),
              lambda m, x, y, z, p, q: m.RectBivariateSpline(x, y, z).integral(
                  p[0], p[1], q[0], q[1])):
        expected = f(scipys, x, y, z, p, q)
        for i in range(5):
            args = [x, y, z, p, q]
            args[i] = cytape.constant(args[i])
            np.testing.assert_allclose(f(ours, *args), expected, 1e-8, 1e-8)
        check_grads(lambda *args, f=f: f(ours, *args), [x, y, z, p, q], order=1)


def test_repeated_points():
    x, y = [0.0, 0.0, 1.0, 1.0, 1.0], cytape.constant(Y[:5])
    expected = scipys.KroghInterpolator(x, Y[:5])
    np.testing.assert_allclose(ours.KroghInterpolator(x, y)(POINTS), expected(POINTS), 1e-10)
    np.testing.assert_allclose(
        ours.KroghInterpolator(x, y).derivative(POINTS, 2), expected.derivative(POINTS, 2), 1e-10)


def test_smoothing_splines():
    weights = 1 + X / 2
    for y, options in ((Y, {}), (np.stack([Y, Y**2]), {"axis": 1})):
        expected = scipys.make_smoothing_spline(X, y, weights, 0.3, **options)(POINTS)
        found = ours.make_smoothing_spline(X, cytape.constant(y), weights, 0.3, **options)(POINTS)
        np.testing.assert_allclose(found, expected, 1e-12)
    check_grads(lambda y, p: ours.make_smoothing_spline(X, y, lam=0.3)(p), [Y, POINTS], order=2)
    for x, y, lam in ((X, Y, None), (cytape.constant(X), Y, 1.0), (X, Y, cytape.constant(1.0))):
        with pytest.raises(TypeError, match="derivatives in y only"):
            ours.make_smoothing_spline(x, cytape.constant(y), lam=lam)


def test_all_ways_agree():
    known = [way for way in ways.WAYS if way != "unknown extents"]
    rows = np.stack([scipys.InterpolatedUnivariateSpline(X, row)(POINTS) for row in np.eye(7)], -1)
    ways.check(lambda y: cnp.sum(ours.InterpolatedUnivariateSpline(X, y)(POINTS)**3),
               lambda y: cnp.sum((rows @ y)**3), Y, ways=known)
    rows = np.stack([scipys.RBFInterpolator(CENTRES, row)(AT) for row in np.eye(8)], -1)
    ways.check(lambda d: cnp.sum(ours.RBFInterpolator(CENTRES, d)(AT)**3),
               lambda d: cnp.sum((rows @ d)**3), DATA[:, 0], ways=known)


def test_refusals():
    y, z = cytape.constant(Y), cytape.constant(np.outer(Y, Y))
    for call, message in [
            (lambda: ours.UnivariateSpline(X, y), "s=0"), (lambda: ours.splrep(X, y, s=1), "s=0"),
            (lambda: ours.RectBivariateSpline(X, X, z, s=1), "s=0"),
            (lambda: ours.UnivariateSpline(X, y, s=0).roots(), "roots"),
            (lambda: ours.RBFInterpolator(CENTRES, cytape.constant(DATA), 3)(AT), "neighbors")]:
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError):
        ours.InterpolatedUnivariateSpline(X, y)(9.0, ext=2)
    with pytest.raises(TypeError, match="m > k"):
        ours.splrep(X[:3], y[:3])
