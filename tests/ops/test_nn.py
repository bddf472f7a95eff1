"""Functions of neural networks: extreme values, conventions, bad input."""

import numpy as np
import pytest
from scipy import signal, special

import cytape
from cytape import nn
from cytape.ops.declare import OPS
from cytape.testing import check_grads

RNG = np.random.default_rng(0)
EXTREME = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]])


def gradient(function, x):
    x = cytape.constant(x)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x).numpy()


# -- activations ---------------------------------------------------------------------------------


def test_activations_at_extreme_values():
    x = np.array([-1e4, -800.0, -40.0, 0.0, 40.0, 1e4, np.inf, -np.inf])
    np.testing.assert_allclose(nn.sigmoid(x), special.expit(x), rtol=1e-12)
    np.testing.assert_allclose(nn.softplus(x), np.logaddexp(x, 0), rtol=1e-12)
    np.testing.assert_allclose(gradient(nn.softplus, x), special.expit(x), rtol=1e-12)
    slope = special.expit(x) * special.expit(-x)
    np.testing.assert_allclose(gradient(nn.sigmoid, x), slope, rtol=1e-12, atol=1e-16)
    np.testing.assert_array_equal(gradient(nn.relu, x), x > 0)


# -- softmax and cross-entropy -------------------------------------------------------------------


def test_softmax_family_at_extreme_logits():
    np.testing.assert_allclose(nn.softmax(EXTREME), special.softmax(EXTREME, axis=-1))
    np.testing.assert_allclose(nn.log_softmax(EXTREME), special.log_softmax(EXTREME, axis=-1))
    np.testing.assert_allclose(nn.logsumexp(EXTREME, axis=-1), special.logsumexp(EXTREME, axis=-1))
    for function in (nn.softmax, nn.log_softmax, lambda x: nn.logsumexp(x, axis=-1)):
        assert np.isfinite(gradient(function, EXTREME)).all()


def test_impossible_classes_have_no_gradient():
    x = np.array([0.0, -np.inf, 1.0])
    shares = special.softmax(x)
    np.testing.assert_allclose(nn.softmax(x), shares)
    np.testing.assert_allclose(gradient(nn.logsumexp, x), shares)
    np.testing.assert_allclose(
        gradient(lambda t: nn.softmax(t)[0], x), shares[0] * (np.eye(3)[0] - shares)
    )
    np.testing.assert_allclose(gradient(lambda t: nn.log_softmax(t)[0], x), np.eye(3)[0] - shares)


def test_logsumexp_of_nothing_possible():
    x = np.full(3, -np.inf)
    assert nn.logsumexp(x) == -np.inf
    np.testing.assert_array_equal(gradient(nn.logsumexp, x), np.zeros(3))
    np.testing.assert_array_equal(nn.logsumexp(np.zeros((2, 0)), axis=1), [-np.inf, -np.inf])


def test_integer_logits_are_taken_as_floats():
    assert nn.softmax(np.array([0, 0])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("one_hot", [np.eye(3), np.eye(3, dtype=int)], ids=["float", "int"])
def test_both_cross_entropies_agree_and_are_stable(one_hot):
    classes = np.array([0, 1, 2])
    logs = special.log_softmax(EXTREME, axis=-1)
    dense = nn.softmax_cross_entropy_with_logits(one_hot, EXTREME)
    sparse = nn.sparse_softmax_cross_entropy_with_logits(classes, EXTREME)
    np.testing.assert_allclose(dense, -logs[np.arange(3), classes])
    np.testing.assert_allclose(sparse, dense)
    expected = special.softmax(EXTREME, axis=-1) - one_hot
    for loss, labels in [
        (nn.softmax_cross_entropy_with_logits, one_hot),
        (nn.sparse_softmax_cross_entropy_with_logits, classes),
    ]:
        result = gradient(lambda x, loss=loss, labels=labels: loss(labels, x), EXTREME)
        np.testing.assert_allclose(result, expected, atol=1e-15)


def test_an_impossible_class_without_a_label_costs_nothing():
    logits, labels = np.array([0.0, -np.inf, 0.0]), np.array([0.5, 0.0, 0.5])
    np.testing.assert_allclose(nn.softmax_cross_entropy_with_logits(labels, logits), np.log(2))
    np.testing.assert_array_equal(
        gradient(lambda x: nn.softmax_cross_entropy_with_logits(labels, x), logits), np.zeros(3)
    )


def test_cross_entropies_have_a_second_derivative():
    logits = RNG.normal(size=(2, 3))
    labels = special.softmax(RNG.normal(size=(2, 3)), axis=-1)
    check_grads(nn.softmax_cross_entropy_with_logits, [labels, logits], order=3)
    check_grads(lambda x: nn.sparse_softmax_cross_entropy_with_logits([0, 2], x), [logits], order=3)


def test_float32_logits_stay_float32():
    logits = np.zeros((2, 3), np.float32)
    assert nn.sparse_softmax_cross_entropy_with_logits([0, 2], logits).dtype == np.float32
    for labels in ([[0, 1, 0]] * 2, np.ones((2, 3)) / 3):
        assert nn.softmax_cross_entropy_with_logits(labels, logits).dtype == np.float32


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([0, 3], ValueError),
        ([0, -1], ValueError),
        ([0], ValueError),
        ([[0, 1]], ValueError),
        ([0.0, 1.0], TypeError),
    ],
)
def test_bad_classes_are_errors_that_name_the_labels(labels, error):
    with pytest.raises(error, match="labels"):
        nn.sparse_softmax_cross_entropy_with_logits(labels, np.zeros((2, 3)))


