"""Geometric transforms of images: interpolation at coordinates that a transform computes.

Parameters of a transform have derivatives if the coordinates depend on them. Coordinates are
computed in SciPy's order, so that points on the boundary stay on the same side of it.
"""

import warnings
from typing import Any

import numpy as np
import scipy.ndimage as ndimage
import scipy.special as special

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand, values_of
from cytape.ops.elementwise import cos, sin
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.images.boundaries import computed, known_shape, one_for_each
from cytape.ops.images.splines import interpolated, of_image
from cytape.ops.joining import stack
from cytape.ops.shaping import moveaxis, ndim, reshape

__all__ = ["affine_transform", "rotate", "shift", "zoom"]


def _grid(shape):
    """Return the coordinates of all elements, one row per axis."""
    return np.indices(shape, float).reshape(len(shape), -1)


def _transformed(x, coordinates, shape, output, order, mode, cval, prefilter):
    return reshape(of_image(x, coordinates, output, order, mode, cval, prefilter), shape)


def _check(x, order, mode):
    """Raise SciPy's errors."""
    ndimage.shift(np.ones((1,) * ndim(x)), 0, order=order, mode=mode)


def _affine(matrix, offset, shape):
    """Return the coordinates of a matrix or a diagonal, and an offset."""
    grid = _grid(shape)
    if ndim(matrix) == 1:
        return (grid + (offset / matrix)[:, None]) * matrix[:, None]
    total = 0.0
    for axis in range(len(shape)):
        total = total + grid[axis] * matrix[:, axis:axis + 1]
    return total + offset[:, None]


@numpy_function(ndimage.affine_transform, "input", "matrix", "offset", "cval")
def affine_transform(
        input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant",
        cval=0.0, prefilter=True) -> Any:
    """Transform an image by a matrix and an offset, as `scipy.ndimage.affine_transform`.

    Derivatives in the image, the matrix, the offset and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import affine_transform
    >>> cytape.grad(lambda offset: affine_transform(
    ...     np.arange(4.0), np.eye(1), offset, order=1)[0])(np.array([0.5]))
    array([1.])
    """
    x, matrix, offset, cval = together(operand(input), operand(matrix), operand(offset), cval)
    _check(x, order, mode)
    n_axes = ndim(x)
    shape = tuple(known_shape(x, "affine_transform") if output_shape is None else output_shape)
    if ndim(matrix) not in (1, 2) or matrix.shape[0] == 0:
        raise RuntimeError("no proper affine matrix provided")
    if ndim(matrix) == 2 and matrix.shape[1] == n_axes + 1 and (
            matrix.shape[0] in (n_axes, n_axes + 1)):
        expected = [0] * n_axes + [1]
        values = values_of(matrix)
        if matrix.shape[0] == n_axes + 1 and values is not None and (
                not np.array_equal(values[n_axes], expected)):
            raise ValueError(
                f"Expected homogeneous transformation matrix with shape {matrix.shape} for image "
                f"shape {x.shape}, but bottom row was not equal to {expected}")
        matrix, offset = matrix[:n_axes, :n_axes], matrix[:n_axes, n_axes]
    if matrix.shape[0] != n_axes:
        raise RuntimeError("affine matrix has wrong number of rows")
    if ndim(matrix) == 2 and matrix.shape[1] != len(shape):
        raise RuntimeError("affine matrix has wrong number of columns")
    if ndim(offset) == 0:
        offset = offset + np.zeros(n_axes)
    if ndim(offset) != 1 or offset.shape[0] not in (None, n_axes):
        raise RuntimeError("sequence argument must have length equal to input rank")
    return _transformed(
        x, _affine(matrix, offset, shape), shape, output, order, mode, cval, prefilter)


@numpy_function(ndimage.shift, "input", "shift", "cval")
def shift(input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True) -> Any:
    """Shift an image, as `scipy.ndimage.shift`.

    Derivatives in the image, the shift and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import shift
    >>> cytape.grad(lambda s: shift(np.arange(4.0) ** 2, s, order=1)[2])(0.5)
    np.float64(-3.0)
    """
    x, shift, cval = together(operand(input), operand(joined(shift)), cval)
    _check(x, order, mode)
    shape = known_shape(x, "shift")
    if ndim(shift) > 1 or ndim(shift) and shift.shape[0] not in (None, ndim(x)):
        raise RuntimeError("sequence argument must have length equal to input rank")
    grid = _grid(shape)
    coordinates = grid - (shift[:, None] if ndim(shift) else shift)
    return _transformed(x, coordinates, shape, output, order, mode, cval, prefilter)


