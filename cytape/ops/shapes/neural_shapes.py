"""Shape rules of the ops of neural networks."""

import numpy as np

from cytape.ops.shapes.shape_rules import may_fit, reduced_shape, shape_of
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "avg_pool",
    "avg_pool_gradient",
    "conv2d",
    "conv2d_filter_gradient",
    "conv2d_input_gradient",
    "cross_entropy",
    "fused_batch_norm",
    "log_sum_exp",
    "max_pool",
    "normalise",
    "require_real",
    "softmax",
    "sparse_cross_entropy",
]


def softmax(x, *, axis):
    """Infer the spec of exponentials divided by their sums, or of their logarithms."""
    reduced_shape(x, axis, False)  # raises for an invalid axis
    return _floating(x)


def require_real(dtype):
    """Raise for a complex dtype."""
    if dtype.kind == "c":
        raise TypeError(
            f"softmax, losses, normalisations and attention take real numbers, got {dtype}")


def _floating(x):
    require_real(x.dtype)
    return x if x.dtype.kind == "f" else spec_like(x, np.dtype(float))


def log_sum_exp(x, *, axis, keepdims):
    """Infer the spec of logarithms of sums of exponentials."""
    return symbolic_spec(reduced_shape(x, axis, keepdims), _floating(x).dtype)


def cross_entropy(logits, labels, *, axis):
    """Infer the specs of the loss, and of its gradient in the logits."""
    if not may_fit(logits.shape, labels.shape):
        raise ValueError(
            f"labels and logits must have the same shape, got {labels.shape} and {logits.shape}"
        )
    logits = _floating(logits)
    return symbolic_spec(reduced_shape(logits, axis, False), logits.dtype), logits


def sparse_cross_entropy(logits, labels, *, axis):
    """Infer the specs of the loss, and of its gradient in the logits."""
    if labels.dtype.kind not in "iu":
        raise TypeError(
            f"labels, which come first, must be integers, got {labels.dtype}; logits come second")
    shape = shape_of(logits, "sparse_softmax_cross_entropy_with_logits")
    if not may_fit(shape[:-1], labels.shape):
        raise ValueError(
            f"labels must have the shape of logits without the last axis, got {labels.shape} "
            f"for logits of shape {shape}"
        )
    logits = _floating(logits)
    return symbolic_spec(shape[:-1], logits.dtype), logits


def fused_batch_norm(x, scale, offset, *, epsilon):
    """Infer the specs of the normalised batch and of its statistics."""
    shape = shape_of(x, "fused_batch_norm")
    of_x = symbolic_spec(shape[-1:], _floating(x).dtype)
    dtype = np.result_type(of_x.dtype, scale.dtype, offset.dtype)
    return spec_like(x, dtype), of_x, of_x, of_x, of_x


def normalise(x, *, axis, epsilon, centered):
    """Infer the specs of normalised values, and of their reciprocal standard deviations."""
    return x, symbolic_spec(reduced_shape(x, axis, True), x.dtype)


def _output_size(window, size):
    return tuple([
        None if n is None else m
        for n, m in zip(size, window.output_size([n or 0 for n in size]), strict=True)
    ])


def conv2d(image, filters, *, window):
    """Infer the spec of a convolution."""
    batch, *size, _ = shape_of(image, "conv2d")
    return symbolic_spec(
        (batch, *_output_size(window, size), shape_of(filters, "conv2d")[-1]),
        np.result_type(image.dtype, filters.dtype),
    )


def conv2d_input_gradient(filters, g, *, window, image_shape):
    """Infer the spec of an image."""
    batch, *rest = image_shape
    batch = shape_of(g, "conv2d")[0] if batch is None else batch
    return symbolic_spec((batch, *rest), np.result_type(filters.dtype, g.dtype))


def conv2d_filter_gradient(image, g, *, window):
    """Infer the spec of filters."""
    channels = shape_of(image, "conv2d")[-1]
    return symbolic_spec(
        (*window.kernel, None if channels is None else channels // window.groups,
         shape_of(g, "conv2d")[-1]),
        np.result_type(image.dtype, g.dtype),
    )


def max_pool(image, *, window):
    """Infer the specs of maxima, and of where they come from."""
    batch, *size, channels = shape_of(image, "max_pool2d")
    pooled = symbolic_spec((batch, *_output_size(window, size), channels), image.dtype)
    return pooled, spec_like(pooled, np.dtype(np.int64))


def avg_pool(image, *, window):
    """Infer the spec of means."""
    batch, *size, channels = shape_of(image, "avg_pool2d")
    dtype = image.dtype if image.trainable else np.dtype(float)
    return symbolic_spec((batch, *_output_size(window, size), channels), dtype)


def avg_pool_gradient(g, *, window, image_shape):
    """Infer the spec of an image."""
    batch, *rest = image_shape
    return symbolic_spec((shape_of(g, "avg_pool2d")[0] if batch is None else batch, *rest), g.dtype)
