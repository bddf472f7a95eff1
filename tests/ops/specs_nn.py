"""Records of the functions of neural networks."""

import itertools

import numpy as np

from cytape.ops.neural import convolution, neural_ops, normalisation, pooling, sequence_losses
from cytape.ops.neural.cross_entropy import (
    softmax_cross_entropy_op,
    sparse_softmax_cross_entropy_op,
)
from cytape.ops.neural.sliding_windows import Window
from tests.ops.op_specs import (
    FLOATS,
    SINGLE_AND_DOUBLE,
    OpSpec,
    case,
    distinct,
    uniform,
)

NORMALISED = [
    case((3, 4), axis=-1), case((3, 4), axis=0), case((4,), axis=-1), case((0, 4), axis=1)]


def softmax(x, axis):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def ctc_loss(log_shares, sequences):
    """Add all alignments of the two examples of SEQUENCES up."""
    def total(i, n_steps, labels):
        return np.log(sum(
            np.exp(sum(log_shares[t, i, c] for t, c in enumerate(alignment)))
            for alignment in itertools.product(range(3), repeat=n_steps)
            if [c for c, _ in itertools.groupby(alignment) if c] == labels))

    return -np.stack([total(0, 4, [1, 1]), total(1, 3, [2])])


def log_sum_exp(x, axis=None, keepdims=False):
    return np.log(np.exp(x).sum(axis, keepdims=keepdims))


def cross_entropy(logits, labels, axis):
    logs = logits - log_sum_exp(logits, axis, keepdims=True)
    total = labels.sum(axis, keepdims=True)
    return -(labels * logs).sum(axis), total * np.exp(logs) - labels


def sparse_cross_entropy(logits, labels, axis):
    one_hot = np.eye(logits.shape[-1], dtype=logits.dtype)[labels]
    return cross_entropy(logits, one_hot, axis)


def batch_norm(x, scale, offset, epsilon):
    x = np.asarray(x)
    axes = tuple(range(x.ndim - 1))
    mean, variance = x.mean(axes), x.var(axes)
    rsqrt = 1 / np.sqrt(variance + epsilon)
    return (x - mean) * rsqrt * scale + offset, mean, x.var(axes, ddof=1), mean, rsqrt


# -- images: one output at a time ----------------------------------------------------------------

WINDOWS = [
    Window((3, 2), (1, 1), (1, 1), ((0, 0), (0, 0))),
    Window((3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))),
    Window((3, 2), (2, 1), (1, 1), ((1, 1), (0, 1))),
    Window((2, 2), (2, 3), (1, 1), ((0, 0), (0, 1))),
    Window((2, 3), (1, 2), (2, 1), ((1, 0), (2, 1))),
    Window((1, 1), (3, 2), (1, 1), ((0, 0), (0, 0)))]
IMAGE = (2, 5, 6, 3)


# Signals, volumes, groups: a shape of images, one of filters, a window.
OTHERS = [
    ((2, 6, 3), (2, 3, 4), Window((2,), (2,), (2,), ((1, 0),))),
    ((2, 3, 4, 2, 2), (2, 1, 2, 2, 3), Window(
        (2, 1, 2), (1, 2, 1), (1, 1, 1), ((0, 1), (0, 0), (1, 0)))),
    ((2, 4, 3, 4), (2, 2, 2, 6), Window((2, 2), (1, 1), (1, 1), ((1, 0), (0, 0)), 2)),
    ((2, 5, 3), (3, 1, 3), Window((3,), (1,), (1,), ((1, 1),), 3)),
    ((2, 4, 3, 2), (2, 2, 1, 4), Window((2, 2), (1, 1), (1, 2), ((0, 1), (1, 1)), 2)),
]


def visits(image_shape, window):
    """Return, for each position of the output, the pixels it sees with their kernel offsets."""
    size = image_shape[1:-1]
    seen = {}
    for output in itertools.product(*map(range, window.output_size(size))):
        seen[output] = []
        for offset in itertools.product(*map(range, window.kernel)):
            pixel = tuple(
                o * stride + k * dilation - before
                for o, k, stride, dilation, (before, _) in zip(
                    output, offset, window.strides, window.dilations, window.padding, strict=True
                )
            )
            if all(0 <= p < n for p, n in zip(pixel, size, strict=True)):
                seen[output].append((offset, pixel))
    return seen


