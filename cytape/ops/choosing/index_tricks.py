"""Arrays written as indices: `r_[t, 1.0, 0:3]` and `c_[x, y]`."""

import numpy as np

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calculus.sequences import arange, linspace
from cytape.ops.calls.operands import MOST_AXES, is_tensor
from cytape.ops.creation import array, astype
from cytape.ops.joining import concatenate
from cytape.ops.shaping import expand_dims, ndim, swapaxes, transpose
from cytape.tensor.values.plain_arrays import plain_array

__all__ = ["c_", "r_"]


class _Concatenator:
    """Object that joins the items of an index, as NumPy's; with tensors the result is a tensor.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as cnp
    >>> cytape.grad(lambda t: cnp.r_[t, 1.0, t * t][2])(3.0)
    np.float64(6.0)
    >>> cnp.c_[cytape.constant([1.0, 2.0]), [3.0, 4.0]].numpy()
    array([[1., 3.],
           [2., 4.]])
    """

    def __init__(self, theirs, axis, ndmin, trans1d):
        self._theirs, self._directions = theirs, (axis, ndmin, trans1d)

    def __len__(self):
        return 0

    def __getitem__(self, key):
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(_holds_tensor, items)):
            return self._theirs[key]
        axis, ndmin, trans1d = self._directions
        if isinstance(items[0], str):
            axis, ndmin, trans1d = self._read(items[0])
            items = items[1:]
        if any(isinstance(item, str) for item in items):
            raise ValueError("special directives must be the first entry.")
        parts = together(*map(_value, items))
        dtype = np.result_type(*[
            x if isinstance(x, int | float | complex) else x.dtype for x in parts])
        return concatenate([
            _shaped(_cast(x, dtype), ndmin, trans1d, isinstance(item, slice))
            for x, item in zip(parts, items, strict=True)], axis=axis)

    def _read(self, directive):
        """Return the directives of a string: axis, least number of axes, position of new axes."""
        if directive in ("r", "c"):
            raise TypeError(
                f"the directive {directive!r} makes a numpy.matrix, which a tensor is not: leave "
                "it out, or write the axis and the number of axes, as in r_['1,2', x, y]")
        self._theirs[directive, np.empty((0,) * MOST_AXES)]  # raises NumPy's errors
        given = tuple(map(int, directive.split(",")))
        return (*given, *self._directions[len(given):])


def _holds_tensor(item):
    return is_tensor([item.start, item.stop, item.step] if isinstance(item, slice) else item)


def _value(item):
    """Return the array of an item of the index."""
    if not isinstance(item, slice):
        return item if type(item) in (int, float, complex) else (
            array(item) if is_tensor(item) else plain_array(item))
    first, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    if isinstance(step, complex):
        return linspace(first, item.stop, num=int(abs(step)))
    return arange(first, item.stop, step)


def _cast(x, dtype):
    if not is_tensor(x):
        return np.asarray(x, dtype)  # raises for Python numbers out of range
    return x if x.dtype == dtype else astype(x, dtype)


def _shaped(x, ndmin, trans1d, is_range):
    """Add axes to a part up to the least number, its own ones at the given position."""
    n = ndim(x)
    if n >= ndmin:
        return x
    x = expand_dims(x, tuple(range(ndmin - n)))
    if trans1d == -1:
        return x
    if is_range:
        return swapaxes(x, -1, trans1d)
    k2 = ndmin - n
    k1 = trans1d if trans1d >= 0 else trans1d + k2 + 1
    axes = list(range(ndmin))
    return transpose(x, axes[:k1] + axes[k2:] + axes[k1:k2])


r_ = _Concatenator(np.r_, 0, 1, -1)
c_ = _Concatenator(np.c_, -1, 2, 0)
