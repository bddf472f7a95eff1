"""Filters of images with fixed weights along axes: Gaussians, Laplacians, Sobel and Prewitt.

They are sequences of correlations along axes, as in SciPy. A Gaussian is also differentiable in its
standard deviation, while the number of weights is held.
"""

import numbers
from typing import Any

import numpy as np
import scipy.ndimage as ndimage
from numpy.lib.array_utils import normalize_axis_index

from cytape.errors import SymbolicTensorError
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import operand, values_of
from cytape.ops.creation import astype
from cytape.ops.elementwise import exp, sqrt, where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.images.boundaries import computed, filtered_axes, one_for_each
from cytape.ops.images.correlations import correlate1d
from cytape.ops.joining import stack
from cytape.ops.reductions import sum
from cytape.ops.shaping import ndim
from cytape.ops.submodules.norms import norm

__all__ = [
    "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "laplace", "prewitt", "sobel"]


def _unchanged(x, output):
    return computed(lambda x: x + 0, x, output, x.dtype.kind == "c")


def _radius(sigma, truncate, radius):
    if radius is None:
        value = values_of(sigma)
        if value is None:
            raise SymbolicTensorError(
                "the number of weights of a Gaussian depends on the value of sigma, which a "
                "symbolic tensor does not have: give radius")
        return int(truncate * float(value) + 0.5)
    if not isinstance(radius, numbers.Integral) or radius < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    return radius


def _kernel(sigma, order, radius):
    """Return samples of a derivative of a Gaussian: its product with a polynomial."""
    if order < 0:
        raise ValueError("order must be non-negative")
    x, variance = np.arange(-radius, radius + 1), sigma * sigma
    weights = exp(-0.5 / variance * x**2)
    weights = weights / sum(weights)
    coefficients = [1.0]
    for _ in range(order):
        longer = [0.0] * (len(coefficients) + 1)
        for i, c in enumerate(coefficients):
            longer[i + 1] = longer[i + 1] - c / variance
            if i:
                longer[i - 1] = longer[i - 1] + i * c
        coefficients = longer
    if order:
        polynomial = coefficients[-1]
        for c in coefficients[-2::-1]:
            polynomial = polynomial * x + c
        weights = polynomial * weights
    return weights


@numpy_function(ndimage.gaussian_filter1d, "input", "sigma", "cval")
def gaussian_filter1d(
        input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *,
        radius=None) -> Any:
    """Filter lines along an axis by a Gaussian, as `scipy.ndimage.gaussian_filter1d`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import gaussian_filter1d
    >>> cytape.grad(lambda x: gaussian_filter1d(x, 1.0)[2])(np.ones(5)).round(3)
    array([0.058, 0.242, 0.399, 0.242, 0.058])
    """
    x, sigma, cval = together(operand(input), sigma, cval)
    weights = _kernel(sigma, order, _radius(sigma, truncate, radius))
    return correlate1d(x, weights[::-1], axis, output, mode, cval, 0)


@numpy_function(ndimage.gaussian_filter, "input", "sigma", "cval")
def gaussian_filter(
        input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None,
        axes=None) -> Any:
    """Filter an image by a Gaussian, as `scipy.ndimage.gaussian_filter`.

    Derivatives in the image, `sigma` and `cval`. In a graph, a symbolic `sigma` needs `radius`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import gaussian_filter
    >>> cytape.grad(lambda x: gaussian_filter(x, 1.0)[1, 1])(np.ones((3, 3))).round(3)
    array([[0.088, 0.121, 0.088],
           [0.121, 0.166, 0.121],
           [0.088, 0.121, 0.088]])
    """
    x, sigma, cval = together(operand(input), sigma, cval)
    axes = filtered_axes(axes, ndim(x))
    options = [one_for_each(value, len(axes)) for value in (sigma, order, mode, radius)]
    is_changed = False
    for axis, width, order_of_axis, mode_of_axis, n in zip(axes, *options, strict=True):
        value = values_of(width)
        if value is None or value > 1e-15:
            x = gaussian_filter1d(x, width, axis, order_of_axis, output, mode_of_axis, cval,
                                  truncate, radius=n)
            is_changed = True
    return x if is_changed else _unchanged(x, output)


def _derivative(theirs, input, axis, output, mode, cval, across):
    x, cval = together(operand(input), cval)
    axis = normalize_axis_index(axis, ndim(x))
    modes = one_for_each(mode, ndim(x))
    result = correlate1d(x, [-1, 0, 1], axis, output, modes[axis], cval)
    for other in range(ndim(x)):
        if other != axis:
            result = correlate1d(result, across, other, None, modes[other], cval)
    return result


@numpy_function(ndimage.sobel, "input", "cval")
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0) -> Any:
    """Return differences along an axis, smoothed across it, as `scipy.ndimage.sobel`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import sobel
    >>> cytape.grad(lambda x: sobel(x)[1, 1])(np.ones((3, 3)))
    array([[-1.,  0.,  1.],
           [-2.,  0.,  2.],
           [-1.,  0.,  1.]])
    """
    return _derivative(ndimage.sobel, input, axis, output, mode, cval, [1, 2, 1])


