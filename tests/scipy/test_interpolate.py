"""Interpolators: SciPy's values of arrays and tensors, derivatives in data and points, refusals."""

import pickle

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.interpolate")
ours = pytest.importorskip("cytape.scipy.interpolate")

X = np.array([0.0, 0.7, 1.1, 2.0, 2.4, 3.3])
Y = np.array([0.3, 1.2, -0.4, 0.9, 2.0, 1.1])
POINTS = np.array([[0.1, 0.69, 1.5], [2.39, 3.2, 2.7]])
OUTSIDE = np.array([-0.7, 1.5, 3.9])
PERIODIC = np.append(Y[:-1], Y[0])
CURVES = {
    "not-a-knot": ("CubicSpline", {}),
    "natural": ("CubicSpline", {"bc_type": "natural"}),
    "clamped": ("CubicSpline", {"bc_type": "clamped"}),
    "periodic": ("CubicSpline", {"bc_type": "periodic"}),
    "derivatives": ("CubicSpline", {"bc_type": ((1, 0.5), (2, -1.0))}),
    "one end": ("CubicSpline", {"bc_type": ("not-a-knot", (1, 0.3))}),
    "pchip": ("PchipInterpolator", {}),
    "akima": ("Akima1DInterpolator", {}),
    "makima": ("Akima1DInterpolator", {"method": "makima", "extrapolate": True}),
    "cubic": ("make_interp_spline", {}),
    "quadratic": ("make_interp_spline", {"k": 2}),
    "straight": ("make_interp_spline", {"k": 1}),
    "steps": ("make_interp_spline", {"k": 0}),
    "quintic": ("make_interp_spline", {"k": 5}),
    "natural B-spline": ("make_interp_spline", {"bc_type": "natural"}),
    "ends": ("make_interp_spline", {"bc_type": ([(1, 0.5)], [(2, -1.0)])}),
    "knots": ("make_interp_spline", {"t": [0, 0, 0, 0, 1.2, 2.1, 3.3, 3.3, 3.3, 3.3]}),
}


def data_for(name):
    return PERIODIC if name == "periodic" else Y


@each("name", CURVES)
def test_values_of_curves_are_scipys(name):
    kind, options = CURVES[name]
    theirs, made = getattr(scipys, kind), getattr(ours, kind)
    y = data_for(name)
    expected, arrays = theirs(X, y, **options), made(X, y, **options)
    np.testing.assert_array_equal(arrays(POINTS), expected(POINTS))
    assert isinstance(arrays(POINTS), np.ndarray) and isinstance(arrays, type(expected))
    both = np.stack([y, y * 2, np.sin(y)], 1)
    for points in POINTS, OUTSIDE, np.float64(1.3), X:
        for nu in range(3):
            found = [
                arrays(cytape.constant(points), nu),
                made(cytape.constant(X), y, **options)(points, nu),
                made(X, cytape.constant(y), **options)(cytape.constant(points), nu)]
            for one in found:
                assert isinstance(one, cytape.Tensor)
                np.testing.assert_allclose(one, expected(points, nu), 1e-10, 1e-12)
        if kind == "make_interp_spline" and "ends" in name or name in ("derivatives", "one end"):
            continue
        several = made(X, cytape.constant(both.T), axis=1, **options)
        np.testing.assert_allclose(
            several(points), theirs(X, both.T, axis=1, **options)(points), 1e-10, 1e-12)


@each("name", CURVES)
def test_derivatives_of_curves(name):
    kind, options = CURVES[name]
    y = data_for(name)
    if name == "periodic":
        def f(x, y, points):
            return ours.CubicSpline(x, cnp.concatenate([y, y[:1]]), **options)(points)

        y = y[:-1]
    else:
        def f(x, y, points):
            return getattr(ours, kind)(x, y, **options)(points)

    order = 2 if name in ("not-a-knot", "periodic", "pchip", "cubic") else 1
    if name == "steps":
        check_grads(lambda y: f(X, y, POINTS), [y], order=1)
    elif name == "knots":
        check_grads(lambda y, points: f(X, y, points), [y, POINTS], order=order)
    else:
        check_grads(f, [X, y, POINTS], order=order)


