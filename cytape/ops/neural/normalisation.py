"""Normalisation of batches, layers and groups of channels.

`normalise_op` subtracts the mean along some axes and divides by the standard deviation; its second
output, the reciprocal of that, is saved. The Jacobian is symmetric, so both modes have one rule.
`fused_batch_norm_op` has the statistics of the batch as further outputs.
"""

import functools
import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import cytape.ops.neural.normalisation_loops as loops
from cytape.ops.adjoints.conform import count, countable, widened
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import SMALL, axis_in_batch, is_tensor, joined
from cytape.ops.creation import astype
from cytape.ops.elementwise import maximum, sqrt
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.neural.neural_ops import floating
from cytape.ops.reductions import mean as mean_of
from cytape.ops.reductions import sum
from cytape.ops.shapes import neural_shapes
from cytape.ops.shaping import moveaxis, ndim, reshape, shape, size
from cytape.tensor.values.plain_arrays import plain_array

SHORT_ROW = 64  # channels

__all__ = [
    "batch_norm",
    "batch_normalization",
    "fused_batch_norm",
    "group_norm",
    "layer_norm",
    "moments",
    "rms_norm",
]

# -- batches -------------------------------------------------------------------------------------
#
# Outputs: the normalised batch, its mean, its unbiased variance; for the backward pass also the
# mean and the reciprocal standard deviation of the normalisation.


def _n_elements(spec, axes):
    """Return the number of elements along some axes."""
    extents = [spec.shape[axis] for axis in axes]
    if None in extents:
        return count(spec, axes)
    return countable(math.prod(extents), spec.dtype)


def _channel_axes(spec):
    """Return all axes but the last, and the number of elements along them."""
    axes = tuple(range(spec.ndim - 1))
    return axes, _n_elements(spec, axes)


def _fused_batch_norm(x, scale, offset, *, epsilon):
    x, scale, offset = map(plain_array, (x, scale, offset))
    axes, count = tuple(range(x.ndim - 1)), math.prod(x.shape[:-1])
    wide = _wide(x)
    mean, variance = wide.mean(axes), wide.var(axes)
    rsqrt = 1 / np.sqrt(variance + epsilon)
    y = (wide - mean) * (rsqrt * scale) + offset
    dtype = mean.dtype if wide is x else x.dtype
    mean, variance, rsqrt = (each.astype(dtype, copy=False) for each in (
        mean, variance * (count / max(count - 1, 1)), rsqrt))
    return y.astype(np.result_type(x, scale, offset), copy=False), mean, variance, mean, rsqrt


