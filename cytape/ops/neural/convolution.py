"""Convolutions of images of one, two or three axes, and their transposes.

A convolution copies the pixels of each output into a row of a matrix (im2col), and multiplies it by
the filters, group by group. It is linear in the image and in the filters. The op and its two
transposes are each other's derivatives, so any order is available. Where each channel is a group of
its own, the products are summed offset by offset, without the matrix.
"""

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.neural.sliding_windows import (
    Window,
    channels_last,
    layout_of,
    of_images,
    per_axis,
    window_for,
    with_batch,
    zeros_to_add_to,
)
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import reshape, shape
from cytape.tensor.names_elsewhere import advising
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose", "convolution", "depthwise_conv2d"]


# -- sums of products ----------------------------------------------------------------------------


def _columns(image, window):
    """Return the matrix whose rows are the pixels of each output."""
    batch, *size, channels = image.shape
    output_size = window.output_size(size)
    if any(map(any, window.padding)):
        pairs = list(zip(size, window.padding, strict=True))
        padded = np.zeros((batch, *[n + sum(pad) for n, pad in pairs], channels), image.dtype)
        padded[(slice(None), *[slice(pad[0], pad[0] + n) for n, pad in pairs])] = image
        image = padded
    of_batch, *steps, of_channel = image.strides
    pixels = as_strided(
        image, (batch, *output_size, *window.kernel, channels), (
            of_batch, *map(operator.mul, steps, window.strides),
            *map(operator.mul, steps, window.dilations), of_channel), writeable=False)
    return pixels.reshape(batch * math.prod(output_size), math.prod(window.kernel) * channels)


def _as_matrix(array):
    """Return `array` as a matrix, with all axes but the last joined."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _by_group(matrix, groups):
    """Return the columns of each group, for columns that are (..., group, channel)."""
    rows, width = matrix.shape
    return matrix.reshape(rows, groups, width // groups).transpose(1, 0, 2)


def _columns_by_group(image, window):
    """Return the matrix of `_columns` for each group of channels."""
    columns, groups = _columns(image, window), window.groups
    taps, channels = math.prod(window.kernel), image.shape[-1] // groups
    return columns.reshape(len(columns), taps, groups, channels).transpose(2, 0, 1, 3).reshape(
        groups, len(columns), taps * channels)


def _filters_by_group(filters, groups):
    """Return the filters of each group as a matrix."""
    return _by_group(_as_matrix(filters), groups)


def _together(parts):
    """Join the columns of groups."""
    groups, rows, width = parts.shape
    return parts.transpose(1, 0, 2).reshape(rows, groups * width)


def _is_depthwise(window, filters_shape):
    return window.groups > 1 and filters_shape[-2] == 1


def _split(array, groups):
    """Split the channels into groups."""
    return array.reshape(*array.shape[:-1], groups, array.shape[-1] // groups)


def _repeated(filters, pixels):
    """Return filters of one offset for each pixel of a row: NumPy's loops run over whole rows."""
    return np.ascontiguousarray(np.broadcast_to(filters, (pixels.shape[-3], *filters.shape)))


def _conv2d(image, filters, *, window):
    image, filters = plain_array(image), plain_array(filters)
    size = window.output_size(image.shape[1:-1])
    output_shape = (image.shape[0], *size, filters.shape[-1])
    if _is_depthwise(window, filters.shape):
        dtype = np.result_type(image, filters)
        output = zeros_to_add_to(output_shape, dtype)
        parts, filters = _split(output, window.groups), _split(filters[..., 0, :], window.groups)
        for offset, outputs, pixels in window.taps(image.shape[1:-1]):
            seen = image[pixels][..., None]
            parts[outputs] += seen * _repeated(filters[offset], seen)
        return output.astype(dtype, copy=False)
    if window.groups == 1:
        output = _columns(image, window) @ _as_matrix(filters)
    else:
        output = _together(
            _columns_by_group(image, window) @ _filters_by_group(filters, window.groups))
    return output.reshape(output_shape)


