"""Grey morphology of images: erosion and dilation, and what consists of them.

The extremum of a window, with a structure subtracted or added, has the derivative of its first
element.
"""

from typing import Any

import numpy as np
import scipy.ndimage as ndimage

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, operand
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.images.boundaries import computed, filtered_axes, one_for_each
from cytape.ops.images.rank_filters import (
    choose,
    expanded,
    maximum_filter,
    minimum_filter,
    origins_of,
)
from cytape.ops.rearranging import flip
from cytape.ops.shaping import expand_dims, ndim

__all__ = [
    "black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening",
    "morphological_gradient", "morphological_laplace", "white_tophat"]


def _operands(theirs, x, size, footprint, structure, mode, cval, origin, axes):
    """Return the tensors and arrays among the arguments, or raise SciPy's errors."""
    x, structure, cval = together(
        operand(x), None if structure is None else operand(structure), cval)
    theirs(np.ones((1,) * ndim(x), x.dtype), size, footprint,
           None if structure is None else np.zeros(structure.shape), None, mode, 0.0, origin,
           axes=axes)
    return x, structure, cval


def _extremum(of_flat, rank, x, size, footprint, structure, output, mode, cval, origin, axes):
    if structure is None:
        return of_flat(x, size, footprint, output, mode, cval, origin, axes=axes)
    axes = filtered_axes(axes, ndim(x))
    footprint = np.ones(structure.shape, bool) if footprint is None else footprint
    missing = tuple([i for i in range(ndim(x)) if i not in axes])
    return choose(
        x, expanded(np.asarray(footprint, bool), axes, ndim(x)), rank, output, mode, cval,
        origins_of(origin, axes, ndim(x)), expand_dims(structure, missing))


@numpy_function(ndimage.grey_erosion, "input", "structure", "cval")
def grey_erosion(input, size=None, footprint=None, structure=None, output=None, mode="reflect",
                 cval=0.0, origin=0, *, axes=None) -> Any:
    """Return minima of windows less a structure, as `scipy.ndimage.grey_erosion`.

    Derivatives in the image, the structure and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import grey_erosion
    >>> cytape.grad(lambda x: grey_erosion(x, 3)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    x, structure, cval = _operands(
        ndimage.grey_erosion, input, size, footprint, structure, mode, cval, origin, axes)
    return _extremum(
        minimum_filter, 0, x, size, footprint, structure, output, mode, cval, origin, axes)


@numpy_function(ndimage.grey_dilation, "input", "structure", "cval")
def grey_dilation(input, size=None, footprint=None, structure=None, output=None, mode="reflect",
                  cval=0.0, origin=0, *, axes=None) -> Any:
    """Return maxima of windows plus a structure, as `scipy.ndimage.grey_dilation`.

    Derivatives in the image, the structure and `cval`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import grey_dilation
    >>> cytape.grad(lambda x: grey_dilation(x, 3)[1])(np.array([3.0, 1.0, 2.0]))
    array([1., 0., 0.])
    """
    x, structure, cval = _operands(
        ndimage.grey_dilation, input, size, footprint, structure, mode, cval, origin, axes)
    n = len(filtered_axes(axes, ndim(x)))
    footprint = None if footprint is None else np.flip(np.asarray(footprint))
    structure = None if structure is None else flip(structure)
    form = footprint if footprint is not None else structure
    sizes = one_for_each(size, n) if form is None else form.shape
    origins = [-k - (m % 2 == 0) for k, m in zip(one_for_each(origin, n), sizes, strict=False)]
    return _extremum(
        maximum_filter, -1, x, size, footprint, structure, output, mode, cval, origins, axes)


def _composed(name, function, takes_dtype=True):
    """Declare a function of an image, its erosion and its dilation.

    Those of SciPy that do not take a dtype as `output` ignore it.
    """
    def composition(input, size=None, footprint=None, structure=None, output=None, mode="reflect",
                    cval=0.0, origin=0, *, axes=None) -> Any:
        x = operand(input)
        result = function(x, *[
            lambda x, extremum=extremum: extremum(
                x, size, footprint, structure, None, mode, cval, origin, axes=axes)
            for extremum in (grey_erosion, grey_dilation)])
        if not (takes_dtype or isinstance(output, np.ndarray) or is_tensor(output)):
            output = None
        return result if output is None else computed(lambda result: result, result, output)

    composition.__name__ = composition.__qualname__ = name
    composition.__doc__ = f"""Compose erosion and dilation, as `scipy.ndimage.{name}`.

    Derivatives are those of `grey_erosion` and `grey_dilation`.
    """
    return numpy_function(getattr(ndimage, name), "input", "structure", "cval")(composition)


grey_opening = _composed("grey_opening", lambda x, eroded, dilated: dilated(eroded(x)))
grey_closing = _composed("grey_closing", lambda x, eroded, dilated: eroded(dilated(x)))
morphological_gradient = _composed(
    "morphological_gradient", lambda x, eroded, dilated: dilated(x) - eroded(x), False)
morphological_laplace = _composed(
    "morphological_laplace", lambda x, eroded, dilated: dilated(x) + eroded(x) - x - x,
    False)
white_tophat = _composed("white_tophat", lambda x, eroded, dilated: x - dilated(eroded(x)))
black_tophat = _composed("black_tophat", lambda x, eroded, dilated: eroded(dilated(x)) - x)