@each("name", ["derivatives", "one end", "ends"])
def test_derivatives_in_conditions_at_the_ends(name):
    kind, options = CURVES[name]

    def f(value, y):
        left, right = options["bc_type"]
        if name == "ends":
            bc = [(1, value)], right
        else:
            bc = left, (right[0], value)
        return getattr(ours, kind)(X, y, bc_type=bc)(POINTS)

    check_grads(f, [0.4, Y], order=1)


@each("name", ["not-a-knot", "periodic", "pchip", "cubic"])
def test_derivatives_and_integrals_of_curves(name):
    kind, options = CURVES[name]
    y = data_for(name)
    expected = getattr(scipys, kind)(X, y, **options)
    for found in (getattr(ours, kind)(X, cytape.constant(y), **options),
                  getattr(ours, kind)(X, y, **options)):
        points = cytape.constant(POINTS)
        np.testing.assert_allclose(found.derivative()(points), expected.derivative()(POINTS), 1e-9)
        np.testing.assert_allclose(
            found.antiderivative(2)(points), expected.antiderivative(2)(POINTS), 1e-9)
        for a, b in (0.2, 3.1), (2.0, 0.5), (-1.0, 8.0):
            np.testing.assert_allclose(
                found.integrate(cytape.constant(a), b), expected.integrate(a, b), 1e-9)
            np.testing.assert_allclose(found.integrate(a, b), expected.integrate(a, b), 1e-9)
    if name != "periodic":
        check_grads(lambda y, a, b: getattr(ours, kind)(X, y, **options).integrate(a, b),
                    [y, 0.2, 3.1], order=1)


def test_piecewise_polynomials():
    c = np.arange(12.0).reshape(3, 2, 2)
    x = np.array([0.0, 1.0, 2.5])
    for given in {}, {"extrapolate": False}, {"extrapolate": "periodic"}:
        expected = scipys.PPoly(c, x, **given)
        found = ours.PPoly(cytape.constant(c), x, **given)
        np.testing.assert_allclose(found(OUTSIDE), expected(OUTSIDE), 1e-13)
        assert isinstance(found, scipys.PPoly) and found.c.shape == c.shape
    check_grads(lambda c, x, p: ours.PPoly(c, x)(p), [c, x, np.array([0.4, 1.7])], order=2)
    check_grads(lambda x, p: ours.PPoly(c, x, extrapolate="periodic")(p),
                [x, np.array([-0.4, 5.7])], order=1)
    down = x[::-1].copy()
    np.testing.assert_allclose(
        ours.PPoly(c, down)(cytape.constant(OUTSIDE)), scipys.PPoly(c, down)(OUTSIDE), 1e-13)
    check_grads(lambda y, d: ours.CubicHermiteSpline(X, y, d)(POINTS), [Y, np.cos(Y)], order=1)
    check_grads(lambda t, c: ours.BSpline(t, c, 2)(np.array([1.2, 1.7])),
                [np.array([0.0, 0.1, 1.0, 2.0, 2.5, 3.0]), np.array([1.0, 3.0, 2.0])], order=2)
    beyond = cytape.grad(lambda x: ours.CubicSpline(X, Y, extrapolate=False)(x))
    assert np.isnan(beyond(9.0)) and np.isfinite(beyond(1.0))
    of_steps = cytape.grad(lambda c: ours.BSpline(np.arange(5.0), c, 0)(1.5))(np.arange(4.0))
    np.testing.assert_array_equal(of_steps, [0, 1, 0, 0])
    with pytest.raises(TypeError, match="roots is not supported"):
        ours.PPoly(cytape.constant(c), x).roots()
    assert ours.CubicSpline(X, Y).roots().shape == scipys.CubicSpline(X, Y).roots().shape
    again = pickle.loads(pickle.dumps(ours.CubicSpline(X, Y)))
    np.testing.assert_array_equal(again(POINTS), scipys.CubicSpline(X, Y)(POINTS))


