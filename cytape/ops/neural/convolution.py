"""Convolutions of images of one, two or three axes, and their transposes.

A convolution copies the pixels of each output into a row of a matrix (im2col), and multiplies it by
the filters, group by group. It is linear in the image and in the filters. The op and its two
transposes are each other's derivatives, so any order is available. Where each channel is a group of
its own, the products are summed offset by offset, without the matrix.
"""

import functools
import math
import operator
from typing import Any

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.calls.operands import is_tensor, joined, wide
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.neural import window_loops
from cytape.ops.neural.sliding_windows import (
    Window,
    channels_last,
    layout_of,
    of_images,
    per_axis,
    remembered,
    window_for,
    with_batch,
)
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import reshape, shape
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose", "convolution", "depthwise_conv2d"]


CACHE_BYTES = 1 << 20  # of a processor core

# -- sums of products ----------------------------------------------------------------------------


def _as_matrix(array):
    """Return `array` as a matrix, with all axes but the last joined."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _by_group(array, groups):
    """Return a matrix for each group of channels, which are the last axis."""
    rows, width = math.prod(array.shape[:-1]), array.shape[-1]
    return array.reshape(rows, groups, width // groups).transpose(1, 0, 2)


def _together(parts):
    """Join the columns of groups."""
    groups, rows, width = parts.shape
    return parts.transpose(1, 0, 2).reshape(rows, groups * width)


def _parts(image_shape, window, itemsize):
    """Return slices of a batch whose columns fit into the cache."""
    batch, *size, channels = image_shape
    n_bytes = itemsize * channels * math.prod((*window.output_size(size), *window.kernel))
    step = CACHE_BYTES // max(n_bytes, 1) or 1
    return [slice(i, i + step) for i in range(0, batch, step)] if batch > step else [slice(batch)]


def _is_depthwise(window, filters_shape, dtype):
    return window.groups > 1 and filters_shape[-2] == 1 and dtype.kind == "f"


def _of_one_dtype(*arrays):
    """Return arrays in the dtype of their products, half precision in single, and that dtype."""
    arrays = [plain_array(x) for x in arrays]
    dtype = np.result_type(*arrays)
    return *[x.astype(wide(dtype), copy=False) for x in arrays], dtype


def _conv2d(image, filters, *, window):
    image, filters, dtype = _of_one_dtype(image, filters)
    groups = window.groups
    if _is_depthwise(window, filters.shape, image.dtype):
        return window_loops.depthwise(image, filters, window).astype(dtype, copy=False)
    matrices = _by_group(filters, groups)
    products = [window_loops.columns(image[part], window, groups) @ matrices
                for part in _parts(image.shape, window, image.itemsize)]
    output = _together(products[0] if len(products) == 1 else np.concatenate(products, 1))
    size = window.output_size(image.shape[1:-1])
    return output.reshape(image.shape[0], *size, filters.shape[-1]).astype(dtype, copy=False)


def _conv2d_input_gradient(filters, g, *, window, image_shape):
    image_shape = with_batch(image_shape, g)
    filters, g, dtype = _of_one_dtype(filters, g)
    if _is_depthwise(window, filters.shape, g.dtype):
        return window_loops.depthwise_image(filters, g, window, image_shape).astype(
            dtype, copy=False)
    matrices = _by_group(filters, window.groups).transpose(0, 2, 1)
    images = [window_loops.add_columns(
        _by_group(g[part], window.groups) @ matrices, window, (len(g[part]), *image_shape[1:]))
        for part in _parts(image_shape, window, g.itemsize)]
    image = images[0] if len(images) == 1 else np.concatenate(images)
    return image.astype(dtype, copy=False)


def _conv2d_filter_gradient(image, g, *, window):
    image, g, dtype = _of_one_dtype(image, g)
    groups = window.groups
    shape = (*window.kernel, image.shape[-1] // groups, g.shape[-1])
    if _is_depthwise(window, shape, g.dtype):
        return window_loops.depthwise_filters(image, g, window).astype(dtype, copy=False)
    filters = functools.reduce(operator.iadd, [
        window_loops.columns(image[part], window, groups).transpose(0, 2, 1) @ _by_group(
            g[part], groups) for part in _parts(image.shape, window, g.itemsize)])
    return _together(filters).reshape(shape).astype(dtype, copy=False)


def _image_gradient(op, g, filters):
    shape = op.input_specs[0].shape
    if None in shape[1:]:
        return NotImplemented
    return conv2d_input_gradient_op(filters, g, window=op.attrs["window"], image_shape=shape)


def _filter_gradient(op, image, g):
    return conv2d_filter_gradient_op(image, g, window=op.attrs["window"])


def _output_gradient(op, image, filters):
    return conv2d_op(image, filters, window=op.attrs["window"])


conv2d_op = multilinear(
    "Conv2D", _conv2d, _image_gradient, _filter_gradient,
    shape_rule=neural_shapes.conv2d, batch=of_images(0), is_product=True,
    work=lambda x, filters, y: math.prod(y) * math.prod(filters) // max(y[-1], 1))
conv2d_input_gradient_op = multilinear(
    "Conv2DBackpropInput", _conv2d_input_gradient,
    _filter_gradient, lambda op, filters, image: _output_gradient(op, image, filters),
    shape_rule=neural_shapes.conv2d_input_gradient, batch=of_images(1),
    work=lambda filters, g, x: math.prod(g) * math.prod(filters) // max(filters[-1], 1))
conv2d_filter_gradient_op = multilinear(
    "Conv2DBackpropFilter", _conv2d_filter_gradient,
    lambda op, filters, g: _image_gradient(op, g, filters), _output_gradient,
    shape_rule=neural_shapes.conv2d_filter_gradient,
    work=lambda x, g, filters: math.prod(g) * math.prod(filters) // max(filters[-1], 1))



# -- public functions ----------------------------------------------------------------------------


def convolution(
    input, filters, strides=1, padding="VALID", data_format=None, dilations=1, groups=1
) -> Any:
    """Convolve images with filters (a cross-correlation, as usual in neural networks).

    Parameters
    ----------
    input : array_like
        A batch of signals, images or volumes: batch, one to three axes, channels, or in the order
        of `data_format`.
    filters : array_like
        Of shape (size along each axis, channels in / groups, channels out).
    strides : int or sequence of int, optional
        One number, one for each axis of an image, or one for each axis of `input`.
    padding : {"SAME", "VALID", "CAUSAL"} or sequence of pairs, optional
        Zeros around the image: as many as make the output ``ceil(size / stride)`` long, none, for
        signals as many before them as let no output read later elements, or (before, after) for
        each axis of an image or for each axis of `input`.
    data_format : str, optional
        The order of the axes of `input` and of the result: "NWC", "NHWC" and "NDHWC", which are
        the default, or "NCW", "NCHW" and "NCDHW".
    dilations : int or sequence of int, optional
        Distance of neighbouring elements of a filter in the image, in the forms of `strides`.
    groups : int, optional
        The channels are split into as many groups, each of which is convolved with its own filters.

    Returns
    -------
    Tensor or ndarray
        The outputs, in the order of `data_format`.

    Raises
    ------
    ValueError
        If the shapes do not fit each other, a parameter has none of its forms, or the filters do
        not fit into the images.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> signal = np.arange(5.0).reshape(1, 5, 1)
    >>> cytape.nn.convolution(signal, np.ones((2, 1, 1)), padding="CAUSAL")[0, :, 0]
    array([0., 1., 3., 5., 7.])
    """
    input, filters = joined(input), joined(filters)
    layout, window = _geometry(
        shape(input), shape(filters), strides, padding, data_format, dilations, groups)
    if groups == 1:
        axes = layout.index("C"), len(layout) - 2
        if shape(input)[axes[0]] != shape(filters)[axes[1]] or shape(filters)[axes[1]] is None:
            input = with_extents(
                input, ValueError, f"filters of shape {shape(filters)} take "
                f"{shape(filters)[-2]} channels, input has the shape {shape(input)}: channels are "
                "the last axis (or pass data_format), and filters are (*kernel, in, out)",
                like=filters, same=[axes])
    return channels_last(lambda image: conv2d_op(image, filters, window=window), input, layout)


@remembered
def _geometry(input_shape, filters_shape, strides, padding, data_format, dilations, groups):
    """Return the letters of the axes and the window of a convolution, after checks."""
    layout = layout_of(data_format, len(input_shape))
    if len(filters_shape) != len(layout):
        raise ValueError(
            f"filters must have a size for each of the {len(layout) - 2} axes of an image, "
            f"channels in and channels out; got shape {filters_shape}"
        )
    *kernel, channels, n_out = filters_shape
    if None in kernel:
        raise SymbolicTensorError(f"the size of the kernel must be known, got {filters_shape}")
    if not isinstance(groups, int) or groups < 1:
        raise ValueError(f"groups must be a positive integer, got {groups!r}")
    window = window_for(
        input_shape, tuple(kernel), strides, padding, dilations, layout, groups)
    if groups > 1 and (None in (channels, n_out) or n_out % groups or (
            input_shape[layout.index("C")] != channels * groups)):
        raise ValueError(
            f"filters of shape {filters_shape} in {groups} groups need a known multiple of "
            f"{groups} channels out, and take {groups} times {channels} channels; input has the "
            f"shape {input_shape}")
    return layout, window


def _of_rank(n, name, input, filters, strides, padding, data_format, dilations, groups):
    """Convolve images of n axes."""
    if len(shape(input)) != n + 2:
        raise ValueError(f"input of {name} must have {n + 2} axes, got shape {shape(input)}")
    return convolution(input, filters, strides, padding, data_format, dilations, groups)


@advising
def conv1d(input, filters, stride, padding, data_format="NWC", dilations=1, groups=1) -> Any:
    """Convolve signals of shape (batch, width, channels), as `convolution` does.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> signal = np.arange(4.0).reshape(1, 4, 1)
    >>> cytape.nn.conv1d(signal, np.ones((3, 1, 1)), stride=1, padding="SAME")[0, :, 0]
    array([1., 3., 6., 5.])
    """
    return _of_rank(
        1, "conv1d", joined(input), filters, stride, padding, data_format, dilations, groups)


@advising
def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=1, groups=1) -> Any:
    """Convolve images of shape (batch, height, width, channels), as `convolution` does.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> image = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> cytape.nn.conv2d(image, np.ones((2, 2, 1, 1)), strides=1, padding="VALID")[0, :, :, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    return _of_rank(
        2, "conv2d", joined(input), filters, strides, padding, data_format, dilations, groups)


@advising
def conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=1, groups=1) -> Any:
    """Convolve volumes of shape (batch, depth, height, width, channels), as `convolution` does.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> volume = np.ones((1, 2, 3, 3, 1))
    >>> cytape.nn.conv3d(volume, np.ones((2, 2, 2, 1, 1)), 1, "VALID").shape
    (1, 1, 2, 2, 1)
    """
    return _of_rank(
        3, "conv3d", joined(input), filters, strides, padding, data_format, dilations, groups)