def whole(filters, groups):
    """Return filters of all channels: those of other groups are zero."""
    *kernel, channels, n_out = filters.shape
    found = np.zeros((*kernel, channels * groups, n_out), filters.dtype)
    for group in range(groups):
        outputs = slice(group * n_out // groups, (group + 1) * n_out // groups)
        found[..., group * channels:(group + 1) * channels, outputs] = filters[..., outputs]
    return found


def conv2d(image, filters, window):
    size, filters = window.output_size(image.shape[1:-1]), whole(filters, window.groups)
    output = np.zeros((len(image), *size, filters.shape[-1]), np.result_type(image, filters))
    for place, seen in visits(image.shape, window).items():
        for offset, pixel in seen:
            output[:, *place] += image[:, *pixel] @ filters[offset]
    return output


def conv2d_input_gradient(filters, g, window, image_shape):
    image, filters = np.zeros(image_shape, np.result_type(filters, g)), whole(
        filters, window.groups)
    for place, seen in visits(image_shape, window).items():
        for offset, pixel in seen:
            image[:, *pixel] += g[:, *place] @ filters[offset].T
    return image


def conv2d_filter_gradient(image, g, window):
    channels, n_out, groups = image.shape[-1], g.shape[-1], window.groups
    filters = np.zeros((*window.kernel, channels, n_out), np.result_type(image, g))
    for place, seen in visits(image.shape, window).items():
        for offset, pixel in seen:
            filters[offset] += image[:, *pixel].T @ g[:, *place]
    own = [filters[..., i * channels // groups:(i + 1) * channels // groups,
                   i * n_out // groups:(i + 1) * n_out // groups] for i in range(groups)]
    return np.concatenate(own, -1)


def max_pool(image, window):
    size = (len(image), *window.output_size(image.shape[1:-1]), image.shape[-1])
    values, origins = np.zeros(size, image.dtype), np.zeros(size, int)
    for place, seen in visits(image.shape, window).items():
        for n, c in np.ndindex(size[0], size[-1]):
            pixels = [(n, *pixel, c) for _, pixel in seen]
            first = pixels[int(np.argmax([image[pixel] for pixel in pixels]))]
            values[n, *place, c] = image[first]
            origins[n, *place, c] = np.ravel_multi_index(first, image.shape)
    return values, origins


def avg_pool(image, window):
    size = window.output_size(image.shape[1:-1])
    output = np.zeros((len(image), *size, image.shape[-1]), image.dtype)
    for place, seen in visits(image.shape, window).items():
        output[:, *place] = sum(image[:, *pixel] for _, pixel in seen) / len(seen)
    return output


def avg_pool_gradient(g, window, image_shape):
    image = np.zeros(image_shape, g.dtype)
    for place, seen in visits(image_shape, window).items():
        for _, pixel in seen:
            image[:, *pixel] += g[:, *place] / len(seen)
    return image


def output_shape(window, channels, image=IMAGE):
    return (image[0], *window.output_size(image[1:-1]), channels)


def normalised(x, axis, epsilon, centered):
    x = np.asarray(x)
    x = x - x.mean(axis, keepdims=True) if centered else x
    reciprocal = 1 / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon)
    return x * reciprocal, reciprocal


SEQUENCES = sequence_losses.Sequences(np.array([[1, 1], [2, 0]]), np.array([2, 1]),
                                      np.array([4, 3]), 0)

SPECS = [
    OpSpec("CtcLoss", sequence_losses.ctc_op, ctc_loss, [case((4, 2, 3), sequences=SEQUENCES)],
           dtypes=SINGLE_AND_DOUBLE),
    OpSpec("Softmax", neural_ops.softmax, softmax, NORMALISED),
    OpSpec("LogSoftmax", neural_ops.log_softmax, lambda x, axis: np.log(softmax(x, axis)),
           NORMALISED),
    OpSpec(
        "LogSumExp", neural_ops.log_sum_exp_op, log_sum_exp,
        [
            case((3, 4), axis=(1,), keepdims=False), case((2, 3, 4), axis=(0, 2), keepdims=True),
            case((), axis=(), keepdims=False),
        ],
    ),
    OpSpec(
        "logsumexp", neural_ops.logsumexp, log_sum_exp,
        [case((3, 4)), case((3, 4), axis=-1), case((3, 4), axis=(0, 1), keepdims=True), case(())],
    ),
    OpSpec(
        "SoftmaxCrossEntropyWithLogits", softmax_cross_entropy_op, cross_entropy,
        [
            case((3, 4), (3, 4), axis=-1), case((3, 4), (3, 4), axis=0), case((4,), (4,), axis=-1),
            case((0, 4), (0, 4), axis=-1),
        ],
        (uniform(-2, 2), uniform(0.1, 1)),
    ),
    OpSpec(
        "SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_cross_entropy_op,
        sparse_cross_entropy,
        [
            case((3, 4), np.array([0, 3, 3]), axis=-1),
            case((2, 2, 3), np.array([[0, 1], [2, 2]]), axis=-1), case((4,), np.array(2), axis=-1),
        ],
    ),
    OpSpec(
        "FusedBatchNorm", normalisation.fused_batch_norm_op, batch_norm,
        [case((5, 3), (3,), (3,), epsilon=0.01), case((2, 2, 3, 2), (2,), (2,), epsilon=0.01)],
        dtypes=SINGLE_AND_DOUBLE,
    ),
    OpSpec(
        "Normalize", normalisation.normalise_op, normalised,
        [case((3, 4), axis=(-1,), epsilon=0.01, centered=True),
         case((2, 3, 4), axis=(-3, -1), epsilon=0.01, centered=True),
         case((3, 4), axis=(-1,), epsilon=0.01, centered=False),
         case((0, 4), axis=(-1,), epsilon=0.01, centered=True)],
    ),
    OpSpec(
        "Conv2D", convolution.conv2d_op, conv2d,
        [case(IMAGE, (*window.kernel, 3, 2), window=window) for window in WINDOWS]
        + [case((0, *IMAGE[1:]), (*WINDOWS[0].kernel, 3, 2), window=WINDOWS[0])]
        + [case(image, filters, window=window) for image, filters, window in OTHERS],
        dtypes=(*FLOATS, "complex128"),
    ),
    OpSpec(
        "Conv2DBackpropInput", convolution.conv2d_input_gradient_op, conv2d_input_gradient,
        [
            case((*window.kernel, 3, 2), output_shape(window, 2), window=window, image_shape=IMAGE)
            for window in WINDOWS
        ] + [
            case(filters, output_shape(window, filters[-1], image), window=window,
                 image_shape=image) for image, filters, window in OTHERS
        ],
        dtypes=(*FLOATS, "complex128"),
    ),
    OpSpec(
        "Conv2DBackpropFilter", convolution.conv2d_filter_gradient_op, conv2d_filter_gradient,
        [case(IMAGE, output_shape(window, 2), window=window) for window in WINDOWS]
        + [case(image, output_shape(window, filters[-1], image), window=window)
           for image, filters, window in OTHERS],
        dtypes=(*FLOATS, "complex128"),
    ),
    OpSpec(
        "MaxPool", pooling.max_pool_op, max_pool,
        [case(IMAGE, window=window) for window in WINDOWS]
        + [case(image, window=window) for image, _, window in OTHERS[:2]], distinct(0.02),
    ),
    OpSpec(
        "AvgPool", pooling.avg_pool_op, avg_pool,
        [case(IMAGE, window=window) for window in WINDOWS]
        + [case(image, window=window) for image, _, window in OTHERS[:2]],
    ),
    OpSpec(
        "AvgPoolGrad", pooling.avg_pool_gradient_op, avg_pool_gradient,
        [case(output_shape(window, 3), window=window, image_shape=IMAGE) for window in WINDOWS],
    ),
]