def test_labels_of_another_shape_are_an_error():
    with pytest.raises(ValueError, match="labels and logits"):
        nn.softmax_cross_entropy_with_logits(np.zeros(3), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("name", "inputs", "attrs"),
    [
        ("SoftmaxCrossEntropyWithLogits", [np.ones(2), np.ones(2)], {"axis": 0}),
        ("SparseSoftmaxCrossEntropyWithLogits", [np.ones(2), 1], {"axis": -1}),
        ("FusedBatchNorm", [np.ones((3, 2)), np.ones(2), np.ones(2)], {"epsilon": 1.0}),
    ],
)
def test_D_1A_10_gradients_of_all_outputs_but_the_first_may_be_none(name, inputs, attrs):
    op, seen = OPS[name], []
    vjp = op.vjp
    x = cytape.constant(inputs[0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y, *others = op(x, *inputs[1:], **attrs)
    op.define(vjp=lambda call, *gradients: seen.append(gradients) or vjp(call, *gradients))
    try:
        tape.gradient(y, x)
    finally:
        op.define(vjp=vjp)
    assert [gradient is None for gradient in seen[0]] == [False] + [True] * len(others)


# -- batch normalisation -------------------------------------------------------------------------


def test_batch_norm_normalises_over_all_axes_but_the_last():
    x = RNG.normal(3, 5, size=(4, 2, 3))
    y, mean, variance = nn.fused_batch_norm(x, np.ones(3), np.full(3, 7.0), epsilon=0.0)
    np.testing.assert_allclose(y.mean((0, 1)), 7)
    np.testing.assert_allclose(y.std((0, 1)), 1)
    np.testing.assert_allclose(mean, x.mean((0, 1)))
    np.testing.assert_allclose(variance, x.var((0, 1), ddof=1))


def test_the_statistics_of_a_batch_are_differentiable_without_the_batch():
    x = RNG.normal(size=(4, 3))
    check_grads(lambda x: nn.fused_batch_norm(x, np.ones(3), np.zeros(3))[1:], [x])


# -- convolution and pooling ---------------------------------------------------------------------


def test_conv2d_is_scipys_correlation():
    image, filters = RNG.normal(size=(1, 6, 7, 1)), RNG.normal(size=(3, 3, 1, 1))
    for padding, mode in [("VALID", "valid"), ("SAME", "same")]:
        np.testing.assert_allclose(
            nn.conv2d(image, filters, 1, padding)[0, :, :, 0],
            signal.correlate2d(image[0, :, :, 0], filters[:, :, 0, 0], mode),
        )


@pytest.mark.parametrize("size", [4, 5, 6, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_same_padding_gives_one_output_per_stride_and_the_odd_zero_at_the_end(size, stride, kernel):
    image = np.arange(1.0, size + 1)[None, :, None, None]
    filters = np.ones((kernel, 1, 1, 1))
    output = nn.conv2d(image, filters, (stride, 1), "SAME")[0, :, 0, 0]
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + kernel - size, 0)
    padded = np.pad(image[0, :, 0, 0], (total // 2, total - total // 2))
    expected = [padded[i * stride : i * stride + kernel].sum() for i in range(outputs)]
    np.testing.assert_array_equal(output, expected)


def test_forms_of_strides_dilations_and_padding():
    image, filters = RNG.normal(size=(2, 8, 9, 2)), RNG.normal(size=(2, 3, 2, 4))
    expected = nn.conv2d(image, filters, (2, 1), [(1, 0), (2, 3)], dilations=(1, 2))
    four = nn.conv2d(
        image, filters, [1, 2, 1, 1], [[0, 0], [1, 0], [2, 3], [0, 0]], dilations=[1, 1, 2, 1]
    )
    np.testing.assert_array_equal(four, expected)
    one = nn.conv2d(image, filters, 2, "SAME")
    np.testing.assert_array_equal(one, nn.conv2d(image, filters, (2, 2), "SAME"))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 0), (0, 1)]])
def test_channels_first(padding):
    image, filters = RNG.normal(size=(2, 5, 6, 3)), RNG.normal(size=(2, 3, 3, 4))
    first = np.transpose(image, (0, 3, 1, 2))
    for function, *arguments in [
        (nn.conv2d, filters, (2, 1)),
        (nn.max_pool2d, (2, 3), (2, 1)),
        (nn.avg_pool2d, (2, 3), (2, 1)),
    ]:
        expected = np.transpose(function(image, *arguments, padding), (0, 3, 1, 2))
        actual = function(first, *arguments, padding, data_format="NCHW")
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
        check_grads(
            lambda x, f=function, a=arguments: f(x, *a, padding, data_format="NCHW"), [first]
        )


def test_a_small_network_of_images_is_differentiable_twice():
    image, filters = RNG.normal(size=(2, 6, 6, 1)), RNG.normal(size=(3, 3, 1, 2))

    def network(image, filters):
        hidden = np.tanh(nn.conv2d(image, filters, 1, "SAME"))
        return nn.avg_pool2d(nn.max_pool2d(hidden, 2, 2, "SAME") ** 2, 2, 1, "SAME")

    check_grads(network, [image, filters])


def test_of_equal_maxima_the_first_gets_the_gradient():
    image = np.zeros((1, 2, 4, 1))
    image[0, :, 3, 0] = 1
    result = gradient(lambda x: nn.max_pool2d(x, 2, 2, "VALID"), image)
    np.testing.assert_array_equal(result[0, :, :, 0], [[1, 0, 0, 1], [0, 0, 0, 0]])


def test_padding_is_never_the_maximum():
    for value in (-np.inf, -5.0):
        image = np.full((1, 3, 3, 1), value)
        pool = lambda x: nn.max_pool2d(x, 3, 1, "SAME")  # noqa: E731
        np.testing.assert_array_equal(pool(image), image)
        assert gradient(pool, image).sum() == 9
    np.testing.assert_array_equal(
        nn.max_pool2d(np.full((1, 1, 1, 1), -3), 3, 1, "SAME"), [[[[-3]]]]
    )


def test_nan_is_the_maximum():
    image = np.array([0.0, np.nan, 5.0, 1.0]).reshape(1, 2, 2, 1)
    assert np.isnan(nn.max_pool2d(image, 2, 1, "VALID")).all()


def test_padding_does_not_count_in_a_mean():
    ones = np.ones((1, 3, 3, 1))
    np.testing.assert_array_equal(nn.avg_pool2d(ones, 2, 1, "SAME"), ones)


def test_integers_have_a_fractional_mean_and_an_integer_maximum():
    image = np.array([1, 2, 3, 4]).reshape(1, 2, 2, 1)
    assert nn.avg_pool2d(image, 2, 2, "VALID").item() == 2.5
    assert nn.max_pool2d(image, 2, 2, "VALID").dtype == image.dtype


IMAGE, FILTERS = np.zeros((1, 4, 4, 2)), np.zeros((3, 3, 2, 5))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: nn.conv2d(IMAGE[0], FILTERS, 1, "SAME"), "input"),
        (lambda: nn.conv2d(IMAGE, FILTERS[0], 1, "SAME"), "filters"),
        (lambda: nn.conv2d(IMAGE[..., :1], FILTERS, 1, "SAME"), "channels"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 0, "SAME"), "strides"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1.5, "SAME"), "strides"),
        (lambda: nn.conv2d(IMAGE, FILTERS, (2, 1, 1, 1), "SAME"), "strides"),
        (lambda: nn.conv2d(IMAGE, FILTERS, (1, 1, 1), "SAME"), "strides"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, "same"), "padding"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, [(1, 1)]), "padding"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, [(1, -1), (0, 0)]), "padding"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, [(1, 0), (0, 0), (0, 0), (0, 0)]), "padding"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, "VALID", dilations=2), "dilations"),
        (lambda: nn.conv2d(IMAGE, FILTERS, 1, "SAME", data_format="HWC"), "data_format"),
        (lambda: nn.max_pool2d(IMAGE, 5, 1, "VALID"), "kernel"),
        (lambda: nn.max_pool2d(IMAGE, -1, 1, "VALID"), "ksize"),
        (lambda: nn.avg_pool2d(IMAGE, 2, 1, [(2, 0), (0, 0)]), "padding"),
    ],
)
def test_bad_arguments_are_errors_that_name_them(call, named):
    with pytest.raises(ValueError, match=named):
        call()
