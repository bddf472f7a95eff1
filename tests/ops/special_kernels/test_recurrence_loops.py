"""Linear recurrences and the gradient of cumulative sums."""

import numpy as np
import pytest

from cytape.ops.special_kernels.recurrence_loops import cumsum_gradient, linear_recurrence
from tests.cases import each


@each("dtype", ["float32", "float64", "longdouble", "complex64", "complex128", "clongdouble"])
@each("shape", [(1,), (7,), (3, 5), (2, 1), (1, 2), (2, 3, 4), (0,), (3, 0), (0, 3)])
def test_sums_are_added_up_from_the_last(shape, dtype):
    g = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for x in g, g[::-1], np.asfortranarray(g), np.broadcast_to(g.dtype.type(3), shape):
        expected = np.flip(np.cumsum(np.flip(x, -1), -1), -1)
        np.testing.assert_array_equal(cumsum_gradient(x), expected, strict=True)


@each("g", [np.ones(()), np.ones(3, int), np.ones(3, "f2"), np.ones(3, ">f8")])
def test_sums_of_other_dtypes_are_refused(g):
    with pytest.raises(TypeError, match="expected a gradient with at least one axis"):
        cumsum_gradient(g)


@each("a, b", [
    (np.ones(1), np.ones(100_000)), (np.ones((2, 3)), np.ones((3, 2))), (np.ones(()), np.ones(())),
    (np.ones(3, "f4"), np.ones(3)), (np.ones(3, int), np.ones(3, int))])
def test_factors_and_terms_that_do_not_fit_are_refused(a, b):
    with pytest.raises(ValueError, match="of one dtype and one shape with at least one axis"):
        linear_recurrence(a, b)
