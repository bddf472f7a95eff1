"""Maxima and means over windows of images of one, two or three axes.

Max pooling also returns the position of each maximum; its derivative is a gather from there.
"""

from typing import Any

import numpy as np

from cytape.ops.calls.operands import joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general, linear
from cytape.ops.indexing import gather_op, scatter_add, scatter_add_op
from cytape.ops.neural import window_loops
from cytape.ops.neural.sliding_windows import (
    channels_last,
    layout_of,
    of_images,
    per_axis,
    remembered,
    window_for,
    with_batch,
)
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import ravel, reshape, shape
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["avg_pool", "avg_pool2d", "max_pool", "max_pool2d"]


def _max_pool(image, *, window):
    """Return the maxima, and their first positions in the flattened image."""
    return window_loops.max_pool(plain_array(image), window)


def _max_pool_vjp(op, g, _):
    spec = op.input_specs[0]
    origins = reshape(op.outputs[1], (-1,))
    if not spec.known:
        flat = ravel(spec.extents.tensor())
        g = scatter_add(reshape(g, (-1,)), origins, flat.spec.extents)
        return reshape(g, spec.extents)
    g = scatter_add_op(reshape(g, (-1,)), origins, axis=0, mode="raise", size=spec.size)
    return reshape(g, spec.shape)


def _max_pool_jvp(op, t):
    return gather_op(reshape(t, (-1,)), op.outputs[1], axis=0, mode="raise"), None


def _max_pool_in_batch(call):
    """Return maxima, and their positions in the member."""
    images = batch_axis.merged(call, 0)
    if images is None:
        return NotImplemented
    maxima, origins = (batch_axis.parted(x, call, 0) for x in call.again([images]))
    first = batch_axis.counted(call.extent, origins.ndim - 1) * call.input_specs[0].size
    return maxima, np.where(origins < 0, origins, origins - first)


max_pool_op = general(
    "MaxPool",
    forward=_max_pool,
    vjp=_max_pool_vjp,
    jvp=_max_pool_jvp,
    saved_inputs=(),
    saved_outputs=(1,),
    optional_gradients=(1,),
    shape_rule=neural_shapes.max_pool,
    batch=_max_pool_in_batch,
)


def _avg_pool(image, *, window):
    image = plain_array(image)
    return window_loops.avg_pool(
        image if image.dtype.kind in "fc" else image.astype(np.float64), window)


def _avg_pool_gradient(g, *, window, image_shape):
    return window_loops.avg_pool_gradient(g, window, with_batch(image_shape, g))


def _avg_pool_back(op, g):
    image_shape = op.input_specs[0].shape
    if None in image_shape[1:]:
        return NotImplemented
    return avg_pool_gradient_op(g, image_shape=image_shape, **op.attrs)


avg_pool_op = linear(
    "AvgPool",
    forward=_avg_pool,
    transpose=_avg_pool_back,
    shape_rule=neural_shapes.avg_pool,
    batch=of_images(0),
)

avg_pool_gradient_op = linear(
    "AvgPoolGrad",
    forward=_avg_pool_gradient,
    transpose=lambda op, g: avg_pool_op(g, window=op.attrs["window"]),
    shape_rule=neural_shapes.avg_pool_gradient,
    batch=of_images(0),
)


def _pool(op, input, ksize, strides, padding, data_format):
    """Apply a pooling op to an image of any layout."""
    input = joined(input)
    layout, window = _geometry(shape(input), ksize, strides, padding, data_format)
    return channels_last(lambda image: op(image, window=window), input, layout)


@remembered
def _geometry(input_shape, ksize, strides, padding, data_format):
    """Return the letters of the axes and the window of pooling, after checks."""
    layout = layout_of(data_format, len(input_shape))
    ksize = per_axis("ksize", ksize, layout)
    window = window_for(input_shape, ksize, strides, padding, 1, layout)
    if any(max(pair) >= length for pair, length in zip(window.padding, ksize, strict=True)):
        raise ValueError(f"padding must be smaller than ksize {ksize}, got {padding!r}")
    return layout, window


def max_pool(input, ksize, strides, padding, data_format=None) -> Any:
    """Return the maxima over windows of images; of equal elements the first is taken.

    Parameters
    ----------
    input : array_like
        A batch of signals, images or volumes: batch, one to three axes, channels, or in the order
        of `data_format`.
    ksize : int or sequence of int
        Size of a window, in the forms of `strides`.
    strides : int or sequence of int
        One number, one for each axis of an image, or one for each axis of `input`.
    padding : {"SAME", "VALID"} or sequence of pairs
        As for `convolution`; padding is never the maximum.
    data_format : str, optional
        As for `convolution`.

    Returns
    -------
    Tensor or ndarray
        The maxima, in the order of `data_format`.

    Raises
    ------
    ValueError
        If a parameter has none of its forms, or the windows do not fit into the images.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> signal = np.array([1.0, 3.0, 2.0, 0.0]).reshape(1, 4, 1)
    >>> cytape.nn.max_pool(signal, ksize=2, strides=2, padding="VALID")[0, :, 0]
    array([3., 2.])
    """
    return _pool(lambda image, window: max_pool_op(image, window=window)[0],
                 input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None) -> Any:
    """Return the means over windows of images; padding is not counted.

    Parameters, errors and the order of the axes are those of `max_pool`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> signal = np.array([1.0, 3.0, 2.0, 0.0]).reshape(1, 4, 1)
    >>> cytape.nn.avg_pool(signal, ksize=2, strides=2, padding="VALID")[0, :, 0]
    array([2., 1.])
    """
    return _pool(avg_pool_op, input, ksize, strides, padding, data_format)


@advising
def max_pool2d(input, ksize, strides, padding, data_format="NHWC") -> Any:
    """Return the maxima over rectangles of images, as `max_pool` does.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> image = np.arange(16.0).reshape(1, 4, 4, 1)
    >>> cytape.nn.max_pool2d(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]
    array([[ 5.,  7.],
           [13., 15.]])
    """
    return max_pool(input, ksize, strides, padding, data_format)


@advising
def avg_pool2d(input, ksize, strides, padding, data_format="NHWC") -> Any:
    """Return the means over rectangles of images, as `avg_pool` does.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> image = np.arange(16.0).reshape(1, 4, 4, 1)
    >>> cytape.nn.avg_pool2d(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    return avg_pool(input, ksize, strides, padding, data_format)
