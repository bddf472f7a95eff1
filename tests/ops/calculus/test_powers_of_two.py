"""Products with powers of two."""

import numpy as np

from cytape.ops.calculus.powers_of_two import over_powers_of_two
from tests.cases import each


@each(dtype=["float32", "float64"], shape=[(), (7,), (3, 5), (0,)], most=[20, 140, 1021, 1074])
def test_all_exponents(shape, dtype, most):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(dtype)
    exponents = np.asarray(rng.integers(-most, most + 1, shape), np.intc)
    for values in x, np.flip(x), x / 1e30, np.broadcast_to(np.asarray(3, dtype), shape):
        with np.errstate(all="ignore"):
            expected = np.asarray(np.ldexp(values, -exponents))
        np.testing.assert_array_equal(
            over_powers_of_two(np.asarray(values), exponents), expected, strict=True)


def test_special_numbers():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])
    found = over_powers_of_two(x, np.array([3, -3, 1, 2, 5], np.intc))
    np.testing.assert_array_equal(found, x)
    assert np.signbit(found[-1])


@each("x, exponents", [
    (np.ones(3, "f2"), np.ones(3, np.intc)), (np.ones(3, np.longdouble), np.ones(3, np.intc)),
    (np.ones(3), np.ones(3, np.int64)), (np.ones(3), np.ones(2, np.intc))])
def test_arguments_left_to_numpy(x, exponents):
    assert over_powers_of_two(x, exponents) is None
