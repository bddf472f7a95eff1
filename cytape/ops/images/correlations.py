"""Correlation and convolution of images with weights, by `scipy.ndimage`.

An image is extended by its boundary mode, then correlated. So the gradient of the image is the
correlation of its gradient with the reversed weights, folded back at the boundary, and that of the
weights is a sum over windows. All three are computed without an extended image where SciPy can.
"""

from typing import Any

import numpy as np
import scipy.ndimage as ndimage
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import operand
from cytape.ops.creation import astype
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import linear, multilinear
from cytape.ops.images.boundaries import (
    PADDING,
    computed,
    extended,
    filtered,
    filtered_axes,
    fold_op,
    integer,
    is_zero,
    one_for_each,
)
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import flip, pad_op
from cytape.ops.shaping import expand_dims, ndim, reshape
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "uniform_filter", "uniform_filter1d"]

MOST_SUMS = 256  # windows; Fourier transforms are faster for more


def _before(sizes, origins):
    """Return how many elements a window begins before the element it belongs to."""
    return [n // 2 + origin for n, origin in zip(sizes, origins, strict=True)]


def _origins(sizes, before):
    return tuple([k - n // 2 for n, k in zip(sizes, before, strict=True)])


def _correlate(x, w, *, mode, origins):
    w = conj_if_complex(w)  # SciPy conjugates weights
    long = [axis for axis, n in enumerate(w.shape) if n != 1]
    if len(long) > 1 or not x.ndim:
        return ndimage.correlate(x, w, mode=mode, origin=origins)
    axis = long[0] if long else 0
    return ndimage.correlate1d(x, w.ravel(), axis, mode=mode, origin=origins[axis])


def _widths(sizes, origins):
    return tuple([(k, n - 1 - k) for n, k in zip(sizes, _before(sizes, origins), strict=True)])


def _of_image(op, g, w):
    if None in w.shape:
        return NotImplemented
    mode = op.attrs["mode"]
    widths = _widths(w.shape, op.attrs["origins"])
    reversed_origins = _origins(w.shape, [after for _, after in widths])
    is_extended = PADDING[mode] is not None
    g = correlate_op(pad_op(g, pad_width=widths) if is_extended else g, flip(w), mode="constant",
                     origins=reversed_origins)
    return fold_op(g, widths=widths, mode=mode) if is_extended else g


def _of_weights(op, x, g):
    sizes = op.input_specs[1].shape
    if None in (*x.shape, *sizes):
        return NotImplemented
    return window_sums_op(extended(x, _widths(sizes, op.attrs["origins"]), op.attrs["mode"]), g)


correlate_op = multilinear(
    "ScipyNdimageCorrelate", _correlate, _of_image, _of_weights,
    shape_rule=lambda x, w, **_: spec_like(
        x, np.promote_types(x.dtype, np.complex64) if w.dtype.kind == "c" else x.dtype),
    batch=lambda call: NotImplemented if call.mapped[1] else call.again(
        [call.inputs[0], call.inputs[1][None]], origins=(0, *call.attrs["origins"])))


def _window_sums(x, g):
    """Return ``s[k] = sum over n of g[n] x[n + k]``."""
    counts = [n - m + 1 for n, m in zip(x.shape, g.shape, strict=True)]
    if np.prod(counts) > MOST_SUMS and g.size:
        import scipy.signal  # takes long

        return scipy.signal.fftconvolve(x, np.flip(g), "valid")
    axes, sums = list(range(x.ndim)), np.zeros(counts, np.result_type(x, g))
    for place in np.ndindex(*counts):
        part = x[tuple([slice(k, k + m) for k, m in zip(place, g.shape, strict=True)])]
        sums[place] = np.einsum(g, axes, part, axes, [])
    return sums


def _as_float(x, like):
    """Convert an image of integers, in whose dtype SciPy would correlate."""
    return x if x.dtype.kind in "fc" else astype(x, like.dtype)


def _sums_of_image(op, g, weights):
    shape = op.input_specs[0].shape
    if None in (*shape, *g.shape):
        return NotImplemented
    padded = pad_op(_as_float(weights, g), pad_width=tuple([(0, n - 1) for n in g.shape]))
    return correlate_op(padded, flip(g), mode="constant",
                        origins=_origins(g.shape, [n - 1 for n in g.shape]))


def _sums_of_gradient(op, x, g):
    sizes = op.input_specs[1].shape
    if None in (*sizes, *g.shape):
        return NotImplemented
    whole = correlate_op(
        _as_float(x, g), g, mode="constant", origins=_origins(g.shape, [0] * len(g.shape)))
    return whole[tuple([slice(n) for n in sizes])]


window_sums_op = multilinear(
    "ScipyNdimageWindowSums", _window_sums,
    lambda op, g, weights: _sums_of_image(op, g, weights),
    lambda op, x, g: _sums_of_gradient(op, x, g),
    shape_rule=lambda x, g: symbolic_spec(
        tuple([None if n is None or m is None else n - m + 1
               for n, m in zip(x.shape, g.shape, strict=True)]), np.result_type(x.dtype, g.dtype)))


def _between_constants(x, cval, widths):
    """Return an image between elements of the value `cval`, and the index of the image."""
    padded = np.pad(convert_to_tensor(x), widths, constant_values=cval)
    return padded, tuple([slice(before, -after or None) for before, after in widths])


def _correlated(x, w, output, mode, cval, origins):
    """Correlate an image with weights of as many axes."""
    def function(x):
        if PADDING[mode] is not None or is_zero(cval):
            return correlate_op(x, w, mode=mode, origins=origins)
        x, inside = _between_constants(x, cval, _widths(w.shape, origins))
        return correlate_op(x, w, mode="constant", origins=origins)[inside]

    is_complex = "c" in (x.dtype.kind, w.dtype.kind)
    return filtered(function, x, output, is_complex)


def _by_weights(theirs, input, weights, output, mode, cval, origin, axes):
    x, w, cval = together(operand(input), operand(weights), cval)
    if None not in w.shape:  # SciPy raises its errors
        theirs(np.ones((1,) * ndim(x)), np.ones(w.shape), mode=mode, origin=origin, axes=axes)
    axes = filtered_axes(axes, ndim(x))
    origins = [0] * ndim(x)
    for axis, value in zip(axes, one_for_each(origin, len(axes)), strict=True):
        origins[axis] = integer(value)
    missing = tuple([axis for axis in range(ndim(x)) if axis not in axes])
    w = expand_dims(w, missing) if missing else w
    if theirs is ndimage.convolve:
        w, origins = _convolving(w, origins)
    else:
        w = conj_if_complex(w)
    return _correlated(x, w, output, mode, cval, tuple(origins))


def _convolving(w, origins):
    if None in w.shape:
        raise SymbolicTensorError(
            "convolutions need to know the extents of the weights: give the placeholder a shape, "
            "or reshape the tensor to a known one")
    return flip(w), [-k if n % 2 else -k - 1 for n, k in zip(w.shape, origins, strict=True)]


@numpy_function(ndimage.correlate, "input", "weights", "cval")
def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *,
                   axes=None) -> Any:
    """Correlate an image with weights, as `scipy.ndimage.correlate`.

    Derivatives in the image, the weights and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import correlate
    >>> cytape.grad(lambda x: np.sum(correlate(x, [1.0, 2.0, 4.0])))(np.ones(4))
    array([ 4.,  7.,  7., 10.])
    """
    return _by_weights(ndimage.correlate, input, weights, output, mode, cval, origin, axes)


@numpy_function(ndimage.convolve, "input", "weights", "cval")
def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *,
                   axes=None) -> Any:
    """Convolve an image with weights, as `scipy.ndimage.convolve`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import convolve
    >>> cytape.grad(lambda x: np.sum(convolve(x, [1.0, 2.0, 4.0])))(np.ones(4))
    array([10.,  7.,  7.,  4.])
    """
    return _by_weights(ndimage.convolve, input, weights, output, mode, cval, origin, axes)


def _along_axis(theirs, input, weights, axis, output, mode, cval, origin):
    x, w, cval = together(operand(input), operand(weights), cval)
    if None not in w.shape:
        theirs(np.ones((1,) * ndim(x)), np.ones(w.shape), axis, mode=mode, origin=origin)
    axis = normalize_axis_index(axis, ndim(x))
    n, k = w.shape[0], integer(origin)
    if theirs is ndimage.convolve1d:
        w, (k,) = _convolving(w, [k])
    else:
        w = conj_if_complex(w)
    shape = [1] * ndim(x)
    shape[axis] = -1 if n is None else n
    origins = tuple([k if i == axis else 0 for i in range(ndim(x))])
    return _correlated(x, reshape(w, tuple(shape)), output, mode, cval, origins)


@numpy_function(ndimage.correlate1d, "input", "weights", "cval")
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Any:
    """Correlate lines along an axis with weights, as `scipy.ndimage.correlate1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import correlate1d
    >>> cytape.grad(lambda w: np.sum(correlate1d(np.arange(4.0), w)))(np.ones(3))
    array([3., 6., 9.])
    """
    return _along_axis(ndimage.correlate1d, input, weights, axis, output, mode, cval, origin)


@numpy_function(ndimage.convolve1d, "input", "weights", "cval")
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Any:
    """Convolve lines along an axis with weights, as `scipy.ndimage.convolve1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import convolve1d
    >>> cytape.grad(lambda w: np.sum(convolve1d(np.arange(4.0), w)))(np.ones(3))
    array([9., 6., 3.])
    """
    return _along_axis(ndimage.convolve1d, input, weights, axis, output, mode, cval, origin)


# -- means -----------------------------------------------------------------------------------------


def _uniform_transpose(op, g):
    size, axis, mode, origin = map(op.attrs.get, ("size", "axis", "mode", "origin"))
    before = size // 2 + origin
    widths = tuple([(before, size - 1 - before) if i == axis else (0, 0)
                    for i in range(len(op.input_specs[0].shape))])
    is_extended = PADDING[mode] is not None
    g = uniform_op(pad_op(g, pad_width=widths) if is_extended else g, size=size, axis=axis,
                   mode="constant", origin=size - 1 - before - size // 2)
    return fold_op(g, widths=widths, mode=mode) if is_extended else g


uniform_op = linear(
    "ScipyNdimageUniform",
    lambda x, size, axis, mode, origin: ndimage.uniform_filter1d(
        x, size, axis, mode=mode, origin=origin),
    transpose=_uniform_transpose,
    shape_rule=lambda x, **_: x, batch=batch_axis.along_axis)


@numpy_function(ndimage.uniform_filter1d, "input", "cval")
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Any:
    """Return means over windows along an axis, as `scipy.ndimage.uniform_filter1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import uniform_filter1d
    >>> cytape.grad(lambda x: uniform_filter1d(x, 3)[0])(np.ones(3)) * 3
    array([2., 1., 0.])
    """
    x, cval = together(operand(input), cval)
    ndimage.uniform_filter1d(
        np.ones((1,) * ndim(x)), size, axis, mode=mode, origin=origin)  # SciPy's errors
    options = {"size": integer(size), "axis": normalize_axis_index(axis, ndim(x)), "mode": mode,
               "origin": integer(origin)}

    def function(x):
        if PADDING[mode] is not None or is_zero(cval):
            return uniform_op(x, **options)
        before = options["size"] // 2 + options["origin"]
        x, inside = _between_constants(x, cval, tuple([
            (before, options["size"] - 1 - before) if i == options["axis"] else (0, 0)
            for i in range(ndim(x))]))
        return uniform_op(x, **options)[inside]

    return filtered(function, x, output, x.dtype.kind == "c")


@numpy_function(ndimage.uniform_filter, "input", "cval")
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *,
                   axes=None) -> Any:
    """Return means over windows, as `scipy.ndimage.uniform_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import uniform_filter
    >>> cytape.grad(lambda x: uniform_filter(x, 3)[0, 0])(np.ones((2, 2))) * 9
    array([[4., 2.],
           [2., 1.]])
    """
    x, cval = together(operand(input), cval)
    axes = filtered_axes(axes, ndim(x))
    options = [one_for_each(value, len(axes)) for value in (size, mode, origin)]
    is_changed = False
    for axis, n, mode_of_axis, k in zip(axes, *options, strict=True):
        if n > 1:
            x = uniform_filter1d(x, int(n), axis, output, mode_of_axis, cval, k)
            is_changed = True
    return x if is_changed else computed(lambda x: x + 0, x, output)
