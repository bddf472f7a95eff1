"""Checks of arrays, as tests call them: they pass and fail where NumPy's do."""

import numpy as np
import pytest

import cytape
from tests.cases import each

NAN, INF = np.nan, np.inf


@each("make", [lambda a: a, cytape.constant])
@each(("x", "y", "rtol"), [
    ([1.0, 2.0], [1.0, 2.0], 0), ([1.0], [1.0 + 1e-9], 1e-7), ([1.0], [1.1], 1e-7),
    ([1.0], [INF], 1e-7), ([INF], [1.0], 1e-7), ([INF], [INF], 1e-7), ([INF], [-INF], 1e-7),
    ([NAN], [NAN], 1e-7), ([NAN], [1.0], 1e-7), ([], [], 0), ([1.0, NAN], [1.0, NAN], 0),
    ([1.0], [1.0, 1.0], 0), ([0.0], [-0.0], 0), ([1j], [1j + 1e-9], 1e-7), ([1j], [1.0], 1e-7)])
def test_arrays_are_close_where_numpy_says_so(x, y, rtol, make):
    x, y = np.array(x), np.array(y)
    try:
        np.testing.assert_allclose.__wrapped__(x, y, rtol)
    except AssertionError:
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(make(x), y, rtol)
    else:
        np.testing.assert_allclose(make(x), y, rtol)
        np.testing.assert_allclose(make(x), y, rtol=rtol, err_msg="no difference")


@each(("x", "y", "is_equal"), [
    (np.ones(2), np.ones(2), True), (np.ones(2), np.array([1.0, 2.0]), False),
    (np.array([NAN]), np.array([NAN]), True), (np.array([INF]), np.array([-INF]), False)])
def test_arrays_are_equal_where_numpy_says_so(x, y, is_equal):
    if is_equal:
        np.testing.assert_array_equal(x, y)
    else:
        with pytest.raises(AssertionError):
            np.testing.assert_array_equal(x, y)


def test_dtypes_differ_where_checks_are_strict():
    x, y = np.ones(2), np.ones(2, np.float32)
    np.testing.assert_allclose(x, y)
    for check in np.testing.assert_allclose, np.testing.assert_array_equal:
        with pytest.raises(AssertionError):
            check(x, y, strict=True)
