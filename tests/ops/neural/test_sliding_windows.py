"""Geometry of sliding kernels."""

import numpy as np

from cytape.ops.neural.sliding_windows import Window
from tests.cases import each

WINDOWS = [
    Window((3, 2), (1, 1), (1, 1), ((0, 0), (0, 0))),
    Window((2, 3), (2, 3), (1, 1), ((1, 0), (0, 2))),
    Window((3, 3), (1, 2), (2, 1), ((2, 2), (1, 1))),
    Window((1, 4), (3, 1), (1, 2), ((0, 0), (6, 6)))]


@each("window", WINDOWS)
def test_taps_are_the_pixels_that_each_output_sees(window):
    size = (7, 9)
    image = np.arange(63.0).reshape(size)
    padded = np.pad(image, window.padding, constant_values=np.nan)
    outputs = np.full((*window.output_size(size), *window.kernel), np.nan)
    for (i, j), seen_by, pixels in window.taps(size):
        outputs[seen_by[1:] + (i, j)] = image[pixels[1:]]
    for index in np.ndindex(outputs.shape):
        y, x = (o * stride + k * dilation for o, k, stride, dilation in zip(
            index[:2], index[2:], window.strides, window.dilations, strict=True))
        np.testing.assert_equal(outputs[index], padded[y, x])


def test_taps_of_a_signal_and_of_a_volume():
    window = Window((2,), (1,), (2,), ((1, 0),))
    assert window.output_size((4,)) == (3,)
    whole = slice(None)
    assert window.taps((4,)) == [
        ((0,), (whole, slice(1, 3)), (whole, slice(0, 2, 1))),
        ((1,), (whole, slice(0, 3)), (whole, slice(1, 4, 1)))]
    assert len(Window((2, 3, 4), (1,) * 3, (1,) * 3, ((0, 0),) * 3).taps((5, 5, 5))) == 24
