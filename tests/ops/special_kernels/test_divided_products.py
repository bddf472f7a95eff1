"""Derivatives of products by division, where all numbers are normal."""

import numpy as np

import cytape
from cytape.ops.special_kernels.line_products import products_derivative
from tests.cases import each

INF = np.inf
RNG = np.random.default_rng(0)


def by_recurrences(g, x):
    """Return the gradient of the product of columns as that of cumulative products, at the end."""
    ends = np.zeros_like(x)
    ends[-1] = g
    return products_derivative(x, (0,), g=ends, cumulative=True)


@each(known=[False, True], weight=[1.0, 1e-300, 0.0])
@each("place, factor", [(0, 0.0), (5, -0.0), (3, np.nan), (8, INF), (7, 1e-310), (2, 1e300),
                        (2, 1e-300), (4, 2.0)])
@each("columns", [1, 2, 9])
def test_products_are_divided_only_where_that_is_exact(place, factor, known, columns, weight):
    x = np.full((9, columns), 1.5)
    x[place, -1] = factor
    x[place - 1, -1] = 1e200 if factor == 1e300 else 1e-200 if factor == 1e-300 else 1e10
    g = np.full(columns, weight)
    with np.errstate(all="ignore"):
        product = np.prod(x, 0) if known else None
        found = products_derivative(x, (0,), g=g, product=product)
        np.testing.assert_allclose(found, by_recurrences(g, x), 1e-14)
        t = RNG.normal(size=x.shape)
        moved = products_derivative(x, (0,), t=t, product=product)
        expected = products_derivative(x, (0,), t=t, cumulative=True)[-1]
        np.testing.assert_allclose(moved, expected, 1e-12)


def test_products_that_vanish_on_the_way_are_not_divided():
    # Of sixteen chains one is subnormal, and another makes up for it.
    x = np.ones(32)
    x[[0, 1, 16, 17]] = 1.1e-160, 1e150, 1.3e-160, 1e150
    for gradient in cytape.grad(np.prod), cytape.function(cytape.grad(np.prod)):
        np.testing.assert_allclose(gradient(x)[[0, 2]], [1.3e140, 1.43e-20], 1e-14)


def test_gradients_may_be_finite_where_products_of_later_factors_are_not():
    x = np.array([1e-150, 1e-150, 1e200, 1e200])
    np.testing.assert_allclose(cytape.grad(np.prod)(x), 1e100 / x, 1e-14)
