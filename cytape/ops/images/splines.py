"""Interpolation of images by B-splines: the ops, prefilters, `map_coordinates`.

The filter finds coefficients of splines, interpolation adds splines up, at coordinates. Derivatives
in the coordinates are interpolations by derivatives of the splines, and the gradient in the
coefficients is the transpose of interpolation. At a kink, derivatives are those to the right.
"""

from typing import Any

import numpy as np
import scipy.ndimage as ndimage
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import operand
from cytape.ops.comparisons import all as all_true
from cytape.ops.creation import astype
from cytape.ops.elementwise import where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, linear
from cytape.ops.images.boundaries import computed, is_zero, known_shape
from cytape.ops.images.spline_taps import interpolate, slopes, spread
from cytape.ops.joining import stack
from cytape.ops.reductions import sum
from cytape.ops.shaping import expand_dims, extents, ndim, reshape
from cytape.ops.submodules.matrix_parts import sum_of
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["map_coordinates", "spline_filter", "spline_filter1d"]

# -- the filter ------------------------------------------------------------------------------------

DENSE = 40  # up to this extent the filter is transposed as a matrix
_ABOUT_ELEMENTS = ("mirror", "constant", "wrap", "grid-constant")  # as mirrored in the elements


def _filter(x, *, order, axis, mode):
    return ndimage.spline_filter1d(x, order, axis, np.float64, mode)


def _filter_transpose(op, g):
    order, axis, mode = map(op.attrs.get, ("order", "axis", "mode"))
    n = g.shape[axis]
    if n is None:
        return NotImplemented
    if n <= DENSE:  # SciPy's start of the recurrence is not exact for short lines
        matrix = ndimage.spline_filter1d(np.eye(n), order, 0, np.float64, mode)
        return np.moveaxis(np.tensordot(matrix, g, (0, axis)), 0, axis)
    if mode not in _ABOUT_ELEMENTS:
        return spline_op(g, **op.attrs)
    # The matrix of samples of splines is symmetric but for the ends, which have one neighbour.
    weights = np.ones([n if i == axis else 1 for i in range(g.ndim)])
    np.moveaxis(weights, axis, 0)[[0, -1]] = 0.5
    return spline_op(g / weights, **op.attrs) * weights


spline_op = linear(
    "ScipyNdimageSpline", _filter, transpose=_filter_transpose,
    shape_rule=lambda x, **_: symbolic_spec(x.shape, np.float64), batch=batch_axis.along_axis)


def by_parts(function, x, output):
    """Call a function of real images on an image, on both parts of a complex one."""
    if x.dtype.kind != "c":
        return computed(function, x, output)
    return computed(lambda x: function(x.real) + 1j * function(x.imag), x, output, True)


def _filtered(x, order, axes, mode):
    """Return coefficients of splines as float64."""
    x = x if x.dtype == np.float64 else astype(x, np.float64)
    if order > 1:
        for axis in axes:
            x = spline_op(x, order=order, axis=axis, mode=mode)
    return x


@numpy_function(ndimage.spline_filter1d)
def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror") -> Any:
    """Return the coefficients of splines along an axis, as `scipy.ndimage.spline_filter1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import spline_filter1d
    >>> cytape.grad(lambda x: spline_filter1d(x)[0])(np.ones(2))
    array([ 2., -1.])
    """
    x = operand(input)
    ndimage.spline_filter1d(np.ones((1,) * ndim(x)), order, axis, mode=mode)  # SciPy's errors
    axis = normalize_axis_index(axis, ndim(x))
    output = np.complex128 if output is np.float64 and x.dtype.kind == "c" else output
    return by_parts(lambda x: _filtered(x, order, [axis], mode), x, output)


