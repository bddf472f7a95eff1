"""Geometry of kernels that slide over images of any number of axes, after checks.

The ops work on batches with the channels last; their loops are in `window_loops.pyx`.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from cytape.errors import SymbolicTensorError
from cytape.ops.engine import batch_axis
from cytape.ops.neural.window_loops import output_size
from cytape.ops.shaping import transpose

__all__ = ["Window", "channels_last", "layout_of", "of_images", "per_axis", "window_for"]

LAYOUTS = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}
NAMES = {"D": "depth", "H": "height", "W": "width"}


class Window(NamedTuple):
    """Geometry of a sliding kernel; each field but the last has an entry for each image axis."""

    kernel: tuple
    strides: tuple
    dilations: tuple
    padding: tuple  # a pair (before, after) for each axis
    groups: int = 1  # of channels, which are convolved separately

    def output_size(self, image_size):
        """Return the size of the output for an image's."""
        return output_size(self, image_size)


def remembered(function):
    """Make a function remember its results: layers are called with the same shapes again."""
    cached = functools.lru_cache(1024, typed=True)(function)

    @functools.wraps(function)
    def result(*args):
        try:
            hash(args)
        except TypeError:  # lists among them
            return function(*args)
        return cached(*args)

    return result


def _extent(kernel, dilation):
    """Return the length of the range of pixels that one output reads."""
    return (kernel - 1) * dilation + 1


def layout_of(data_format, n_axes):
    """Return the letters of the axes of a batch of images with `n_axes` axes, after checks."""
    known = LAYOUTS.get(n_axes)
    if known is None:
        axes = ", ".join(f"{axes} ({layouts[0]})" for axes, layouts in LAYOUTS.items())
        raise ValueError(f"input must have one of these numbers of axes: {axes}; got {n_axes}")
    if data_format is None:
        return known[0]
    if data_format not in known:
        raise ValueError(f"data_format must be {known[0]!r} or {known[1]!r}, got {data_format!r}")
    return data_format


def _image_axes(layout):
    """Return the positions of the axes of an image."""
    return [layout.index(letter) for letter in "DHW" if letter in layout]


def per_axis(name, value, layout):
    """Return a number for each image axis, given one, one for each, or one for all axes."""
    values, axes = tuple(np.atleast_1d(value).tolist()), _image_axes(layout)
    if len(values) == 1:
        values *= len(axes)
    if len(values) == len(layout) and values[0] == values[layout.index("C")] == 1:
        values = tuple(values[axis] for axis in axes)
    if len(values) != len(axes) or not all(isinstance(n, int) and n > 0 for n in values):
        raise ValueError(
            f"{name} must be a positive integer, {len(axes)} of them, or {len(layout)} with 1 for "
            f"batch and channels; got {value!r}"
        )
    return values


def _padding_pairs(padding, image_size, kernel, strides, dilations, layout):
    """Return the padding (before, after) of each image axis."""
    axes = _image_axes(layout)
    if isinstance(padding, str):
        if padding == "VALID":
            return ((0, 0),) * len(axes)
        if padding == "CAUSAL" and len(axes) == 1:
            return ((_extent(kernel[0], dilations[0]) - 1, 0),)
        if padding == "SAME":
            pairs = []
            for size, length, stride, dilation in zip(
                image_size, kernel, strides, dilations, strict=True
            ):
                covered = (math.ceil(size / stride) - 1) * stride + _extent(length, dilation)
                total = max(covered - size, 0)
                pairs.append((total // 2, total - total // 2))
            return tuple(pairs)
        pairs = np.zeros(0)
    else:
        pairs = np.asarray(padding)
    if pairs.shape == (len(layout), 2) and not pairs[[0, layout.index("C")]].any():
        pairs = pairs[axes]
    if pairs.shape != (len(axes), 2) or pairs.dtype.kind not in "iu" or (pairs < 0).any():
        causal = "'CAUSAL', " if len(axes) == 1 else ""
        names = " and ".join(NAMES[layout[axis]] for axis in axes)
        raise ValueError(
            f"padding must be 'SAME', 'VALID', {causal}or pairs (before, after) for {names}, or "
            f"for all {len(layout)} axes with 0 for batch and channels; got {padding!r}"
        )
    return tuple(map(tuple, pairs.tolist()))


def window_for(image_shape, kernel, strides, padding, dilations, layout, groups=1):
    """Return the `Window` for an image, after checks."""
    image_size = tuple(image_shape[axis] for axis in _image_axes(layout))
    if None in image_size and isinstance(padding, str) and padding == "SAME":
        raise SymbolicTensorError(
            f"padding='SAME' needs to know the size of the image, of shape {image_shape}; name the "
            "padding instead, as pairs (before, after)"
        )
    strides = per_axis("strides", strides, layout)
    dilations = per_axis("dilations", dilations, layout)
    pairs = _padding_pairs(padding, image_size, kernel, strides, dilations, layout)
    window = Window(kernel, strides, dilations, pairs, groups)
    if None not in image_size and min(window.output_size(image_size)) < 1:
        raise ValueError(
            f"the kernel of size {kernel} does not fit into an image of size {image_size} with "
            f"dilations {dilations} and padding {padding!r}"
        )
    return window


def channels_last(function, image, layout):
    """Apply a function of an image with the channels last; the result has the given layout."""
    if layout[-1] == "C":
        return function(image)
    n = len(layout)
    return transpose(function(transpose(image, (0, *range(2, n), 1))), (0, n - 1, *range(1, n - 1)))


def with_batch(image_shape, g):
    """Return the shape of images; if the first extent is None, it is that of g."""
    return (len(g), *image_shape[1:]) if image_shape[0] is None else image_shape


def of_images(place):
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