@numpy_function(ndimage.prewitt, "input", "cval")
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0) -> Any:
    """Return differences along an axis, summed across it, as `scipy.ndimage.prewitt`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import prewitt
    >>> cytape.grad(lambda x: prewitt(x)[1, 1])(np.ones((3, 3)))
    array([[-1.,  0.,  1.],
           [-1.,  0.,  1.],
           [-1.,  0.,  1.]])
    """
    return _derivative(ndimage.prewitt, input, axis, output, mode, cval, [1, 1, 1])


def _over_axes(x, axes, mode, output, derivative):
    """Return a function of each axis and its mode."""
    axes = filtered_axes(axes, ndim(x))
    modes = one_for_each(mode, len(axes))
    return [derivative(x, axis, output, mode_of_axis)
            for axis, mode_of_axis in zip(axes, modes, strict=True)]


def _total(x, output, parts):
    total = parts[0] if parts else _unchanged(x, output)
    for part in parts[1:]:
        total = total + part
    return total


@numpy_function(ndimage.laplace, "input", "cval")
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None) -> Any:
    """Return the Laplacian by second differences, as `scipy.ndimage.laplace`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import laplace
    >>> cytape.grad(lambda x: laplace(x)[1, 1])(np.ones((3, 3)))
    array([[ 0.,  1.,  0.],
           [ 1., -4.,  1.],
           [ 0.,  1.,  0.]])
    """
    x, cval = together(operand(input), cval)
    return _total(x, output, _over_axes(
        x, axes, mode, output, lambda x, axis, output, mode: correlate1d(
            x, [1, -2, 1], axis, output, mode, cval)))


def _gaussian_derivative(widths, order, cval, options):
    """Return a function that differentiates the filtered image along an axis."""
    def derivative(x, axis, output, mode):
        orders = [order if i == axis else 0 for i in range(ndim(x))]
        return gaussian_filter(x, widths, orders, output, mode, cval, **options)

    return derivative


@numpy_function(ndimage.gaussian_laplace, "input", "sigma", "cval")
def gaussian_laplace(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None,
                     **kwargs) -> Any:
    """Return the Laplacian by derivatives of a Gaussian, as `scipy.ndimage.gaussian_laplace`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import gaussian_laplace
    >>> cytape.grad(lambda x: gaussian_laplace(x, 1.0)[2])(np.ones(5)).round(3)
    array([ 0.197,  0.002, -0.399,  0.002,  0.197])
    """
    x, sigma, cval = together(operand(input), sigma, cval)
    along, widths = filtered_axes(axes, ndim(x)), [0] * ndim(x)
    for axis, width in zip(along, one_for_each(sigma, len(along)), strict=True):
        widths[axis] = width
    return _total(x, output, _over_axes(
        x, axes, mode, output, _gaussian_derivative(widths, 2, cval, kwargs)))


@numpy_function(ndimage.gaussian_gradient_magnitude, "input", "sigma", "cval")
def gaussian_gradient_magnitude(
        input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None,
                     **kwargs) -> Any:
    """Return the length of the gradient of the filtered image, as SciPy's function of that name.

    Where it is 0, the derivative is 0. As in SciPy, `sigma` smooths along all axes, also if `axes`
    selects some for the gradient.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import gaussian_gradient_magnitude
    >>> cytape.grad(lambda x: gaussian_gradient_magnitude(x, 1.0)[1])(np.arange(3.0)).round(3)
    array([-0.349,  0.   ,  0.349])
    """
    x, sigma, cval = together(operand(input), sigma, cval)
    parts = _over_axes(
        x, axes, mode, output, _gaussian_derivative(sigma, 1, cval, kwargs))
    if not parts:
        return _unchanged(x, output)
    if parts[0].dtype.kind == "f":
        return norm(stack(parts), axis=0)
    total = sum(stack([part * part for part in parts]), 0, parts[0].dtype)
    is_zero = total == 0
    return astype(where(is_zero, 0, sqrt(where(is_zero, 1, total))), total.dtype)
