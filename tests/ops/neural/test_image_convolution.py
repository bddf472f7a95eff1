"""Convolution and pooling: conventions, special values, bad input; specs_nn.py has the values."""

import numpy as np
import pytest

from cytape.ops.neural.image_convolution import Window, avg_pool2d, conv2d, max_pool2d
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.op_specs import distinct
from tests.ways import gradient

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


def test_conv2d_is_scipys_correlation(rng):
    from scipy import signal  # takes a second to import

    image, filters = rng.normal(size=(1, 6, 7, 1)), rng.normal(size=(3, 3, 1, 1))
    for padding, mode in [("VALID", "valid"), ("SAME", "same")]:
        np.testing.assert_allclose(
            conv2d(image, filters, 1, padding)[0, :, :, 0],
            signal.correlate2d(image[0, :, :, 0], filters[:, :, 0, 0], mode))


@each(size=[4, 5, 6, 7], stride=[1, 2, 3], kernel=[1, 2, 3, 5])
def test_same_padding_gives_one_output_per_stride_and_the_odd_zero_at_the_end(size, stride, kernel):
    image = np.arange(1.0, size + 1)[None, :, None, None]
    filters = np.ones((kernel, 1, 1, 1))
    output = conv2d(image, filters, (stride, 1), "SAME")[0, :, 0, 0]
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + kernel - size, 0)
    padded = np.pad(image[0, :, 0, 0], (total // 2, total - total // 2))
    expected = [padded[i * stride : i * stride + kernel].sum() for i in range(outputs)]
    np.testing.assert_array_equal(output, expected)


def test_forms_of_strides_dilations_and_padding(rng):
    image, filters = rng.normal(size=(2, 8, 9, 2)), rng.normal(size=(2, 3, 2, 4))
    expected = conv2d(image, filters, (2, 1), [(1, 0), (2, 3)], dilations=(1, 2))
    four = conv2d(
        image, filters, [1, 2, 1, 1], [[0, 0], [1, 0], [2, 3], [0, 0]], dilations=[1, 1, 2, 1])
    np.testing.assert_array_equal(four, expected)
    one = conv2d(image, filters, 2, "SAME")
    np.testing.assert_array_equal(one, conv2d(image, filters, (2, 2), "SAME"))


@each("padding", ["SAME", "VALID", [(1, 0), (0, 1)]])
def test_channels_first(padding, rng):
    image, filters = distinct()(rng, (2, 5, 6, 3)), rng.normal(size=(2, 3, 3, 4))
    first = np.transpose(image, (0, 3, 1, 2))
    for function, *arguments in [
        (conv2d, filters, (2, 1)), (max_pool2d, (2, 3), (2, 1)), (avg_pool2d, (2, 3), (2, 1)),
    ]:
        expected = np.transpose(function(image, *arguments, padding), (0, 3, 1, 2))
        actual = function(first, *arguments, padding, data_format="NCHW")
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
        check_grads(lambda x, f=function, a=arguments: f(x, *a, padding, data_format="NCHW"), [
            first])


def test_a_small_network_of_images_is_differentiable_twice(rng):
    image, filters = rng.normal(size=(2, 6, 6, 1)), rng.normal(size=(3, 3, 1, 2))

    def network(image, filters):
        hidden = np.tanh(conv2d(image, filters, 1, "SAME"))
        return avg_pool2d(max_pool2d(hidden, 2, 2, "SAME") ** 2, 2, 1, "SAME")

    check_grads(network, [image, filters])


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


IMAGE, FILTERS = np.zeros((1, 4, 4, 2)), np.zeros((3, 3, 2, 5))


@each(("call", "named"), [
    (lambda: conv2d(IMAGE[0], FILTERS, 1, "SAME"), "input"),
    (lambda: conv2d(IMAGE, FILTERS[0], 1, "SAME"), "filters"),
    (lambda: conv2d(IMAGE[..., :1], FILTERS, 1, "SAME"), "channels"),
    (lambda: conv2d(IMAGE, FILTERS, 0, "SAME"), "strides"),
    (lambda: conv2d(IMAGE, FILTERS, 1.5, "SAME"), "strides"),
    (lambda: conv2d(IMAGE, FILTERS, (2, 1, 1, 1), "SAME"), "strides"),
    (lambda: conv2d(IMAGE, FILTERS, (1, 1, 1), "SAME"), "strides"),
    (lambda: conv2d(IMAGE, FILTERS, 1, "same"), "padding"),
    (lambda: conv2d(IMAGE, FILTERS, 1, [(1, 1)]), "padding"),
    (lambda: conv2d(IMAGE, FILTERS, 1, [(1, -1), (0, 0)]), "padding"),
    (lambda: conv2d(IMAGE, FILTERS, 1, [(1, 0), (0, 0), (0, 0), (0, 0)]), "padding"),
    (lambda: conv2d(IMAGE, FILTERS, 1, "VALID", dilations=2), "dilations"),
    (lambda: conv2d(IMAGE, FILTERS, 1, "SAME", data_format="HWC"), "data_format"),
    (lambda: max_pool2d(IMAGE, 5, 1, "VALID"), "kernel"),
    (lambda: max_pool2d(IMAGE, -1, 1, "VALID"), "ksize"),
    (lambda: avg_pool2d(IMAGE, 2, 1, [(2, 0), (0, 0)]), "padding")])
def test_bad_arguments_are_errors_that_name_them(call, named):
    with pytest.raises(ValueError, match=named):
        call()