@numpy_function(ndimage.zoom, "input", "cval")
def zoom(input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *,
         grid_mode=False) -> Any:
    """Zoom an image, as `scipy.ndimage.zoom`. The factors have no derivative.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import zoom
    >>> cytape.grad(lambda x: zoom(x, 2, order=1)[1])(np.ones(2)).round(3)
    array([0.667, 0.333])
    """
    x, cval = together(operand(input), cval)
    _check(x, order, mode)
    extents = known_shape(x, "zoom")
    factors = one_for_each(zoom, ndim(x))
    shape = tuple([int(round(n * factor)) for n, factor in zip(extents, factors, strict=True)])
    if all(factor == 1 for factor in factors) and prefilter:
        return computed(lambda x: x + 0, x, output, x.dtype.kind == "c")
    grid_mode = grid_mode and x.dtype.kind != "c"  # as in SciPy
    if grid_mode and mode in ("constant", "wrap"):
        warnings.warn(f"It is recommended to use mode = grid-{mode} instead of {mode} when "
                      "grid_mode is True.", stacklevel=2)
    ends = 0 if grid_mode else 1
    steps = np.array([(n - ends) / (m - ends) if m != ends else 1.0
                      for n, m in zip(extents, shape, strict=True)])[:, None]
    grid = _grid(shape)
    coordinates = (grid + 0.5) * steps - 0.5 if grid_mode else grid * steps
    return _transformed(x, coordinates, shape, output, order, mode, cval, prefilter)


@numpy_function(ndimage.rotate, "input", "angle", "cval")
def rotate(input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant",
           cval=0.0, prefilter=True) -> Any:
    """Rotate an image in the plane of two axes, as `scipy.ndimage.rotate`.

    Derivatives in the image, the angle and `cval`. The extents of the result are held.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import rotate
    >>> image = np.arange(9.0).reshape(3, 3)
    >>> cytape.grad(lambda a: rotate(image, a, reshape=False, order=1)[1, 0])(10.0).round(4)
    np.float64(-0.0485)
    """
    x, angle, cval = together(operand(input), angle, cval)
    if ndim(x) >= 2 and len(axes) == 2:  # SciPy raises its errors
        ndimage.rotate(np.ones((1,) * ndim(x)), 0, axes, order=order, mode=mode)
    else:
        ndimage.rotate(np.ones((1,) * ndim(x)), 0, axes)
    plane = sorted([int(axis) % ndim(x) for axis in axes])
    extents = np.array(known_shape(x, "rotate"))
    if is_tensor(angle):
        c, s = cos(angle * (np.pi / 180)), sin(angle * (np.pi / 180))
    else:
        c, s = special.cosdg(angle), special.sindg(angle)
    shape = extents[plane]
    if reshape:
        value = values_of(angle)
        if value is None:
            raise SymbolicTensorError(
                "rotate: the extents of the result depend on the value of the angle, which a "
                "symbolic tensor does not have: pass reshape=False")
        a, b = special.cosdg(value), special.sindg(value)
        (m, n), matrix = extents[plane], np.array([[a, b], [-b, a]])
        corners = matrix @ [[0, 0, m, m], [0, n, 0, n]]
        shape = (np.ptp(corners, axis=1) + 0.5).astype(int)
    centre, out_centre = (extents[plane] - 1) / 2, (shape - 1) / 2
    matrix = stack([stack([c, s]), stack([-s, c])]) if is_tensor(angle) else (
        np.array([[c, s], [-s, c]]))
    coordinates = _affine(matrix, centre - matrix @ out_centre, tuple(shape))
    return _in_plane(x, plane, coordinates, tuple(map(int, shape)), output, order, mode, cval,
                     prefilter)


def _in_plane(x, plane, coordinates, shape, output, order, mode, cval, prefilter):
    """Interpolate all planes at the same coordinates."""
    lines = moveaxis(x, plane, (-2, -1))
    stacked = reshape(lines, (-1, *lines.shape[-2:]))

    def function(x, cval):
        return interpolated(x, coordinates, order, mode, cval, prefilter)

    if x.dtype.kind == "c":
        result = computed(lambda x: function(x.real, np.real(cval)) + 1j * function(
            x.imag, np.imag(cval)), stacked, output, True)
    else:
        result = computed(lambda x: function(x, cval), stacked, output, rounds=True)
    return moveaxis(reshape(result, (*lines.shape[:-2], *shape)), (-2, -1), plane)
