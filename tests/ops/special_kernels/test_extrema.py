"""Parts of gradients: against comparisons and numpy.where, at ties, NaN, signs and all strides."""

import itertools

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.ops.special_kernels import extrema
from tests.cases import each, sampled
from tests.ways import gradient, gradients, taped, watching

INF, NAN = np.inf, np.nan
PAIRS = np.array([
    (1, 1), (2, 3), (3, 2), (NAN, 1), (1, NAN), (NAN, NAN), (0.0, -0.0), (INF, INF), (-INF, 5),
    (-INF, -INF), (-2, -3), (-3, 2), (5, -INF),
])
DTYPES = "efdgFDG"
TAKES_FIRST = {
    "maximum": lambda x, y: (x > y) | (x != x), "minimum": lambda x, y: (x < y) | (x != x),
    "fmax": lambda x, y: (x > y) | (y != y), "fmin": lambda x, y: (x < y) | (y != y)}
WAYS = {
    "whole": lambda x: x, "every other": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1], "a number": lambda x: x[0]}


def drawn(n, dtype):
    x, y = np.resize(PAIRS, (n, 2)).T.astype(dtype)
    return np.arange(1, n + 1).astype(dtype), x, y


@sampled(4, n=[1, 5, 13, 64, 1001], dtype=DTYPES, function=TAKES_FIRST)
def test_shares_of_extrema(function, dtype, n):
    for ways in itertools.product(WAYS.values(), repeat=3):
        g, x, y = (way(a) for way, a in zip(ways, drawn(n, dtype), strict=True))
        with np.errstate(all="raise"):  # NaN is not an invalid operation
            first = getattr(extrema, f"first_of_{function}")(g, x, y)
            second = getattr(extrema, f"second_of_{function}")(g, x, y)
        with np.errstate(all="ignore"):
            tied, taken = x == y, TAKES_FIRST[function](x, y)
        assert first.dtype == second.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(first, np.where(tied, g / 2, np.where(taken, g, 0)))
        np.testing.assert_array_equal(second, np.where(tied, g / 2, np.where(taken, 0, g)))


@each(n=[1, 13, 1001], dtype=DTYPES)
def test_where_unchanged(dtype, n):
    for ways in itertools.product(WAYS.values(), repeat=3):
        g, x, y = (way(a) for way, a in zip(ways, drawn(n, dtype), strict=True))
        found = extrema.where_unchanged(g, x, y)
        np.testing.assert_array_equal(found, np.where((x == y) | ((x != x) & (y != y)), g, 0))


def test_half_of_every_half_precision_number():
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    ones = np.ones_like(x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(extrema.first_of_maximum(x, ones, ones), x / np.float16(2))


def test_an_order_of_half_precision_numbers():
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y, g = np.random.default_rng(0).permutation(x), np.ones_like(x)
    with np.errstate(all="ignore"):
        expected = np.where(x == y, 0.5, np.where((x > y) | (x != x), 1, 0))
    np.testing.assert_array_equal(extrema.first_of_maximum(g, x, y), expected)


@each("function", [cnp.maximum, cnp.minimum, cnp.fmax, cnp.fmin])
def test_infinite_gradients_are_not_multiplied_by_zero(function):
    x, y = cytape.constant([1.0, 2.0, 3.0]), cytape.constant([2.0, 1.0, 3.0])
    by_x, by_y = gradients(function, x, y, output_gradients=np.full(3, INF))
    assert not np.isnan([by_x, by_y]).any()


@each("compiled", [False, True])
def test_second_derivatives_through_extrema(compiled):
    def curvature(x):
        with watching(x) as outer:
            g = gradient(
                lambda x: cnp.sum(cnp.maximum(x * x * x, 2 * x) + cnp.clip(x * x, 1.0, 9.0)), x)
        return outer.gradient(g, x)

    run = cytape.function(curvature) if compiled else curvature
    x = cytape.constant([-1.0, 0.5, 1.5, 4.0])
    for _ in range(2):
        np.testing.assert_array_equal(run(x), [-6.0 + 2.0, 0.0, 9.0 + 2.0, 24.0])


@each("low, high", [(1.0, -1.0), (NAN, 1.0), (0.0, NAN), (-INF, INF), (0.0, 2.0)])
def test_the_parts_of_a_clip_add_up(low, high):
    """Array and bounds get the gradient between them, also where the bounds are the wrong way."""
    x = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, INF, -INF, NAN])
    operands = [cytape.constant(x), *[cytape.constant(np.full(9, bound)) for bound in (low, high)]]
    tape, y = taped(lambda operands: cnp.clip(*operands), operands)
    np.testing.assert_array_equal(y, np.clip(x, low, high))
    np.testing.assert_array_equal(np.sum(tape.gradient(y, operands), axis=0), np.ones(9))
