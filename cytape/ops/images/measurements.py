"""Sums and moments of images, of all elements or of those with a label. Labels are constants."""

from typing import Any

import numpy as np
import scipy.ndimage as ndimage

from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import operand
from cytape.ops.elementwise import conjugate, sqrt
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.images.boundaries import known_shape
from cytape.ops.joining import concatenate, stack
from cytape.ops.reductions import sum
from cytape.ops.shaping import ravel
from cytape.ops.statistics.bin_counts import bincount

__all__ = ["center_of_mass", "mean", "standard_deviation", "sum_labels", "variance"]


class Groups:
    """Elements of an image with each of some labels; `places` is None for one group."""

    def __init__(self, shape, labels, index):
        self.mask = self.places = None
        if labels is None:
            self.count = int(np.prod(shape))
            return
        labels = np.broadcast_to(labels, shape)
        if index is None or np.isscalar(index):
            self.mask = labels > 0 if index is None else labels == index
            self.count = int(self.mask.sum())
            return
        unique, inverse = np.unique(index, return_inverse=True)
        self.n, self.inverse = len(unique), inverse.reshape(np.shape(index))
        places = np.searchsorted(unique, labels.ravel())
        is_found = np.append(unique, 0)[places] == labels.ravel()
        self.places = np.where(is_found & (places < self.n), places, self.n)
        self.counts = np.bincount(self.places, minlength=self.n + 1)[:self.n]
        self.count = self.counts[self.inverse]

    def sums(self, x):
        if self.places is None:
            return sum(x if self.mask is None else x[self.mask])
        return bincount(self.places, ravel(x), self.n + 1)[:self.n][self.inverse]

    def centred(self, x):
        """Return the difference of each element to the mean of its group."""
        if self.places is None:
            return x - self.sums(x) / self.count
        sums = bincount(self.places, ravel(x), self.n + 1)[:self.n]
        means = sums / np.maximum(self.counts, 1)
        return ravel(x) - concatenate([means, np.zeros(1)])[self.places]


def _grouped(input, labels, index):
    x = operand(input)
    shape = known_shape(x, "a measurement")
    if labels is not None and (all_shapes := np.broadcast_shapes(shape, np.shape(labels))) != shape:
        x, shape = broadcast_to(x, all_shapes), all_shapes
    return x, Groups(shape, labels, index)


@numpy_function(ndimage.sum_labels)
def sum_labels(input, labels=None, index=None) -> Any:
    """Return sums of elements by label, as `scipy.ndimage.sum_labels`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import sum_labels
    >>> cytape.grad(lambda x: sum_labels(x, [1, 2, 1], [1, 2])[0])(np.ones(3))
    array([1., 0., 1.])
    """
    x, groups = _grouped(input, labels, index)
    return groups.sums(x)


@numpy_function(ndimage.mean)
def mean(input, labels=None, index=None) -> Any:
    """Return means of elements by label, as `scipy.ndimage.mean`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import mean
    >>> cytape.grad(lambda x: mean(x, [1, 2, 1], 1))(np.ones(3))
    array([0.5, 0. , 0.5])
    """
    x, groups = _grouped(input, labels, index)
    return groups.sums(x) / groups.count


@numpy_function(ndimage.variance)
def variance(input, labels=None, index=None) -> Any:
    """Return variances of elements by label, as `scipy.ndimage.variance`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import variance
    >>> cytape.grad(variance)(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    x, groups = _grouped(input, labels, index)
    centred = groups.centred(x)
    return groups.sums(centred * conjugate(centred)) / groups.count


@numpy_function(ndimage.standard_deviation)
def standard_deviation(input, labels=None, index=None) -> Any:
    """Return standard deviations by label, as `scipy.ndimage.standard_deviation`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import standard_deviation
    >>> cytape.grad(standard_deviation)(np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    """
    return sqrt(variance(input, labels, index))


@numpy_function(ndimage.center_of_mass)
def center_of_mass(input, labels=None, index=None) -> Any:
    """Return centres of mass by label, as `scipy.ndimage.center_of_mass`.

    For a list of labels the coordinates are the last axis of a tensor.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.ndimage import center_of_mass
    >>> cytape.grad(lambda x: center_of_mass(x)[0])(np.ones(3))
    array([-0.33333333,  0.        ,  0.33333333])
    """
    x, groups = _grouped(input, labels, index)
    places = np.indices(operand(input).shape, float)  # 0 along axes that broadcast to the labels
    total = groups.sums(x)
    centre = [groups.sums(x * np.broadcast_to(place, x.shape)) / total for place in places]
    return stack(centre, -1) if np.ndim(index) else tuple(centre)
