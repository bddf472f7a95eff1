"""Convolution and pooling of images.

The ops work on batches of the layout NHWC, one offset of the kernel after the other: for an offset,
the outputs and the pixels that they read are two strided slices (`Window.taps`). Padding is never
stored: slices exclude it.

- A convolution copies the pixels of each output into a row of a matrix (im2col), and multiplies it
  by the filters. It is linear in the image and in the filters. The op and its two transposes are
  each other's derivatives, so any order is available.
- Max pooling also returns the position of each maximum; its derivative is a gather from there.
"""

import math
from typing import NamedTuple

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general, linear, multilinear
from cytape.ops.indexing import gather_op, scatter_add, scatter_add_op
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import ravel, reshape, shape, transpose
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["avg_pool2d", "conv2d", "max_pool2d"]


# -- geometry ------------------------------------------------------------------------------------


class Window(NamedTuple):
    """Geometry of a sliding kernel; each field is a pair, for height and width."""

    kernel: tuple
    strides: tuple
    dilations: tuple
    padding: tuple  # a pair (before, after) for each axis

    def output_size(self, image_size):
        """Return the height and width of the output for an image's."""
        return tuple(
            (size + sum(pad) - _extent(kernel, dilation)) // stride + 1
            for size, kernel, stride, dilation, pad in zip(
                image_size, self.kernel, self.strides, self.dilations, self.padding, strict=True
            )
        )

    def taps(self, image_size):
        """Return ((row, column), output slices, image slices) for every offset in the kernel."""
        rows, columns = map(
            _taps_along_axis,
            image_size, self.output_size(image_size),
            self.kernel, self.strides, self.dilations, self.padding,
        )  # fmt: skip
        return [
            ((i, j), (slice(None), *outputs), (slice(None), *pixels))
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
            for outputs, pixels in [zip(row, column, strict=True)]
        ]


def _extent(kernel, dilation):
    """Return the length of the range of pixels that one output reads."""
    return (kernel - 1) * dilation + 1


