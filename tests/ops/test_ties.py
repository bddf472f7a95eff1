"""Where the operands of maximum and its kin are equal each gets half, on every way to a derivative.

What is not chosen gets 0 even of an infinite gradient: 0 * inf would be NaN.
"""

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ways import MODES, PLACES, ROUTES, derivatives

inf, nan = np.inf, np.nan

# x, y, and the share of x in the maximum, minimum, fmax and fmin
OPERANDS = np.array(
    [
        (1, 1, 0.5, 0.5, 0.5, 0.5), (2, 1, 1.0, 0.0, 1.0, 0.0), (1, 2, 0.0, 1.0, 0.0, 1.0),
        (0, -0.0, 0.5, 0.5, 0.5, 0.5), (inf, inf, 0.5, 0.5, 0.5, 0.5),
        (-inf, -inf, 0.5, 0.5, 0.5, 0.5), (inf, -inf, 1.0, 0.0, 1.0, 0.0),
        (nan, 1, 1.0, 1.0, 0.0, 0.0), (1, nan, 0.0, 0.0, 1.0, 1.0), (nan, nan, 1.0, 1.0, 1.0, 1.0)])
NAMES = ["maximum", "minimum", "fmax", "fmin"]
SIZES = [1, 8, 500, 5000]  # one, inline, in blocks, fused

routes = each("mode, place", ROUTES)
names = each("name", NAMES)


def weighted_of(name, weights):
    """Return a function whose first and second derivatives show the shares."""
    op = getattr(cnp, name)

    def f(x, y):
        z = op(x, y)
        finite = cnp.where(cnp.isfinite(z), z, 0.0)
        return weights * (z + 0.5 * finite * finite)

    return f


@names
@routes
@each(dtype=["float16", "float32", "float64"], size=SIZES)
def test_shares(name, mode, place, dtype, size):
    rows = np.resize(OPERANDS, (size, OPERANDS.shape[1]))
    x, y = (np.ascontiguousarray(rows[:, i], dtype) for i in (0, 1))
    share = rows[:, 2 + NAMES.index(name)]
    with np.errstate(invalid="ignore"):
        z = getattr(np, name)(x, y).astype(float)
    z[~np.isfinite(z)] = 0
    weights = np.resize(np.array([1.0, -2.0, 0.5], dtype), size)
    tx, ty = np.full(size, 0.25, dtype), np.full(size, 2.0, dtype)
    found = derivatives(mode, place, weighted_of(name, weights), [x, y], [tx, ty])
    # By NumPy, in one line each: the slope of z + z**2 / 2 is 1 + z, that of the slope 1.
    dz = share * tx + (1 - share) * ty
    curved = np.isfinite(getattr(np, name)(x, y))
    expected = {
        "reverse": [weights * (1 + z) * share, weights * (1 + z) * (1 - share)],
        "forward": [weights * (1 + z) * dz],
    }.get(mode, [weights * curved * dz * share, weights * curved * dz * (1 - share)])
    for got, want in zip(found, expected, strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=2e-3 if dtype == "float16" else 1e-6)


@names
@routes
def test_one_tensor_on_both_sides(name, mode, place):
    op = getattr(cnp, name)
    x, t = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    (found,) = derivatives(mode, place, lambda x: op(x, x) ** 2, [x], [t])
    expected = {"reverse": 2 * x, "forward": 2 * x * t}.get(mode, 2 * t)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@names
@each("place", PLACES)
def test_a_broadcast_operand_sums_its_shares(name, place):
    x, y = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 3.0]]), np.array(1.0)
    dx, dy = derivatives("reverse", place, getattr(cnp, name), [x, y], None)
    share = np.where(x == y, 0.5, x > y if "max" in name else x < y)
    np.testing.assert_array_equal(dx, share)
    np.testing.assert_array_equal(dy, np.sum(1 - share))


@names
@each(size=SIZES, place=PLACES)
def test_an_infinite_gradient_is_selected_not_multiplied(name, place, size):
    sign = 1.0 if "max" in name else -1.0
    x = np.resize([-1.0, 4.0, 0.0], size)
    op = getattr(cnp, name)
    (gradient,) = derivatives(
        "reverse", place, lambda x: cnp.sqrt(sign * op(sign * x, 0.0) + 0.0), [x], None)
    np.testing.assert_array_equal(gradient, np.resize([0.0, 0.25, inf], size))


@names
def test_a_finite_difference_at_a_tie_is_the_mean_of_both_sides(name):
    """Derivatives at a kink agree with central differences."""
    op, step = getattr(np, name), 1e-3
    by_x = (op(1 + step, 1.0) - op(1 - step, 1.0)) / (2 * step)
    np.testing.assert_allclose(cytape.grad(lambda x: op(x, 1.0))(1.0), by_x)


@each(mode=MODES, place=PLACES)
def test_clip_gives_all_to_the_array_at_its_bounds(mode, place):
    x = np.array([-2.0, -1.0, 0.5, 1.0, 2.0])
    (found,) = derivatives(mode, place, lambda x: cnp.clip(x, -1.0, 1.0) ** 2, [x], [np.ones(5)])
    inside = np.abs(x) <= 1
    np.testing.assert_array_equal(found, (2 if "over" in mode else 2 * x) * inside)


