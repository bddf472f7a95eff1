"""Sliding windows: what NumPy's are, their gradients, in graphs, and what does not fit."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import cytape
from cytape.errors import DetachedError
from cytape.testing import check_grads
from tests.cases import each

X = np.arange(30.0).reshape(5, 6) ** 2


def smoothed(image):
    return np.sum(sliding_window_view(image, (3, 2)) * np.arange(6.0).reshape(3, 2), (-2, -1))


def test_an_image_filter():
    np.testing.assert_allclose(smoothed(cytape.constant(X)), smoothed(X))
    check_grads(lambda x: smoothed(x) ** 2, [X / 100], order=2)
    np.testing.assert_allclose(
        cytape.vmap(smoothed)(cytape.constant(np.stack([X, -X]))), [smoothed(X), smoothed(-X)])


def test_extents_that_only_a_run_knows():
    f = cytape.function(
        lambda x: sliding_window_view(x * x, 2), input_signature=[cytape.Spec.of((None,), float)])
    np.testing.assert_array_equal(f(X[0]), sliding_window_view(X[0] ** 2, 2))
    np.testing.assert_array_equal(cytape.grad(lambda x: np.sum(f(x)))(np.ones(4)), [2, 4, 4, 2])


@each("arguments", [(7,), ((2, 2),), (2, 1), (-1,)])
def test_windows_that_do_not_fit_raise_the_error_of_numpy(arguments):
    with pytest.raises(ValueError) as expected:
        sliding_window_view(X[0], *arguments)
    with pytest.raises(type(expected.value), match=".") as found:
        sliding_window_view(cytape.constant(X[0]), *arguments)
    assert str(found.value) == str(expected.value)


def test_strides_are_refused_and_what_to_write_is_said():
    with pytest.raises(DetachedError, match="sliding_window_view, not as_strided"):
        cytape.grad(lambda x: np.sum(np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8))))(X[0])


@each("window, axis, n", [((3, 3), (0, 0), 5), ((3, 0), (0, 0), 3), ((2, 3, 2), (0, 0, 0), 5)])
def test_windows_along_one_axis_need_room_for_all_of_them(window, axis, n):
    f = cytape.function(lambda x: sliding_window_view(x, window, axis),
                        input_signature=[cytape.Spec.of((None,), float)])
    x = np.arange(float(n))
    np.testing.assert_array_equal(f(x), sliding_window_view(x, window, axis))
    with pytest.raises(ValueError, match="window shape cannot be larger"):
        f(x[1:])


@each("extents", [None, (9,), (None,)])
def test_writes_are_seen_both_ways(extents):
    def f(x):
        x = x * 1.0
        windows = sliding_window_view(x, 3, writeable=True)
        windows[0] = x[4] ** 2
        x[5] = x[3] * 3.0
        windows[2:4, 1] += x[8]
        return x, windows * 1.0

    x = np.arange(9.0)
    way = f if extents is None else cytape.function(
        f, input_signature=[cytape.Spec.of(extents, float)])
    for found, expected in zip(way(cytape.constant(x)), f(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    check_grads(lambda x: sum(np.sum(y * y) for y in way(x)), [x / 10], order=2)
    with pytest.raises(ValueError, match="read-only"):
        y = cytape.constant(x)
        sliding_window_view(y, 3)[0] = 1.0


def test_windows_have_no_memory_of_their_own():
    x = cytape.constant(np.arange(1e4))
    windows = sliding_window_view(x, 5000)
    assert np.shares_memory(windows.numpy(), x.numpy())
    gradient = cytape.grad(lambda x: np.sum(sliding_window_view(x, 2)[:, 1]))(np.ones(4))
    np.testing.assert_array_equal(gradient, [0, 1, 1, 1])