@numpy_function(ndimage.spline_filter)
def spline_filter(input, order=3, output=np.float64, mode="mirror") -> Any:
    """Return the coefficients of splines along all axes, as `scipy.ndimage.spline_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import spline_filter
    >>> cytape.grad(lambda x: spline_filter(x)[0, 0])(np.ones((2, 2)))
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    x = operand(input)
    ndimage.spline_filter(np.ones((1,) * ndim(x)), order, mode=mode)  # SciPy's errors
    output = np.complex128 if output is np.float64 and x.dtype.kind == "c" else output
    return by_parts(lambda x: _filtered(x, order, range(ndim(x)), mode), x, output)


# -- interpolation ---------------------------------------------------------------------------------
#
# Coefficients have a batch axis; coordinates have one of the same extent, or of 1.


def _as_floats(*arrays):
    return [x if x.dtype.kind in "fc" else x.astype(np.float64) for x in arrays]


def _once_more(attrs, axis):
    """Return the attributes with one more derivative along an axis."""
    times = attrs["derivative"]
    return {**attrs, "derivative": tuple([n + (i == axis) for i, n in enumerate(times)])}


def _slopes(op, c, x, numbers):
    """Return gradients of coordinates: numbers times interpolations by derivatives."""
    attrs = {name: value for name, value in op.attrs.items() if name != "shape"}
    result = expand_dims(numbers, 1) * slopes_op(c, x, **attrs)
    n_own = op.input_specs[1].shape[0]
    return sum(result, 0, keepdims=True) if n_own == 1 else result


def _interpolate_vjp(op, g):
    c, x = op.inputs
    shape = op.input_specs[0].shape[1:]
    if None in shape or op.input_specs[1].shape[0] is None:
        return NotImplemented
    return (spread_op(g, x, shape=shape, **op.attrs) if op.needs[0] else None,
            _slopes(op, c, x, g) if op.needs[1] else None)


def _interpolate_jvp(op, tc, tx):
    c, x = op.inputs
    terms = [None if tc is None else interpolate_op(tc, x, **op.attrs)]
    if tx is not None:
        terms += [tx[:, axis] * interpolate_op(c, x, **_once_more(op.attrs, axis))
                  for axis in range(len(op.attrs["derivative"]))]
    return sum_of(terms)


def _in_batch(call):
    """Join the batch axis with that of the coefficients."""
    (values, x), (of_values, of_x) = call.inputs, call.input_specs
    if not call.mapped[0] or None in (call.extent, *of_values.shape, *of_x.shape):
        return NotImplemented
    if call.mapped[1]:
        if of_x.shape[0] != of_values.shape[0]:
            x = broadcast_to(x, (call.extent, of_values.shape[0], *of_x.shape[1:]))
        x = reshape(x, (-1, *of_x.shape[1:]))
    elif of_x.shape[0] != 1:
        return NotImplemented
    result = call.again([reshape(values, (-1, *of_values.shape[1:])), x])
    return reshape(result, (call.extent, of_values.shape[0], *result.shape[1:]))


interpolate_op = general(
    "ScipyNdimageInterpolate",
    lambda c, x, *, order, mode, derivative: interpolate(
        *_as_floats(c, x), order, mode, derivative),
    vjp=_interpolate_vjp, jvp=_interpolate_jvp, optional_tangents=(0, 1),
    shape_rule=lambda c, x, **_: symbolic_spec((c.shape[0], x.shape[2]), np.float64),
    batch=_in_batch)


slopes_op = composed(
    "ScipyNdimageSlopes",
    lambda c, x, *, order, mode, derivative: slopes(*_as_floats(c, x), order, mode, derivative),
    lambda c, x, **attrs: stack([
        interpolate_op(c, x, **_once_more(attrs, axis))
        for axis in range(len(attrs["derivative"]))], 1),
    shape_rule=lambda c, x, **_: symbolic_spec((c.shape[0], *x.shape[1:]), np.float64),
    batch=_in_batch)


def _spread_vjp(op, h):
    numbers, x = op.inputs
    if op.input_specs[1].shape[0] is None:
        return NotImplemented
    attrs = {name: value for name, value in op.attrs.items() if name != "shape"}
    return (interpolate_op(h, x, **attrs) if op.needs[0] else None,
            _slopes(op, h, x, numbers) if op.needs[1] else None)


def _spread_jvp(op, tn, tx):
    numbers, x = op.inputs
    terms = [None if tn is None else spread_op(tn, x, **op.attrs)]
    if tx is not None:
        terms += [spread_op(numbers * tx[:, axis], x, **_once_more(op.attrs, axis))
                  for axis in range(len(op.attrs["derivative"]))]
    return sum_of(terms)


spread_op = general(
    "ScipyNdimageSpread",
    lambda numbers, x, *, shape, order, mode, derivative: spread(
        *_as_floats(numbers, x), shape, order, mode, derivative),
    vjp=_spread_vjp, jvp=_spread_jvp, optional_tangents=(0, 1),
    shape_rule=lambda numbers, x, *, shape, **_: symbolic_spec(
        (numbers.shape[0], *shape), np.float64),
    batch=_in_batch)


# -- images ----------------------------------------------------------------------------------------

MOST_MAPPED = 2.0**52  # SciPy returns `cval` for NaN
MARGIN = 12  # elements by which SciPy extends images whose splines have no exact boundary


def interpolated(x, coordinates, order, mode, cval, prefilter):
    """Interpolate a stack of real images at coordinates, an array of axes and points."""
    n_axes = ndim(x) - 1
    axes, before = range(1, n_axes + 1), 0
    is_filtered = prefilter and order > 1
    has_cval = mode == "grid-constant" and not is_zero(cval)
    c = x - cval if has_cval else x  # the weights of all splines at a point add up to 1
    if is_filtered and mode in ("nearest", "grid-constant"):
        before = MARGIN
        c = np.pad(c, ((0, 0), *[(before, before)] * n_axes),
                   "edge" if mode == "nearest" else "constant")
    c = _filtered(c, order if is_filtered else 0, axes, mode)
    coordinates = coordinates if coordinates.dtype == np.float64 else astype(
        coordinates, np.float64)
    result = interpolate_op(
        c, (coordinates + before if before else coordinates)[None], order=order, mode=mode,
        derivative=(0,) * n_axes)
    if has_cval:
        return result + cval
    if mode not in ("nearest", "grid-constant") and not is_zero(cval):
        if mode == "constant":
            last = np.array(known_shape(x, "interpolation")[1:])[:, None] - 1
            is_inside = (coordinates >= 0) & (coordinates <= last)
        else:
            is_inside = np.abs(coordinates) < MOST_MAPPED
        result = result + where(all_true(is_inside, 0), 0.0, cval)
    return result


def of_image(x, coordinates, output, order, mode, cval, prefilter):
    """Interpolate an image at coordinates of axes and points, or both parts of a complex one."""
    def function(x, cval):
        return interpolated(x[None], coordinates, order, mode, cval, prefilter)[0]

    if x.dtype.kind != "c":
        return computed(lambda x: function(x, cval), x, output, rounds=True)
    return computed(lambda x: function(x.real, np.real(cval)) + 1j * function(
        x.imag, np.imag(cval)), x, output, True)


@numpy_function(ndimage.map_coordinates, "input", "coordinates", "cval")
def map_coordinates(
        input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True) -> Any:
    """Interpolate an image at coordinates, as `scipy.ndimage.map_coordinates`.

    Derivatives in the image, the coordinates and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import map_coordinates
    >>> image = np.arange(16.0).reshape(4, 4)
    >>> cytape.grad(lambda x: map_coordinates(image, x, order=1)[0])(np.array([[1.5], [2.5]]))
    array([[4.],
           [1.]])
    """
    x, coordinates, cval = together(operand(input), operand(coordinates), cval)
    if coordinates.shape[0] is not None:  # SciPy raises its errors
        ndimage.map_coordinates(
            np.ones((1,) * ndim(x)),
            np.zeros((coordinates.shape[0], *[1] * (ndim(coordinates) - 1)), coordinates.dtype),
            order=order, mode=mode, prefilter=False)
    points = reshape(coordinates, (ndim(x), -1))
    result = of_image(x, points, output, order, mode, cval, prefilter)
    return reshape(result, extents(coordinates)[1:])
