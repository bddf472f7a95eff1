"""Loops of sliding windows: columns against single pixels, transposes, dtypes and layouts."""

import numpy as np
import pytest

from cytape.ops.neural import window_loops
from cytape.ops.neural.sliding_windows import Window
from tests.cases import each
from tests.ops.specs_nn import avg_pool, max_pool, visits

CASES = [
    ((7, 8), Window((3, 2), (1, 1), (1, 1), ((0, 0), (0, 0)))),
    ((7, 8), Window((2, 3), (2, 3), (1, 1), ((1, 0), (0, 2)))),
    ((7, 8), Window((3, 3), (1, 2), (2, 1), ((2, 2), (1, 1)))),
    ((2, 3), Window((1, 4), (3, 1), (1, 2), ((0, 0), (6, 6)))),
    ((2, 1), Window((2, 3), (1, 1), (1, 1), ((9, 0), (0, 9)))),  # windows in the padding
    ((9,), Window((2,), (1,), (2,), ((1, 0),))),
    ((2, 3, 4), Window((2, 1, 2), (1, 2, 1), (1, 1, 2), ((0, 1), (0, 0), (1, 0))))]


@each("case", CASES)
@each("groups", [1, 2])
def test_columns_are_the_pixels_that_each_output_sees(case, groups, rng):
    size, window = case
    image = rng.normal(size=(2, *size, 4))
    expected = np.zeros((2, *window.output_size(size), *window.kernel, 4))
    for place, seen in visits(image.shape, window).items():
        for offset, pixel in seen:
            expected[:, *place, *offset] = image[:, *pixel]
    found = window_loops.columns(image, window, groups)
    by_group = np.split(expected, groups, -1)
    np.testing.assert_array_equal(found, [part.reshape(found.shape[1:]) for part in by_group])
    g = rng.normal(size=found.shape)
    np.testing.assert_allclose(
        np.sum(window_loops.add_columns(g, window, image.shape) * image), np.sum(g * found))


@each("dtype", ["f2", "f4", ">f8", "g", "c8", "c16", "i1", "u8", "i8"])
def test_dtypes_and_layouts(dtype, rng):
    size, window = CASES[1]
    image = rng.integers(0, 9, (3, *size, 2)).astype(dtype)[::-1]
    image = image * 1j + 1 if image.dtype.kind == "c" else image
    columns = window_loops.columns(image, window)
    np.testing.assert_array_equal(columns, window_loops.columns(image.astype("c16"), window))
    image_of_sums = window_loops.add_columns(columns, window, image.shape)
    assert image_of_sums.dtype == columns.dtype
    np.testing.assert_array_equal(
        image_of_sums, window_loops.add_columns(columns.astype("c16"), window, image.shape))
    if image.dtype.kind != "c":
        for found, expected in zip(
                window_loops.max_pool(image, window), max_pool(image, window), strict=True):
            np.testing.assert_array_equal(found, expected)
    if image.dtype.kind in "fc":
        np.testing.assert_allclose(
            window_loops.avg_pool(image, window), avg_pool(image, window), 1e-3)


def test_large_integers_keep_their_order():
    image = np.array([2**63, 2**63 + 1], np.uint64).reshape(1, 2, 1)
    assert window_loops.max_pool(image, Window((2,), (1,), (1,), ((0, 0),)))[0] == 2**63 + 1


def test_ill_formed_operands_are_refused():
    window = Window((2,), (1,), (1,), ((0, 0),))
    for call in (
            lambda: window_loops.columns(np.ones((1, 2, 2, 1)), window),
            lambda: window_loops.add_columns(np.ones((1, 2, 2)), window, (1, 2, 1)),
            lambda: window_loops.avg_pool_gradient(np.ones((1, 2, 1)), window, (1, 2, 1)),
            lambda: window_loops.depthwise(np.ones((1, 2, 2)), np.ones((2, 1, 3)), window),
            lambda: window_loops.depthwise(np.ones((1, 2, 2)), np.ones((3, 1, 2)), window)):
        with pytest.raises(ValueError, match=r"takes images|expected an array|no multiple"):
            call()
    with pytest.raises(TypeError, match="have an order"):
        window_loops.max_pool(np.ones((1, 2, 1), complex), window)


def test_long_sums_of_single_precision_do_not_stop():
    image = np.full((1, 5000, 3500, 1), 1, np.float32)  # more elements than 2**24
    whole = Window((5000, 3500), (1, 1), (1, 1), ((0, 0), (0, 0)))
    assert window_loops.avg_pool(image, whole) == 1
    one = Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))
    assert window_loops.depthwise_filters(image, image, one) == image.size
