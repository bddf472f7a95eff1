"""Convolution: conventions, ranks, groups, transposes, bad input; specs_nn.py has the values."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.nn import avg_pool2d, conv2d, max_pool2d
from cytape.testing import check_grads
from tests.cases import each
from tests.ops.op_specs import distinct
from tests.ways import OF_KNOWN_EXTENTS, check


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
    (lambda: conv2d(IMAGE[0], FILTERS[0], 1, "SAME"), "input of conv2d"),
    (lambda: conv2d(IMAGE, FILTERS, 1, "CAUSAL"), "padding"),
    (lambda: nn.convolution(IMAGE[0, 0], FILTERS), "numbers of axes"),
    (lambda: nn.convolution(IMAGE, FILTERS, groups=2), "2 groups"),
    (lambda: nn.convolution(IMAGE, FILTERS, groups=0), "groups"),
    (lambda: nn.convolution(IMAGE, np.zeros((3, 3, 1, 5)), groups=2), "multiple of 2"),
    (lambda: nn.depthwise_conv2d(IMAGE, FILTERS[0], 1, "SAME"), "filter"),
    (lambda: nn.conv_transpose(IMAGE, FILTERS), "5 channels"),
    (lambda: nn.conv_transpose(IMAGE, np.zeros((3, 3, 5, 2)), (5, 5)), "maps images"),
    (lambda: nn.conv_transpose(IMAGE, np.zeros((3, 3, 5, 2)), groups=3), "divisor of the 2"),
    (lambda: nn.conv_transpose(IMAGE, np.zeros((3, 3, 5, 2)), (4, 4, 4)), "output_shape")])
def test_bad_arguments_are_errors_that_name_them(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_signals_and_volumes_are_images_with_axes_of_length_1(rng):
    signal, filters = rng.normal(size=(2, 7, 3)), rng.normal(size=(3, 3, 4))
    for padding in ("SAME", "VALID", [(2, 1)]):
        pairs = padding if isinstance(padding, str) else [*padding, (0, 0)]
        np.testing.assert_allclose(
            nn.conv1d(signal, filters, 2, padding),
            conv2d(signal[:, :, None], filters[:, None], (2, 1), pairs)[:, :, 0], rtol=1e-12)
    volume = rng.normal(size=(2, 1, 5, 6, 3))
    np.testing.assert_allclose(
        nn.conv3d(volume, filters[None, :, None], 1, "SAME")[:, 0],
        conv2d(volume[:, 0], filters[:, None], 1, "SAME"), rtol=1e-12)
    first = np.moveaxis(volume, -1, 1)
    np.testing.assert_allclose(
        nn.convolution(first, filters[None, :, None], data_format="NCDHW"),
        np.moveaxis(nn.convolution(volume, filters[None, :, None]), -1, 1), rtol=1e-12)


def test_causal_outputs_do_not_see_later_elements(rng):
    signal, filters = rng.normal(size=(1, 8, 2)), rng.normal(size=(3, 2, 2))
    jacobian = cytape.jacobian(
        lambda x: nn.conv1d(x, filters, 1, "CAUSAL", dilations=2)[0, :, 0])(signal)[:, 0, :, 0]
    assert np.array_equal(jacobian != 0, np.tri(8) * np.tri(8, k=0)[::-1, ::-1].T * (
        (np.arange(8)[:, None] - np.arange(8)) % 2 == 0) * (
        np.arange(8)[:, None] - np.arange(8) <= 4) > 0)


@each("groups, channels, outputs", [(2, 4, 6), (4, 4, 8), (3, 3, 3)])
def test_groups_are_convolutions_of_their_channels(groups, channels, outputs, rng):
    image = rng.normal(size=(2, 5, 4, channels))
    filters = rng.normal(size=(3, 2, channels // groups, outputs))
    parts = [conv2d(x, f, 1, "SAME") for x, f in zip(
        np.split(image, groups, -1), np.split(filters, groups, -1), strict=True)]
    found = conv2d(image, filters, 1, "SAME", groups=groups)
    np.testing.assert_allclose(found, np.concatenate(parts, -1), rtol=1e-12)
    check_grads(lambda *xs: conv2d(*xs, 1, "SAME", groups=groups), [image, filters])


def test_depthwise_filters(rng):
    image, filters = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(2, 2, 3, 2))
    found = nn.depthwise_conv2d(image, filters, 1, "VALID")
    for channel in range(3):
        np.testing.assert_allclose(
            found[..., 2 * channel:2 * channel + 2],
            conv2d(image[..., [channel]], filters[:, :, [channel]], 1, "VALID"), rtol=1e-12)


@each("size, options", [
    ((6, 8), {"strides": 2}), ((5, 7), {"strides": 2, "output_shape": (5, 7)}),
    ((7, 5), {"strides": (2, 1), "padding": "VALID", "dilations": (1, 2)}),
    ((7, 5), {"padding": [(1, 0), (2, 2)]}), ((4, 6), {"groups": 2}),
])
def test_transposes_are_adjoint(size, options, rng):
    groups = options.get("groups", 1)
    image, filters = rng.normal(size=(2, *size, 3 * groups)), rng.normal(size=(3, 2, 3, 4))
    of_conv = {name: value for name, value in options.items() if name != "output_shape"}
    output = nn.convolution(image, filters, **{"padding": "SAME"} | of_conv)
    g = rng.normal(size=output.shape)
    back = nn.conv_transpose(g, filters, **options)
    assert back.shape == image.shape
    np.testing.assert_allclose(np.sum(back * image), np.sum(g * output), rtol=1e-10)
    check_grads(lambda g, f: nn.conv_transpose(g, f, **options), [g, filters])
    whole = nn.conv_transpose(g, filters, **options | {"output_shape": back.shape})
    np.testing.assert_array_equal(whole, back)


def test_all_ways_agree(rng):
    filters, x = rng.normal(size=(2, 1, 4)), rng.normal(size=(1, 5, 2))

    def convolved(x):
        hidden = np.tanh(nn.convolution(x, filters, 1, [(1, 0)], groups=2))
        return np.sum(nn.conv_transpose(hidden, filters[:, [0, 0]], padding="VALID") ** 2)

    def plain(x):
        padded = np.concatenate([np.zeros((1, 1, 2)), x], 1)
        hidden = np.tanh(np.concatenate([
            padded[:, :-1, [g]] * filters[0, 0, 2 * g:2 * g + 2]
            + padded[:, 1:, [g]] * filters[1, 0, 2 * g:2 * g + 2] for g in (0, 1)], -1))
        zeros = np.zeros((1, 1, 1))
        single = [np.sum(hidden * f[0], -1, keepdims=True) for f in filters]
        total = np.concatenate([single[0], zeros], 1) + np.concatenate([zeros, single[1]], 1)
        return 2 * np.sum(total ** 2)

    check(convolved, plain, x, ways=OF_KNOWN_EXTENTS)


@each("groups", [1, 2])
def test_long_sums_of_half_precision(groups):
    image, filters = np.ones((1, 3000, 2), np.float16), np.ones((1, 2 // groups, 2), np.float16)
    wide = nn.convolution(image, np.ones((3000, 2 // groups, 2), np.float16), groups=groups)
    np.testing.assert_array_equal(wide, 6000 / groups)
    with cytape.GradientTape() as tape:
        w = cytape.Variable(filters)
        y = nn.convolution(image, w, groups=groups)
    np.testing.assert_array_equal(tape.gradient(y, w), 3000)
    back = nn.conv_transpose(
        image[:, :2200], np.ones((2199, 2 // groups, 2), np.float16), groups=groups)
    assert back.max() > 4390 / groups


@each("groups", [1, 2])
def test_elements_of_filters_that_see_only_zeros(groups):
    image, filters = np.ones((1, 1, 2)), np.ones((3, 2 // groups, 2))
    gradient = cytape.grad(
        lambda w: np.sum(nn.convolution(image, w, padding="SAME", groups=groups)))(filters)
    np.testing.assert_array_equal(gradient, filters * [[[0]], [[1]], [[0]]])
