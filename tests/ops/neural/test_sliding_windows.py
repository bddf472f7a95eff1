"""Geometry of sliding kernels."""

import numpy as np
import pytest

from cytape import nn
from cytape.ops.neural.sliding_windows import Window, window_for
from cytape.ops.neural.window_loops import output_size
from tests.cases import each


@each("window", [
    Window((3, 2), (1, 1), (1, 1), ((0, 0), (0, 0))),
    Window((2, 3), (2, 3), (1, 1), ((1, 0), (0, 2))),
    Window((1, 4), (3, 1), (1, 2), ((0, 0), (6, 6)))])
def test_outputs_read_kernels_that_fit_into_the_padded_image(window):
    padded = np.pad(np.zeros((7, 9)), window.padding).shape
    assert window.output_size((7, 9)) == tuple(
        len(range(0, n - (kernel - 1) * dilation, stride)) for n, kernel, stride, dilation in zip(
            padded, window.kernel, window.strides, window.dilations, strict=True))


def test_a_kernel_that_does_not_fit_has_no_outputs():
    assert output_size(Window((3,), (2,), (1,), ((0, 0),)), (1,)) == (0,)


@each("strides", [2, [2, 2], (2, 2), np.int64(2), np.array([1, 2, 2, 1])])
def test_geometry_is_the_same_for_all_forms_of_strides(strides):
    window = window_for((1, 5, 6, 3), (2, 2), strides, [[0, 1], [1, 0]], 1, "NHWC")
    assert window == Window((2, 2), (2, 2), (1, 1), ((0, 1), (1, 0)))


def test_remembered_geometry_does_not_hide_errors():
    image = np.ones((1, 4, 4, 1))
    for _ in range(2):
        assert nn.max_pool(image, 2, 2, "VALID").shape == (1, 2, 2, 1)
        with pytest.raises(ValueError, match="ksize must be"):
            nn.max_pool(image, 2.0, 2, "VALID")