def _conv2d_input_gradient(filters, g, *, window, image_shape):
    image_shape, dtype = with_batch(image_shape, g), np.result_type(filters, g)
    image = zeros_to_add_to(image_shape, dtype)
    if _is_depthwise(window, filters.shape):
        g, filters = _split(g, window.groups), _split(filters[..., 0, :], window.groups)
        for offset, outputs, pixels in window.taps(image_shape[1:-1]):
            parts = g[outputs] * _repeated(filters[offset], g[outputs])
            image[pixels] += parts[..., 0] if parts.shape[-1] == 1 else parts.sum(-1)
        return image.astype(dtype, copy=False)
    by_group = _by_group(_as_matrix(g), window.groups)
    for offset, outputs, pixels in window.taps(image_shape[1:-1]):
        parts = by_group @ _by_group(filters[offset], window.groups).transpose(0, 2, 1)
        image[pixels] += _together(parts).reshape(*g.shape[:-1], image_shape[-1])[outputs]
    return image.astype(dtype, copy=False)


def _conv2d_filter_gradient(image, g, *, window):
    channels = image.shape[-1] // window.groups
    shape = (*window.kernel, channels, g.shape[-1])
    if _is_depthwise(window, shape):
        dtype = np.result_type(image, g)
        filters = zeros_to_add_to(shape, dtype)
        parts, g = _split(filters[..., 0, :], window.groups), _split(g, window.groups)
        for offset, outputs, pixels in window.taps(image.shape[1:-1]):
            products = np.multiply(g[outputs], image[pixels][..., None], dtype=filters.dtype)
            parts[offset] = products.sum(tuple(range(products.ndim - 3))).sum(0)
        return filters.astype(dtype, copy=False)
    if window.groups == 1:
        return (_columns(image, window).T @ _as_matrix(g)).reshape(shape)
    parts = _columns_by_group(image, window).transpose(0, 2, 1) @ _by_group(
        _as_matrix(g), window.groups)
    return _together(parts).reshape(shape)


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
    layout = layout_of(data_format, len(shape(input)))
    if len(shape(filters)) != len(layout):
        raise ValueError(
            f"filters must have a size for each of the {len(layout) - 2} axes of an image, "
            f"channels in and channels out; got shape {shape(filters)}"
        )
    *kernel, channels, n_out = shape(filters)
    if None in kernel:
        raise SymbolicTensorError(f"the size of the kernel must be known, got {shape(filters)}")
    if not isinstance(groups, int) or groups < 1:
        raise ValueError(f"groups must be a positive integer, got {groups!r}")
    window = window_for(
        shape(input), tuple(kernel), strides, padding, dilations, layout, groups)
    of_channels = layout.index("C")
    if groups == 1:
        input = with_extents(
            input, ValueError, f"filters of shape {shape(filters)} take {channels} channels, "
            f"input has the shape {shape(input)}: channels are the last axis (or pass "
            "data_format), and filters are (*kernel, in, out)", like=filters,
            same=[(of_channels, len(layout) - 2)])
    elif None in (channels, n_out) or shape(input)[of_channels] != channels * groups or (
            n_out % groups):
        raise ValueError(
            f"filters of shape {shape(filters)} in {groups} groups need a known multiple of "
            f"{groups} channels out, and take {groups} times {channels} channels; input has the "
            f"shape {shape(input)}")
    return channels_last(lambda image: conv2d_op(image, filters, window=window), input, layout)


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
    layout = layout_of(data_format, len(shape(input)))
    axes = [layout.index(letter) for letter in "DHW" if letter in layout]
    if len(shape(filters)) != len(layout) or None in shape(filters):
        raise ValueError("filters must have known extents: a size for each axis of an image, "
                         f"channels of the result and of input; got shape {shape(filters)}")
    *kernel, channels, channels_in = shape(filters)
    of_input = [shape(input)[axis] for axis in axes]
    if None in of_input or shape(input)[layout.index("C")] != channels_in:
        raise ValueError(f"input must have known sizes and {channels_in} channels, as filters of "
                         f"shape {shape(filters)} have; got shape {shape(input)}")
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
    return channels_last(
        lambda g: conv2d_input_gradient_op(
            filters, g, window=window, image_shape=(shape(g)[0], *size, channels * groups)),
        input, layout)