@each("n", [2, 3, 4])
def test_few_points(n):
    for name in ("not-a-knot", "natural", "clamped", "periodic", "pchip", "akima"):
        kind, options = CURVES[name]
        x, y = X[:n], Y[:n].copy()
        if name == "periodic":
            y[-1] = y[0]
        expected = getattr(scipys, kind)(x, y, **options)(0.3)
        found = getattr(ours, kind)(cytape.constant(x), y, **options)(0.3)
        np.testing.assert_allclose(found, expected, 1e-12, 1e-14, err_msg=name)


KINDS = ("linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic",
         "cubic")


@each("kind", KINDS)
def test_interp1d(kind):
    shuffled = np.array([3, 0, 5, 1, 4, 2])
    both = np.stack([Y, np.cos(Y)])
    for options in {"fill_value": "extrapolate"}, {"bounds_error": False, "fill_value": (1.0, 2.0)}:
        for points in POINTS, OUTSIDE, X, np.float64(1.35):
            expected = scipys.interp1d(X[shuffled], both[:, shuffled], kind, **options)(points)
            for x, y, p in ((cytape.constant(X[shuffled]), both[:, shuffled], points),
                            (X[shuffled], both[:, shuffled], cytape.constant(points)),
                            (X[shuffled], cytape.constant(both[:, shuffled]), points)):
                found = ours.interp1d(x, y, kind, **options)(p)
                np.testing.assert_allclose(found, expected, 1e-11, 1e-12)
    np.testing.assert_array_equal(ours.interp1d(X, Y, kind)(POINTS), scipys.interp1d(
        X, Y, kind)(POINTS))
    with pytest.raises(ValueError, match="above the interpolation range|below"):
        ours.interp1d(X, cytape.constant(Y), kind)(OUTSIDE)
    check_grads(lambda y: ours.interp1d(X, y, kind)(POINTS), [Y], order=1)
    if kind in ("linear", "slinear", "quadratic", "cubic"):
        check_grads(lambda x, p: ours.interp1d(x, Y, kind)(p), [X, POINTS], order=1)


@each("kind", KINDS[:6])
def test_interp1d_of_one_point(kind):
    f = ours.interp1d([1.0], cytape.constant([2.0]), kind, bounds_error=False)
    np.testing.assert_array_equal(f([0.5, 1.0, 2.0]), scipys.interp1d(
        [1.0], [2.0], kind, bounds_error=False)([0.5, 1.0, 2.0]))


@each("kind", KINDS)
def test_dtypes_of_interp1d(kind):
    for dtypes in ("f8", "f8", "f4"), ("f4", "f4", "f4"), ("f8", "f4", "f8"):
        x, y, points = map(np.ndarray.astype, (X, Y, POINTS), dtypes)
        expected = scipys.interp1d(x, y, kind)(points)
        for data, at in ((cytape.constant(y), points), (y, cytape.constant(points))):
            found = ours.interp1d(x, data, kind)(at)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
        traced = cytape.function(lambda *given: ours.interp1d(*given[:2], kind)(given[2]))
        assert traced(x, y, points).dtype == expected.dtype


