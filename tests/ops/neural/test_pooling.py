"""Pooling: ties, padding, NaN, integers, ranks, bad input; specs_nn.py has the values."""

import numpy as np
import pytest

from cytape.nn import avg_pool, avg_pool2d, max_pool, max_pool2d
from tests.cases import each
from tests.ways import gradient


def test_of_equal_maxima_the_first_gets_the_gradient():
    image = np.zeros((1, 2, 4, 1))
    image[0, :, 3, 0] = 1
    result = gradient(lambda x: max_pool2d(x, 2, 2, "VALID"), image)
    np.testing.assert_array_equal(result[0, :, :, 0], [[1, 0, 0, 1], [0, 0, 0, 0]])


def test_padding_is_never_the_maximum():
    for value in (-np.inf, -5.0):
        image = np.full((1, 3, 3, 1), value)
        pool = lambda x: max_pool2d(x, 3, 1, "SAME")  # noqa: E731
        np.testing.assert_array_equal(pool(image), image)
        assert gradient(pool, image).sum() == 9
    np.testing.assert_array_equal(max_pool2d(np.full((1, 1, 1, 1), -3), 3, 1, "SAME"), [[[[-3]]]])


def test_nan_is_the_maximum():
    image = np.array([0.0, np.nan, 5.0, 1.0]).reshape(1, 2, 2, 1)
    assert np.isnan(max_pool2d(image, 2, 1, "VALID")).all()


def test_padding_does_not_count_in_a_mean():
    ones = np.ones((1, 3, 3, 1))
    np.testing.assert_array_equal(avg_pool2d(ones, 2, 1, "SAME"), ones)


def test_integers_have_a_fractional_mean_and_an_integer_maximum():
    image = np.array([1, 2, 3, 4]).reshape(1, 2, 2, 1)
    assert avg_pool2d(image, 2, 2, "VALID").item() == 2.5
    assert max_pool2d(image, 2, 2, "VALID").dtype == image.dtype


@each("function, function2d", [(max_pool, max_pool2d), (avg_pool, avg_pool2d)])
def test_signals_and_volumes(function, function2d, rng):
    volume = rng.normal(size=(2, 3, 4, 5, 2))
    found = function(volume, (1, 2, 3), (1, 2, 1), "SAME")
    for depth in range(3):
        np.testing.assert_array_equal(
            found[:, depth], function2d(volume[:, depth], (2, 3), (2, 1), "SAME"))
    signal = volume[:, 0, 0]
    np.testing.assert_array_equal(
        function(signal, 2, 2, "VALID"), function2d(signal[:, None], (1, 2), (1, 2), "VALID")[:, 0])
    np.testing.assert_array_equal(
        function(np.swapaxes(signal, 1, 2), 2, 1, "SAME", data_format="NCW"),
        np.swapaxes(function(signal, 2, 1, "SAME"), 1, 2))


IMAGE = np.zeros((1, 4, 4, 2))


@each(("call", "named"), [
    (lambda: max_pool2d(IMAGE, 5, 1, "VALID"), "kernel"),
    (lambda: max_pool2d(IMAGE, -1, 1, "VALID"), "ksize"),
    (lambda: max_pool(IMAGE, 2, 1, "VALID", data_format="NWC"), "data_format"),
    (lambda: max_pool2d(IMAGE[0], 2, 1, "VALID"), "data_format"),
    (lambda: avg_pool2d(IMAGE, 2, 1, [(2, 0), (0, 0)]), "padding")])
def test_bad_arguments_are_errors_that_name_them(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_large_windows_of_half_precision():
    image = np.full((1, 4096, 1), 6e4, np.float16)
    np.testing.assert_array_equal(avg_pool(image, 4096, 1, "VALID"), np.float16(6e4))
    slope = gradient(lambda x: avg_pool(x, 4096, 1, "VALID"), image)
    np.testing.assert_array_equal(slope, np.float16(1 / 4096))