def _wide(x):
    """Return an array of half precision in single precision, where squares do not overflow."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _less_one(count):
    return maximum(count - 1, 1) if is_tensor(count) else max(count - 1, 1)


def _sum_of_given(*terms):
    """Return the sum of the terms that are not None, or None."""
    terms = [term for term in terms if term is not None]
    return functools.reduce(operator.add, terms) if terms else None


def _fused_batch_norm_vjp(op, g, g_mean, g_variance, g_saved_mean, g_rsqrt):
    axes, count = _channel_axes(op.input_specs[0])
    mean, rsqrt = op.outputs[3], op.outputs[4]
    centered = widened(op.inputs[0]) - mean
    g, normalised = widened(g), widened(centered * rsqrt)
    g_scale = sum(g * normalised, axes)
    g_offset = sum(g, axes)
    g_x = rsqrt * op.inputs[1] * (g - (g_offset + normalised * g_scale) / count)

    g_mean = _sum_of_given(g_mean, g_saved_mean)
    if g_mean is not None:
        g_x = g_x + g_mean / count
    if g_variance is not None:
        g_x = g_x + g_variance * centered * (2 / _less_one(count))
    if g_rsqrt is not None:
        g_x = g_x - g_rsqrt * rsqrt**3 * centered / count
    return g_x, g_scale, g_offset


def _fused_batch_norm_jvp(op, t_x, t_scale, t_offset):
    axes, count = _channel_axes(op.input_specs[0])
    mean, rsqrt = op.outputs[3], op.outputs[4]
    centered = widened(op.inputs[0]) - mean
    t_y = t_mean = t_variance = t_rsqrt = None
    if t_x is not None:
        t_x = widened(t_x)
        t_mean = sum(t_x, axes) / count
        covariance = sum(centered * t_x, axes)
        t_variance = covariance * (2 / _less_one(count))
        t_rsqrt = -(rsqrt**3) * covariance / count
        t_y = op.inputs[1] * (rsqrt * (t_x - t_mean) + centered * t_rsqrt)
    if t_scale is not None:
        t_scale = centered * rsqrt * t_scale
    if t_offset is not None:
        t_offset = broadcast_to(t_offset, op.input_specs[0].extents)
    return _sum_of_given(t_y, t_scale, t_offset), t_mean, t_variance, t_mean, t_rsqrt


def _normalised(call):
    """Normalise a batch: the channels of members are further channels."""
    inputs = batch_axis.repeated(call)
    if inputs is None or call.extent is None or not call.input_specs[0].known:
        return NotImplemented
    x, *others = inputs
    channels = (call.extent, call.input_specs[0].shape[-1])
    width = call.extent * channels[1]
    y, *statistics = call.again([
        reshape(moveaxis(x, 0, -2), (*call.input_specs[0].shape[:-1], width)),
        *[reshape(other, (width,)) for other in others]])
    return (moveaxis(reshape(y, (*call.input_specs[0].shape[:-1], *channels)), -2, 0),
            *[reshape(each, channels) for each in statistics])


fused_batch_norm_op = general(
    "FusedBatchNorm",
    forward=_fused_batch_norm,
    vjp=_fused_batch_norm_vjp,
    jvp=_fused_batch_norm_jvp,
    saved_inputs=(0, 1),
    saved_outputs=(3, 4),
    optional_gradients=(1, 2, 3, 4),
    optional_tangents=(0, 1, 2),
    shape_rule=neural_shapes.fused_batch_norm,
    batch=_normalised,
    is_passed_over=True,
)


def fused_batch_norm(x, scale, offset, epsilon=0.001) -> Any:
    """Normalise a batch over all axes but the last, then scale and shift it, as in training.

    Parameters
    ----------
    x : array_like
        The batch, channels last.
    scale, offset : array_like
        One number per channel.
    epsilon : float, optional
        Added to the variance.

    Returns
    -------
    y, mean, variance : Tensor or ndarray
        The normalised batch, and the mean and the unbiased variance of each channel of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> y, mean, variance = cytape.nn.fused_batch_norm(np.array([[1.0], [3.0]]), [1.0], [0.0])
    >>> mean, variance
    (array([2.]), array([2.]))
    """
    x, scale, offset = map(floating, (x, scale, offset))
    shapes = {shape(scale), shape(offset), shape(x)[-1:]} - {(None,)}
    if len(shapes) > 1:
        raise ValueError(
            f"scale and offset must have one number for each of the channels, the last axis of a "
            f"batch of shape {shape(x)}; got shapes {shape(scale)} and {shape(offset)}")
    return fused_batch_norm_op(x, scale, offset, epsilon=epsilon)[:3]


def batch_norm(
    x, scale, offset, moving_mean, moving_variance, *, training, momentum=0.99, epsilon=0.001
) -> Any:
    """Normalise a batch over all axes but the last, and return the statistics to keep.

    Parameters
    ----------
    x : array_like
        The batch, channels last.
    scale, offset, moving_mean, moving_variance : array_like
        One number per channel.
    training : bool
        Whether to normalise by the statistics of the batch, and to update the moving ones;
        otherwise the moving ones are used, and returned as they are.
    momentum : float, optional
        The weight of the former moving statistics, at least 0 and at most 1.
    epsilon : float, optional
        Added to the variance.

    Returns
    -------
    y, moving_mean, moving_variance : Tensor or ndarray
        The moving variance is unbiased.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> y, mean, variance = cytape.nn.batch_norm(
    ...     np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), np.zeros(1), np.ones(1),
    ...     training=True, momentum=0.5)
    >>> mean, variance
    (array([1.]), array([1.5]))
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"momentum must be at least 0 and at most 1, got {momentum}")
    moving_mean, moving_variance = joined(moving_mean), joined(moving_variance)
    if not training:
        y = batch_normalization(x, moving_mean, moving_variance, offset, scale, epsilon)
        return y, moving_mean, moving_variance
    y, mean, variance = fused_batch_norm(x, scale, offset, epsilon)
    return (y, momentum * moving_mean + (1 - momentum) * mean,
            momentum * moving_variance + (1 - momentum) * variance)


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon) -> Any:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``.

    Parameters
    ----------
    x, mean, variance : array_like
    offset, scale : array_like or None
    variance_epsilon : float

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.batch_normalization(np.array([1.0, 5.0]), 3.0, 4.0, None, 2.0, 0.0)
    array([-2.,  2.])
    """
    factor = 1 / sqrt(floating(variance) + variance_epsilon)
    if scale is not None:
        factor = factor * joined(scale)
    y = (floating(x) - joined(mean)) * factor
    return y if offset is None else y + joined(offset)


def moments(x, axes, keepdims=False) -> Any:
    """Return mean and variance along some axes.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> mean, variance = cytape.nn.moments(np.array([[1.0, 2.0], [3.0, 6.0]]), axes=[0])
    >>> mean, variance
    (array([2., 4.]), array([1., 4.]))
    """
    axes = tuple(axes) if isinstance(axes, list) else axes
    x = floating(x)
    mean = mean_of(x, axes, keepdims=True)
    difference = widened(x) - mean
    variance = astype(
        mean_of(difference * difference, axes, keepdims=keepdims), x.dtype, copy=False)
    return (mean if keepdims else mean_of(x, axes)), variance


# -- layers and groups ---------------------------------------------------------------------------


def _by_loops(loop, axis, *arrays):
    """Call a loop with the extents of arrays of one shape, transposed if it needs that."""
    axis = normalize_axis_tuple(axis, arrays[0].ndim)
    extents = loops.four_axes(arrays[0].shape, axis)
    if extents is not None:
        return loop(extents, *arrays)
    last = tuple(range(-len(axis), 0))
    result, *others = _by_loops(loop, last, *[np.moveaxis(x, axis, last) for x in arrays])
    return np.moveaxis(result, last, axis), *others


def _normalise(x, *, axis, epsilon, centered):
    x = plain_array(x)
    y, reciprocal = _by_loops(
        lambda extents, x: loops.normalise(x, extents, epsilon, centered), axis, _wide(x))
    axis = normalize_axis_tuple(axis, x.ndim)
    reciprocal = reciprocal.reshape([1 if i in axis else n for i, n in enumerate(x.shape)])
    if not reciprocal.all():
        np.square(np.finfo(x.dtype).max)  # warns of overflow, as NumPy does
    return (np.ascontiguousarray(y, x.dtype) if x.ndim else y.astype(x.dtype, copy=False),
            reciprocal.astype(x.dtype, copy=False))


def _along(op, t, axis):
    """Multiply by the derivative of the normalised values."""
    y, reciprocal = op.outputs
    centered = op.attrs["centered"]
    if type(t) is type(y) is np.ndarray and t.shape == y.shape:
        return _by_loops(lambda extents, t, y: (
            loops.slope(t, y, reciprocal, extents, centered),), axis, t, y)[0]
    t = widened(t)
    result = t - y * mean_of(y * t, axis, keepdims=True)
    if centered:
        result = result - mean_of(t, axis, keepdims=True)
    return reciprocal * result


def _normalise_vjp(op, g, g_reciprocal):
    axis = op.attrs["axis"]
    y, reciprocal = op.outputs
    result = None if g is None else _along(op, g, axis)
    if g_reciprocal is not None:
        factor = -widened(g_reciprocal) * reciprocal * reciprocal
        term = y * (factor / _n_elements(op.input_specs[0], axis))
        result = term if result is None else result + term
    return result


def _normalise_jvp(op, t, axis=None):
    axis = op.attrs["axis"] if axis is None else axis
    y, reciprocal = op.outputs
    mean = mean_of(y * widened(t), axis, keepdims=True)
    return _along(op, t, axis), -reciprocal * reciprocal * mean


normalise_op = general(
    "Normalize",
    forward=_normalise,
    vjp=_normalise_vjp,
    jvp=_normalise_jvp,
    saved_inputs=(),
    saved_outputs=(0, 1),
    optional_gradients=(0, 1),
    batched=lambda op, t: _normalise_jvp(op, t, axis_in_batch(op.attrs["axis"], t.ndim)),
    shape_rule=neural_shapes.normalise,
    batch=batch_axis.along_axis,
    is_passed_over=True,
)


def _normalised_part(x, axis, epsilon, scale, offset, centered):
    if isinstance(scale, tuple) and all(isinstance(n, int) for n in scale):  # normalized_shape
        raise TypeError(
            f"scale must be an array, got {scale!r}: the axes to normalise are called axis, and "
            "their extents are not passed")
    x = floating(x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = normalize_axis_tuple(axes, ndim(x), "axis")
    y = normalise_op(
        x, axis=tuple(n - ndim(x) for n in axes), epsilon=epsilon, centered=centered)[0]
    if scale is not None:
        y = y * joined(scale)
    return y if offset is None else y + joined(offset)


def layer_norm(x, scale=None, offset=None, axis=-1, epsilon=1e-5) -> Any:
    """Normalise along some axes, to the mean 0 and the variance 1; then scale and shift.

    Parameters
    ----------
    x : array_like
    scale, offset : array_like, optional
        Broadcast to `x`.
    axis : int or sequence of int, optional
    epsilon : float, optional
        Added to the variance.

    Returns
    -------
    Tensor or ndarray
        Of the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), epsilon=0.0 + 1e-12).round(3)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    return _normalised_part(x, axis, epsilon, scale, offset, True)