def test_grids():
    axes = X[:4], np.array([3.0, 2.0, 0.5]), np.array([0.0, 1.0])
    rng = np.random.default_rng(0)
    values, points = rng.normal(size=(4, 3, 2, 2)), rng.uniform(0.72, 0.95, (5, 3))
    for method in ("linear", "nearest", "slinear"):
        axis = axes if method != "slinear" else axes[:1]
        v, p = (values, points) if method != "slinear" else (values[:, 0, 0], points[:, :1])
        expected = scipys.RegularGridInterpolator(axis, v, method)(p)
        for found in (ours.RegularGridInterpolator(axis, cytape.constant(v), method)(p),
                      ours.RegularGridInterpolator(axis, v, method)(cytape.constant(p))):
            np.testing.assert_allclose(found, expected, 1e-12)
    check_grads(lambda v, x, y, z, p: ours.RegularGridInterpolator((x, y, z), v)(p),
                [values, *axes, points], order=1)
    check_grads(lambda p: ours.RegularGridInterpolator(axes, values)(p), [points], order=2)
    outside = np.array([[9.0, 1.0, 0.5], [0.6, 1.0, 0.5]])
    for fill in np.nan, 3.0, None:
        options = {"bounds_error": False, "fill_value": fill}
        np.testing.assert_allclose(
            ours.interpn(axes, cytape.constant(values), outside, **options),
            scipys.interpn(axes, values, outside, **options), 1e-12)
    for points_of in (points[:2, 0], points[:2, 1], points[:2, 2]), (0.3, 0.7, 0.9), np.meshgrid(
            [0.3, 0.5], [0.6, 0.7], 0.2):
        np.testing.assert_allclose(
            ours.interpn(axes, cytape.constant(values), tuple(points_of)),
            scipys.interpn(axes, values, tuple(points_of)), 1e-12)
        np.testing.assert_allclose(
            ours.RegularGridInterpolator(axes, cytape.constant(values))(tuple(points_of)),
            scipys.RegularGridInterpolator(axes, values)(tuple(points_of)), 1e-12)
    slope = cytape.grad(lambda p: cnp.sum(ours.interpn(
        axes, values, p, bounds_error=False)[1]))(outside)
    assert np.isfinite(slope[1]).all() and np.isnan(slope[0]).all()
    coordinates = tuple(cytape.constant(p) for p in points.T)
    np.testing.assert_allclose(
        ours.interpn(axes, values, coordinates), scipys.interpn(axes, values, points), 1e-12)
    with pytest.raises(ValueError, match="out of bounds in dimension 0"):
        ours.interpn(axes, cytape.constant(values), outside)


def test_scattered_points():
    rng = np.random.default_rng(2)
    points, values = rng.uniform(size=(12, 2)), rng.normal(size=(12, 2))
    xi = rng.uniform(0.3, 0.6, (6, 2))
    for method in ("linear", "nearest"):
        for rescale in (False, True):
            expected = scipys.griddata(points, values, xi, method, rescale=rescale)
            found = ours.griddata(points, values, xi, method, rescale=rescale)
            np.testing.assert_array_equal(found, expected)
            for p, v, x in ((cytape.constant(points), values, xi),
                            (points, cytape.constant(values), xi),
                            (points, values, cytape.constant(xi))):
                found = ours.griddata(p, v, x, method, rescale=rescale)
                np.testing.assert_allclose(found, expected, 1e-10)
    check_grads(lambda p, v, x: ours.griddata(p, v, x), [points, values, xi], order=2, rtol=1e-5)
    check_grads(lambda v: ours.griddata(points, v, xi, "nearest"), [values], order=1)
    grid = tuple(np.meshgrid([0.4, 0.5], [0.4, 0.5, 0.6]))
    for method in ("linear", "nearest"):
        expected = scipys.griddata(tuple(points.T), values, grid, method)
        for v, x in (cytape.constant(values), grid), (values, tuple(map(cytape.constant, grid))):
            np.testing.assert_allclose(
                ours.griddata(tuple(points.T), v, x, method), expected, 1e-10)
    far = np.array([[7.0, 7.0]])
    assert np.isnan(ours.griddata(points, cytape.constant(values), far)).all()
    for method in ("nearest", "linear", "cubic"):
        np.testing.assert_allclose(
            ours.griddata(X, cytape.constant(Y), (POINTS,), method),
            scipys.griddata(X, Y, (POINTS,), method), 1e-11)
    with pytest.raises(TypeError, match="got 'quintic' in 2 dimensions"):
        ours.griddata(points, cytape.constant(values), xi, "quintic")
    with pytest.raises(TypeError, match="triangulation needs their values"):
        cytape.function(lambda p: ours.griddata(p, values, xi))(points)


