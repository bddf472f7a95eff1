"""Quotients: against formulas that take care of every number, and at all strides."""

import numpy as np
import pytest

from cytape.ops.special_kernels import quotient_ufuncs
from tests.cases import each

INF, NAN = np.inf, np.nan
DTYPES = "fd"


def extremes(dtype):
    """Numbers of all sizes."""
    limits = np.finfo(dtype)
    sizes = [0.0, limits.smallest_subnormal, limits.tiny, limits.tiny * 8, limits.max / 8,
             limits.max, 1e-20, 1e20, 0.5, 1.0, 2.0, 3.0, INF, NAN]
    return np.array([*sizes, *[-x for x in sizes]], dtype)


def triples(dtype):
    numbers = extremes(dtype)
    return [x.ravel() for x in np.meshgrid(numbers, numbers, numbers)]


def over_squares(a, b, c):
    is_larger = (c > b) == (c > -b)
    larger, smaller = np.where(is_larger, c, b), np.where(is_larger, b, c)
    larger = np.where(larger == 0, INF, larger)
    return a / larger / (larger + smaller * (smaller / larger))


def power_less_one(a, b, c):
    return b ** (c - ((b != 0) | (c != 0)))


FORMULAS = {
    "over_squares": lambda a, b, c: ((a, b, c), over_squares(a, b, c)),
    "power_less_one": lambda a, b, c: ((b**c, b, c), power_less_one(a, b, c))}


@each(dtype=DTYPES, name=FORMULAS)
def test_numbers_of_all_sizes(name, dtype):
    with np.errstate(all="ignore"):
        operands, expected = FORMULAS[name](*triples(dtype))
        found = getattr(quotient_ufuncs, name)(*operands)
    assert found.dtype == dtype
    limits = np.finfo(dtype)
    if name == "power_less_one":  # of -1 the sign is lost where one less is the same exponent
        _, base, exponent = operands
        found = np.where((base == -1) & (exponent - 1 == exponent), np.abs(found), found)
    np.testing.assert_allclose(
        found, expected, rtol=8 * limits.eps, atol=2 * limits.smallest_subnormal)


@each("dtype", DTYPES)
def test_components_over_lengths_of_all_sizes(dtype):
    a, b = (x.ravel() for x in np.meshgrid(extremes(dtype), extremes(dtype)))
    with np.errstate(all="ignore"):
        expected = np.where(np.isinf(a), np.sign(a), a / b)
        expected[b == 0] = 0
        expected[(b == 0) & np.isinf(a)] = 0
        for step in (1, -2):
            found = quotient_ufuncs.unit(a[::step], b[::step])
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected[::step])
    with np.errstate(all="raise"):
        quotient_ufuncs.unit(np.array([INF, NAN, 0.0] * 50), np.array([INF, NAN, 0.0] * 50))


@each(dtype=DTYPES, name=FORMULAS)
def test_ordinary_numbers_among_which_there_is_another(name, dtype):
    rng = np.random.default_rng(0)
    for other in extremes(dtype)[:14]:
        a, b, c = rng.uniform(0.5, 2, (3, 1000)).astype(dtype)
        b[300] = other
        with np.errstate(all="ignore"):
            operands, expected = FORMULAS[name](a, b, c)
            found = getattr(quotient_ufuncs, name)(*operands)
        np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(dtype).eps)


@each(dtype=DTYPES, name=FORMULAS)
def test_all_strides_and_results_over_operands(name, dtype):
    function = getattr(quotient_ufuncs, name)
    operands = np.random.default_rng(1).uniform(0.5, 2, (3, 700)).astype(dtype)
    expected = function(*operands)
    for i in range(3):
        moved = [np.repeat(x, 2)[::2] if i == j else x for j, x in enumerate(operands)]
        np.testing.assert_array_equal(function(*moved), expected)
        numbers = [x[:1] if i == j else x for j, x in enumerate(operands)]
        np.testing.assert_array_equal(
            function(*numbers), function(*[np.broadcast_to(x, (700,)).copy() for x in numbers]))
        into = [x.copy() for x in operands]
        np.testing.assert_array_equal(function(*into, out=into[i]), expected)
    out = np.zeros(1400, dtype)
    function(*operands, out=out[::-2])
    np.testing.assert_array_equal(out[::-2], expected)


@pytest.mark.filterwarnings("error")
@each("name", FORMULAS)
def test_nothing_is_reported_of_nan(name):
    with np.errstate(all="raise"):
        getattr(quotient_ufuncs, name)(*np.full((3, 600), NAN))


def test_to_look_at_what_is_large_is_no_overflow():
    for dtype, large in ("float64", 1e200), ("float32", 1e30):
        x = np.full(300, large, dtype)
        with np.errstate(all="raise", under="ignore"):
            np.testing.assert_allclose(quotient_ufuncs.over_squares(x, x, x), 0.5 / x, 1e-6)


@each("dtype", DTYPES)
def test_slopes_of_divergences(dtype):
    a, b = (np.tile(x.ravel(), 9) for x in np.meshgrid(extremes(dtype), extremes(dtype)))
    is_limit = (a == 0) & (b == 0) | (a < INF) & (b == INF)
    with np.errstate(all="ignore"):
        expected = np.where((a >= 0) & (b >= 0), np.where(is_limit, 1, (b - a) / b), NAN)
        for step in (1, 2):
            found = quotient_ufuncs.divergence_slope(a[::step], b[::step])
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected[::step])