def depthwise_conv2d(input, filter, strides, padding, data_format="NHWC", dilations=1) -> Any:
    """Convolve each channel of images with filters of its own.

    Parameters
    ----------
    input, strides, padding, data_format, dilations
        As for `conv2d`.
    filter : array_like
        Of shape (height, width, channels, number of outputs of each channel).

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> image = np.ones((1, 2, 2, 3))
    >>> filters = np.arange(3.0) * np.ones((2, 2, 1, 3))
    >>> cytape.nn.depthwise_conv2d(image, np.swapaxes(filters, 2, 3), 1, "VALID")[0, 0, 0]
    array([0., 4., 8.])
    """
    filter = joined(filter)
    if len(shape(filter)) != 4 or None in shape(filter):
        raise ValueError("filter must have the known extents height, width, channels and outputs "
                         f"per channel; got shape {shape(filter)}")
    *kernel, channels, outputs = shape(filter)
    return conv2d(input, reshape(filter, (*kernel, 1, channels * outputs)), strides, padding,
                  data_format, dilations, channels)


def conv_transpose(
    input, filters, output_shape=None, strides=1, padding="SAME", data_format=None, dilations=1,
    groups=1,
) -> Any:
    """Apply the transpose of a convolution in the images, which is its derivative.

    Parameters
    ----------
    input : array_like
        A batch of what the convolution returns.
    filters : array_like
        Of shape (size along each axis, channels of the result / groups, channels of `input`).
    output_shape : sequence of int, optional
        Sizes of the result along the axes of an image, or its whole shape. By default the smallest
        that the convolution maps to the size of `input`; for "SAME" that times the strides.
    strides, padding, data_format, dilations, groups
        Those of the convolution, as `convolution` takes them.

    Returns
    -------
    Tensor or ndarray

    Raises
    ------
    ValueError
        If the shapes do not fit each other, or a parameter has none of its forms.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> signal = np.array([1.0, 2.0]).reshape(1, 2, 1)
    >>> cytape.nn.conv_transpose(signal, np.ones((2, 1, 1)), strides=2)[0, :, 0]
    array([1., 1., 2., 2.])
    """
    input, filters = [joined(x) if is_tensor(x) else np.asarray(x) for x in (input, filters)]
    layout, window, image_shape = _transposed_geometry(
        shape(input), shape(filters), output_shape, strides, padding, data_format, dilations,
        groups)
    return channels_last(
        lambda g: conv2d_input_gradient_op(
            filters, g, window=window, image_shape=(shape(g)[0], *image_shape)),
        input, layout)