@each(method=["linear", "nearest"], rescale=[True, False])
def test_points_of_a_call_may_be_symbolic(method, rescale):
    points, values = np.random.default_rng(2).uniform(size=(12, 2)), np.arange(12.0)

    def f(x):
        xi = 0.4 + 0.1 * cnp.stack([x, x * x], -1)
        return np.sum(ours.griddata(points, x[0] * values, xi, method, rescale=rescale) ** 2)

    found = ours.griddata(points, values, cytape.constant(points[:3]), method)
    np.testing.assert_allclose(found, values[:3], atol=1e-12)
    ways.check(f, f, [0.3, 0.7, 1.1])


@each("name", ["not-a-knot", "pchip", "cubic", "linear", "grid"])
def test_crossings(name):
    if name == "grid":
        def of_data(y):
            table = cnp.stack([y, y * y])
            return ours.RegularGridInterpolator(([0, 1], X), table)(
                np.stack([np.full(3, 0.4), POINTS[0]], 1))
    elif name == "linear":
        def of_data(y):
            return ours.interp1d(X, y, fill_value="extrapolate")(0.3 * y + 1)
    else:
        kind, options = CURVES[name]

        def of_data(y):
            return getattr(ours, kind)(X, y, **options)(0.3 * y + 1)

    ways.check(
        lambda y: cnp.sum(cnp.sin(of_data(y))), lambda y: cnp.sum(cnp.sin(of_data(y))), Y,
        ways=ways.OF_KNOWN_EXTENTS,
        modes=["value", "reverse", "forward_over_reverse", "reverse_over_reverse"])


def test_points_of_unknown_extents():
    curve, steps = ours.make_interp_spline(X, Y), ours.interp1d(X, Y)
    grid = ours.RegularGridInterpolator((X, X), np.outer(Y, Y))

    def f(x):
        return cnp.sum(ours.CubicSpline(X, Y)(x) + curve(x) * steps(x)) + cnp.sum(
            grid(cnp.stack([x, x / 2], -1)))

    ways.check(f, f, POINTS[0], ways=["unknown extents"])


@each("name", ["not-a-knot", "pchip", "cubic", "BSpline", "grid"])
def test_invalid_data_in_traced_functions(name):
    if name == "grid":
        def made(x):
            return ours.RegularGridInterpolator((x,), Y)(np.array([[0.3], [2.2]]))
    elif name == "BSpline":
        def made(x):
            return ours.BSpline(x, Y[:3], 2)(1.5)
    else:
        def made(x):
            return getattr(ours, CURVES[name][0])(x, Y)(0.3)

    traced = cytape.function(made)
    np.testing.assert_allclose(traced(X), made(X), 1e-12)
    assert np.isnan(traced(X[[0, 2, 1, 3, 4, 5]])).all()
    if name == "grid":
        np.testing.assert_allclose(traced(X[::-1].copy()), made(X[::-1]), 1e-12)
        far = cytape.function(lambda p: ours.interpn((X,), Y, p))
        assert np.isnan(far(np.array([[9.0]]))).all()


def test_a_periodic_spline_of_other_data_in_a_traced_function():
    traced = cytape.function(lambda y: ours.CubicSpline(X, y, bc_type="periodic")(0.3))
    assert np.isfinite(traced(PERIODIC)) and np.isnan(traced(Y))


def test_errors_are_scipys():
    with pytest.raises(ValueError, match="strictly increasing"):
        ours.CubicSpline(cytape.constant(X[::-1].copy()), Y)
    with pytest.raises(ValueError, match="finite"):
        ours.CubicSpline(X, cytape.constant(Y * np.nan))
    with pytest.raises(TypeError, match='bc_type="periodic"'):
        ours.make_interp_spline(X, cytape.constant(PERIODIC), bc_type="periodic")
    with pytest.raises(ValueError, match="incompatible"):
        ours.make_interp_spline(X, cytape.constant(Y[:-1]))
    with pytest.raises(TypeError, match="must be known"):
        cytape.function(lambda y: ours.CubicSpline(X, y)(0.5), input_signature=[
            cytape.Spec.of((None,), float)])(Y)