@each(mode=MODES, place=PLACES, numbers=[False, True])
def test_an_upper_bound_below_the_lower_one_gets_all(mode, place, numbers):
    x, low, high = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array(3.0), np.array(1.0)
    if numbers:
        found = derivatives(
            mode, place, lambda x: x + cnp.clip(x, 3.0, 1.0) ** 2, [x], [np.ones(5)])
        np.testing.assert_array_equal(found[0], np.full(5, 0.0 if "over" in mode else 1.0))
        return
    found = derivatives(
        mode, place, lambda *xs: cnp.clip(*xs) ** 2, [x, low, high], [np.ones(5), 1.0, 1.0])
    if mode == "forward":
        np.testing.assert_array_equal(found[0], np.full(5, 2.0))
    else:
        for each_found, expected in zip(found, (np.zeros(5), 0.0, 10.0), strict=True):
            np.testing.assert_array_equal(each_found, expected)


@each(place=PLACES, clip=[
    lambda x, bound: cnp.clip(x, bound, None), lambda x, bound: cnp.clip(x, None, bound)])
@each("size", SIZES)
def test_gradients_of_clip_at_nan(clip, size, place):
    x, bound = np.resize([1.0, nan, nan, 2.0], size), np.resize([nan, 1.0, nan, 2.0], size)
    dx, dbound = derivatives("reverse", place, clip, [x, bound], None)
    np.testing.assert_array_equal(dx, np.resize([0.0, 1.0, 1.0, 1.0], size))
    np.testing.assert_array_equal(dbound, 1 - dx)


@each("place", PLACES)
def test_relu_is_flat_at_zero(place):
    x = np.array([-1.0, 0.0, 2.0])
    (found,) = derivatives("reverse", place, cytape.nn.relu, [x], None)
    np.testing.assert_array_equal(found, [0.0, 0.0, 1.0])


@names
def test_taylor_mode_at_a_tie(name):
    op = getattr(np, name)
    _, derivatives = cytape.jet(lambda x: op(x, 1.0) ** 2, 1.0, [1.0, 0.0])
    np.testing.assert_allclose(derivatives, [1.0, 0.5])


EXTREMA = {
    "max": np.max, "min": np.min, "nanmax": np.nanmax, "nanmin": np.nanmin,
    "norm": lambda x, axis: np.linalg.norm(x, np.inf, axis=axis),
    "with a start": lambda x, axis: np.max(x, axis=axis, initial=0.0)}


@each(traced=[False, True], recorded=[False, True], size=[2, 20000], seed=[inf, -inf, nan, 2.0])
@each("extremum", EXTREMA.values(), ids=EXTREMA)
def test_elements_beside_extrema_get_nothing(extremum, seed, size, recorded, traced):
    x = np.tile([[1.0], [3.0], [3.0], [2.0]], size)
    chosen = x == extremum(x, axis=0)
    expected = np.zeros_like(x)
    expected[chosen] = seed / chosen[:, 0].sum()

    def gradient(x, seed):
        tensor = cytape.constant(x) if isinstance(x, np.ndarray) else x
        with cytape.GradientTape() as outer, cytape.GradientTape() as tape:
            tape.watch(tensor)
            if recorded:  # where rules are called with tensors
                outer.watch(tensor)
            y = extremum(tensor, axis=0)
            found = tape.gradient(y, tensor, seed)
        return found

    seeds = np.full(size, seed)
    found = (cytape.function(gradient) if traced else gradient)(x, seeds)
    np.testing.assert_array_equal(np.asarray(found), expected)


@each(traced=[False, True], seed=[inf, nan, 2.0])
def test_extrema_that_are_nan_give_nan_to_all(seed, traced):
    def gradient(x, seed):
        return cytape.vjp(lambda x: np.max(x, axis=1), x)[1](seed)[0]

    x = np.array([[1.0, nan, 2.0], [1.0, 3.0, 2.0]])
    found = (cytape.function(gradient) if traced else gradient)(x, np.array([seed, 1.0]))
    np.testing.assert_array_equal(found, [[nan] * 3, [0.0, 1.0, 0.0]])


@each(traced=[False, True], dtype=[np.float16, np.float64, np.complex128])
def test_infinite_gradients_of_infinite_norms_give_nothing_to_zeros(dtype, traced):
    def gradient(x):
        return cytape.vjp(lambda x: np.linalg.norm(x, inf), x)[1](np.array(inf, x.real.dtype))[0]

    found = (cytape.function(gradient) if traced else gradient)(np.zeros(2, dtype))
    np.testing.assert_array_equal(np.asarray(found), [0.0, 0.0])


@each(traced=[False, True], extremum=[np.max, lambda x: np.linalg.norm(x, inf)])
def test_tangents_of_elements_beside_extrema_are_not_looked_at(extremum, traced):
    def tangent(x, t):
        return cytape.jvp(extremum, (x,), (t,))[1]

    found = (cytape.function(tangent) if traced else tangent)(np.array([1.0, 2.0]),
                                                              np.array([inf, 3.0]))
    assert float(found) == 3.0