@remembered
def _transposed_geometry(
    input_shape, filters_shape, output_shape, strides, padding, data_format, dilations, groups,
):
    """Return the letters of the axes, the window, and the image's size and channels."""
    layout = layout_of(data_format, len(input_shape))
    axes = [layout.index(letter) for letter in "DHW" if letter in layout]
    if len(filters_shape) != len(layout) or None in filters_shape:
        raise ValueError("filters must have known extents: a size for each axis of an image, "
                         f"channels of the result and of input; got shape {filters_shape}")
    *kernel, channels, channels_in = filters_shape
    of_input = [input_shape[axis] for axis in axes]
    if None in of_input or input_shape[layout.index("C")] != channels_in:
        raise ValueError(f"input must have known sizes and {channels_in} channels, as filters of "
                         f"shape {filters_shape} have; got shape {input_shape}")
    if not isinstance(groups, int) or groups < 1 or channels_in % groups:
        raise ValueError(
            f"groups must be a divisor of the {channels_in} channels of input, got {groups!r}")
    strides, dilations = per_axis("strides", strides, layout), per_axis(
        "dilations", dilations, layout)
    if output_shape is None:
        size = tuple(n * stride for n, stride in zip(of_input, strides, strict=True))
        if padding != "SAME":
            covered = Window(tuple(kernel), strides, dilations, window_for(
                [10**9] * len(layout), tuple(kernel), strides, padding, dilations, layout).padding)
            size = tuple(
                (n - 1) * stride + (length - 1) * dilation + 1 - sum(pair)
                for n, length, stride, dilation, pair in zip(
                    of_input, kernel, strides, dilations, covered.padding, strict=True))
    else:
        size = tuple(output_shape)
        if len(size) == len(layout):
            size = tuple(size[axis] for axis in axes)
    if len(size) != len(axes) or not all(isinstance(n, int) and n > 0 for n in size):
        raise ValueError(f"the result would have the size {size}; output_shape must have a "
                         f"positive integer for each of {len(axes)} axes, got {output_shape}")
    image_shape = [None] * len(layout)
    for axis, n in zip(axes, size, strict=True):
        image_shape[axis] = n
    window = window_for(image_shape, tuple(kernel), strides, padding, dilations, layout, groups)
    if window.output_size(size) != tuple(of_input):
        raise ValueError(
            f"a convolution maps images of size {size} to the size {window.output_size(size)}, not "
            f"to that of input, {tuple(of_input)}")
    return layout, window, (*size, channels * groups)