def rms_norm(x, scale=None, axis=-1, epsilon=1e-6) -> Any:
    """Divide by the root of the mean square along some axes; then scale.

    Parameters are those of `layer_norm`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.rms_norm(np.array([1.0, 7.0]), epsilon=0.0)
    array([0.2, 1.4])
    """
    return _normalised_part(x, axis, epsilon, scale, None, False)


def group_norm(x, groups, scale=None, offset=None, epsilon=1e-5) -> Any:
    """Normalise each example over all its axes, for each group of channels; then scale and shift.

    Parameters
    ----------
    x : array_like
        The batch, channels last.
    groups : int
        Divides the number of channels. One group per channel is instance normalisation.
    scale, offset : array_like, optional
        One number per channel.
    epsilon : float, optional
        Added to the variance.

    Returns
    -------
    Tensor or ndarray
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If the groups do not divide the channels, or `x` has fewer than two axes.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.nn.group_norm(np.array([[1.0, 3.0, 5.0, 5.0]]), groups=2).round(3)
    array([[-1.,  1.,  0.,  0.]])
    """
    x = floating(x)
    extents = shape(x)
    if len(extents) < 2 or extents[-1] is None or groups < 1 or extents[-1] % groups:
        raise ValueError(
            f"group_norm takes a batch whose last axis, of the channels, has a known multiple of "
            f"groups = {groups}; got shape {extents}")
    extents = tuple(size(x, axis) if n is None else n for axis, n in enumerate(extents))
    parts = reshape(x, (*extents[:-1], groups, extents[-1] // groups))
    axes = (*range(1, len(extents) - 1), len(extents))
    y = reshape(_normalised_part(parts, axes, epsilon, None, None, True), extents)
    if scale is not None:
        y = y * _of_channels(scale, "scale", extents)
    return y if offset is None else y + _of_channels(offset, "offset", extents)


def _of_channels(x, name, extents):
    """Return the numbers of the channels, the last axis."""
    x = joined(x)
    *others, n_numbers = shape(x) or (1,)
    if others.count(1) < len(others) or n_numbers not in (1, None, extents[-1]):
        raise ValueError(
            f"{name} must have one number per channel, shape {extents[-1:]}, got {shape(x)}")
    x = reshape(x, (-1,))
    if None not in extents and extents[-1] < SHORT_ROW and math.prod(extents) > SMALL:
        x = x * np.ones((extents[-2], 1), x.dtype)  # loops run over longer rows
    return x