def _taps_along_axis(size, output_size, kernel, stride, dilation, padding):
    """Return, for every offset in the kernel, the slice of outputs and the slice of pixels."""
    taps = []
    for offset in range(kernel):
        start = offset * dilation - padding[0]  # the pixel of output 0, perhaps in the padding
        first = max(-(start // stride), 0)
        stop = max(min((size - 1 - start) // stride + 1, output_size), first)
        pixel = start + first * stride
        taps.append(
            (
                slice(first, stop),
                slice(pixel, pixel + (stop - first) * stride, stride),
            )
        )
    return taps


def _pair(name, value, layout):
    """Return (height, width) from a number, a pair, or one number for each axis of the image."""
    values = tuple(np.atleast_1d(value).tolist())
    if len(values) == 1:
        values *= 2
    if len(values) == 4 and values[0] == values[layout.index("C")] == 1:
        values = values[layout.index("H")], values[layout.index("W")]
    if len(values) != 2 or not all(isinstance(n, int) and n > 0 for n in values):
        raise ValueError(
            f"{name} must be a positive integer, two of them, or four with 1 for batch and "
            f"channels; got {value!r}"
        )
    return values


def _padding_pairs(padding, image_size, kernel, strides, dilations, layout):
    """Return the padding (before, after) of height and width."""
    if padding == "VALID":
        return (0, 0), (0, 0)
    if padding == "SAME":
        pairs = []
        for size, length, stride, dilation in zip(
            image_size, kernel, strides, dilations, strict=True
        ):
            covered = (math.ceil(size / stride) - 1) * stride + _extent(length, dilation)
            total = max(covered - size, 0)
            pairs.append((total // 2, total - total // 2))
        return tuple(pairs)
    pairs = np.asarray(padding)
    if pairs.shape == (4, 2) and not pairs[[0, layout.index("C")]].any():
        pairs = pairs[[layout.index("H"), layout.index("W")]]
    if pairs.shape != (2, 2) or pairs.dtype.kind not in "iu" or (pairs < 0).any():
        raise ValueError(
            "padding must be 'SAME', 'VALID', or pairs (before, after) for height and width, or "
            f"for all four axes with 0 for batch and channels; got {padding!r}"
        )
    return tuple(map(tuple, pairs.tolist()))


def _window(image_shape, kernel, strides, padding, dilations, layout):
    """Return the `Window` for an image, after checks."""
    if layout not in ("NHWC", "NCHW"):
        raise ValueError(f"data_format must be 'NHWC' or 'NCHW', got {layout!r}")
    if len(image_shape) != 4:
        raise ValueError(f"input must have the four axes {layout}, got shape {image_shape}")
    image_size = image_shape[layout.index("H")], image_shape[layout.index("W")]
    if None in image_size and padding == "SAME":
        raise SymbolicTensorError(
            f"padding='SAME' needs to know height and width of the image, of shape {image_shape}; "
            "name the padding instead, as pairs (before, after)"
        )
    strides = _pair("strides", strides, layout)
    dilations = _pair("dilations", dilations, layout)
    pairs = _padding_pairs(padding, image_size, kernel, strides, dilations, layout)
    window = Window(kernel, strides, dilations, pairs)
    if None not in image_size and min(window.output_size(image_size)) < 1:
        raise ValueError(
            f"the kernel of size {kernel} does not fit into an image of size {image_size} with "
            f"dilations {dilations} and padding {padding!r}"
        )
    return window


def _in_nhwc(function, image, layout):
    """Apply a function of an NHWC image to an image of any layout; the result has that layout."""
    if layout == "NHWC":
        return function(image)
    return transpose(function(transpose(image, (0, 2, 3, 1))), (0, 3, 1, 2))


# -- convolution ---------------------------------------------------------------------------------


def _columns(image, window):
    """Return the matrix whose rows are the pixels of each output."""
    batch, *size, channels = image.shape
    output_size = window.output_size(size)
    columns = np.zeros((batch, *output_size, *window.kernel, channels), image.dtype)
    for offset, outputs, pixels in window.taps(size):
        columns[outputs + offset] = image[pixels]
    return columns.reshape(batch * math.prod(output_size), math.prod(window.kernel) * channels)


def _as_matrix(array):
    """Return `array` as a matrix, with all axes but the last joined."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _conv2d(image, filters, *, window):
    image, filters = plain_array(image), plain_array(filters)
    output = _columns(image, window) @ _as_matrix(filters)
    size = window.output_size(image.shape[1:3])
    return output.reshape(image.shape[0], *size, filters.shape[-1])


def _with_batch(image_shape, g):
    """Return the shape of images; if the first extent is None, it is that of g."""
    return (len(g), *image_shape[1:]) if image_shape[0] is None else image_shape


def _conv2d_input_gradient(filters, g, *, window, image_shape):
    image_shape = _with_batch(image_shape, g)
    columns = _as_matrix(g) @ _as_matrix(filters).T
    columns = columns.reshape(*g.shape[:3], *filters.shape[:3])
    image = np.zeros(image_shape, columns.dtype)
    for offset, outputs, pixels in window.taps(image_shape[1:3]):
        image[pixels] += columns[outputs + offset]
    return image


def _conv2d_filter_gradient(image, g, *, window):
    filters = _columns(image, window).T @ _as_matrix(g)
    return filters.reshape(*window.kernel, image.shape[-1], g.shape[-1])


def _image_gradient(op, g, filters):
    shape = op.input_specs[0].shape
    if None in shape[1:]:
        return NotImplemented
    return conv2d_input_gradient_op(filters, g, window=op.attrs["window"], image_shape=shape)


def _filter_gradient(op, image, g):
    return conv2d_filter_gradient_op(image, g, window=op.attrs["window"])


def _output_gradient(op, image, filters):
    return conv2d_op(image, filters, window=op.attrs["window"])


def _of_images(place):
    """Make the batch rule of an op that computes image by image: members are further images."""

    def rule(call):
        images, shape = batch_axis.merged(call, place), call.attrs.get("image_shape")
        if images is None:
            return NotImplemented
        attrs = {} if shape is None else {"image_shape": (
            None if shape[0] is None else call.extent * shape[0], *shape[1:])}
        inputs = [*call.inputs[:place], images, *call.inputs[place + 1:]]
        return batch_axis.parted(call.again(inputs, **attrs), call, place)

    return rule


conv2d_op = multilinear(
    "Conv2D", _conv2d, _image_gradient, _filter_gradient,
    shape_rule=neural_shapes.conv2d, batch=_of_images(0), is_product=True,
    work=lambda x, filters, y: math.prod(y) * math.prod(filters) // max(y[-1], 1))
conv2d_input_gradient_op = multilinear(
    "Conv2DBackpropInput", _conv2d_input_gradient,
    _filter_gradient, lambda op, filters, image: _output_gradient(op, image, filters),
    shape_rule=neural_shapes.conv2d_input_gradient, batch=_of_images(1),
    work=lambda filters, g, x: math.prod(g) * math.prod(filters) // max(filters[-1], 1))
conv2d_filter_gradient_op = multilinear(
    "Conv2DBackpropFilter", _conv2d_filter_gradient,
    lambda op, filters, g: _image_gradient(op, g, filters), _output_gradient,
    shape_rule=neural_shapes.conv2d_filter_gradient,
    work=lambda x, g, filters: math.prod(g) * math.prod(filters) // max(filters[-1], 1))


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=1):
    """Convolve images with filters (a cross-correlation, as usual in neural networks).

    Parameters
    ----------
    input : array_like
        A batch of images: batch, height, width, channels, or in the order of `data_format`.
    filters : array_like
        Of shape (height, width, channels in, channels out).
    strides : int or sequence of int
        One number, one for height and width each, or one for each axis of `input`.
    padding : {"SAME", "VALID"} or sequence of pairs
        Zeros around the image: as many as make the output ``ceil(size / stride)`` long, none, or
        (before, after) for height and width or for each axis of `input`.
    data_format : {"NHWC", "NCHW"}, optional
        The order of the axes of `input` and of the result.
    dilations : int or sequence of int, optional
        Distance of neighbouring elements of a filter in the image, in the forms of `strides`.

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
    >>> import cytape
    >>> image = np.arange(9.0).reshape(1, 3, 3, 1)
    >>> cytape.nn.conv2d(image, np.ones((2, 2, 1, 1)), strides=1, padding="VALID")[0, :, :, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    if len(shape(filters)) != 4:
        raise ValueError(
            "filters must have the axes height, width, channels in, channels out; "
            f"got shape {shape(filters)}"
        )
    *kernel, channels, _ = shape(filters)
    if None in kernel:
        raise SymbolicTensorError(f"the size of the kernel must be known, got {shape(filters)}")
    window = _window(shape(input), tuple(kernel), strides, padding, dilations, data_format)
    input = with_extents(
        input, ValueError, f"filters of shape {shape(filters)} take {channels} channels, "
        f"input has the shape {shape(input)}", like=filters, same=[(data_format.index("C"), 2)])
    return _in_nhwc(lambda image: conv2d_op(image, filters, window=window), input, data_format)


# -- pooling -------------------------------------------------------------------------------------


def _max_pool(image, *, window):
    """Return the maxima, and their first positions in the flattened image."""
    image = plain_array(image)
    batch, *size, channels = image.shape
    output_shape = (batch, *window.output_size(size), channels)
    maxima, origins = np.zeros(output_shape, image.dtype), np.full(output_shape, -1)
    positions = np.arange(image.size).reshape(image.shape)
    for _, outputs, pixels in window.taps(size):
        candidates, best, origin = image[pixels], maxima[outputs], origins[outputs]
        # NaN replaces numbers and is kept.
        wins = (origin < 0) | (~(candidates <= best) & (best == best))
        np.copyto(best, candidates, where=wins)
        np.copyto(origin, positions[pixels], where=wins)
    return maxima, origins


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


def _pixels_seen(image_size, window, dtype):
    """Return the number of pixels per output, in a shape that broadcasts to batch and channels."""
    counts = np.zeros((1, *window.output_size(image_size), 1), dtype)
    for _, outputs, _ in window.taps(image_size):
        counts[outputs] += 1
    return counts


def _avg_pool(image, *, window):
    image = plain_array(image)
    if image.dtype.kind not in "fc":
        image = image.astype(np.float64)
    batch, *size, channels = image.shape
    total = np.zeros((batch, *window.output_size(size), channels), image.dtype)
    for _, outputs, pixels in window.taps(size):
        total[outputs] += image[pixels]
    return total / _pixels_seen(size, window, total.dtype)


def _avg_pool_gradient(g, *, window, image_shape):
    image_shape = _with_batch(image_shape, g)
    size = image_shape[1:3]
    g = g / _pixels_seen(size, window, g.dtype)
    image = np.zeros(image_shape, g.dtype)
    for _, outputs, pixels in window.taps(size):
        image[pixels] += g[outputs]
    return image


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
    batch=_of_images(0),
)

avg_pool_gradient_op = linear(
    "AvgPoolGrad",
    forward=_avg_pool_gradient,
    transpose=lambda op, g: avg_pool_op(g, window=op.attrs["window"]),
    shape_rule=neural_shapes.avg_pool_gradient,
    batch=_of_images(0),
)


def _pool2d(op, input, ksize, strides, padding, layout):
    """Apply a pooling op to an image of any layout."""
    ksize = _pair("ksize", ksize, layout)
    window = _window(shape(input), ksize, strides, padding, 1, layout)
    if any(max(pair) >= length for pair, length in zip(window.padding, ksize, strict=True)):
        raise ValueError(f"padding must be smaller than ksize {ksize}, got {padding!r}")
    return _in_nhwc(lambda image: op(image, window=window), input, layout)


def max_pool2d(input, ksize, strides, padding, data_format="NHWC"):
    """Return the maxima over rectangles of images; of equal elements the first is taken.

    Parameters
    ----------
    input : array_like
        A batch of images: batch, height, width, channels, or in the order of `data_format`.
    ksize : int or sequence of int
        Height and width of a rectangle, in the forms of `strides`.
    strides : int or sequence of int
        One number, one for height and width each, or one for each axis of `input`.
    padding : {"SAME", "VALID"} or sequence of pairs
        As for `conv2d`; padding is never the maximum.
    data_format : {"NHWC", "NCHW"}, optional
        The order of the axes of `input` and of the result.

    Returns
    -------
    Tensor or ndarray
        The maxima, in the order of `data_format`.

    Raises
    ------
    ValueError
        If a parameter has none of its forms, or the rectangles do not fit into the images.

    Examples
    --------
    >>> import cytape
    >>> image = np.arange(16.0).reshape(1, 4, 4, 1)
    >>> cytape.nn.max_pool2d(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]
    array([[ 5.,  7.],
           [13., 15.]])
    """
    return _pool2d(
        lambda image, window: max_pool_op(image, window=window)[0],
        input, ksize, strides, padding, data_format,
    )  # fmt: skip


def avg_pool2d(input, ksize, strides, padding, data_format="NHWC"):
    """Return the means over rectangles of images; padding is not counted.

    Parameters, errors and the order of the axes are those of `max_pool2d`.

    Examples
    --------
    >>> import cytape
    >>> image = np.arange(16.0).reshape(1, 4, 4, 1)
    >>> cytape.nn.avg_pool2d(image, ksize=2, strides=2, padding="VALID")[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    return _pool2d(avg_pool_op, input, ksize, strides, padding, data_format)
