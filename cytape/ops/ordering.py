"""Orders, positions and counts: functions with integer results, which have no gradient to lose."""

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.engine.arguments import with_out
from cytape.ops.engine.declare import nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims
from cytape.tensor.spec import spec_like, symbolic_spec

__all__ = [
    "argmax", "argmin", "argpartition", "argsort", "count_nonzero", "digitize", "lexsort",
    "nonzero", "searchsorted",
]  # fmt: skip

POSITIONS = np.dtype(np.intp)


def _sorted_spec(a, *, axis, **_):
    if axis is None:
        size = None if a.shape is None else shape_rules.product(a.shape)
        return symbolic_spec((size,), POSITIONS)
    if a.shape is not None:
        normalize_axis_index(axis, max(len(a.shape), 1))  # NumPy lets a 0-d array have an axis 0
    if a.shape == ():
        return symbolic_spec((1,), POSITIONS)
    return spec_like(a, POSITIONS)


def _lexsort_spec(*keys, axis):
    if len(keys) == 1:  # the keys are its rows
        return symbolic_spec(shape_rules.shape_of(keys[0], "lexsort")[1:], POSITIONS)
    return spec_like(keys[0], POSITIONS)


def _position_spec(x, *, axis, **attrs):
    return shape_rules.to_integers(x, None if axis is None else operator.index(axis), **attrs)


def _argpartition(a, *, kth, axis, kind, order):
    if type(a) is np.ndarray:  # of small ones the method takes half as long
        return a.argpartition(kth, axis, kind, order)
    return np.argpartition(a, kth, axis, kind, order)


argsort_op = nondifferentiable("ArgSort", np.argsort, shape_rule=_sorted_spec)
argpartition_op = nondifferentiable("ArgPartition", _argpartition, shape_rule=_sorted_spec)
lexsort_op = nondifferentiable(
    "LexSort",
    lambda *keys, axis: np.lexsort(keys[0] if len(keys) == 1 else keys, axis),
    shape_rule=_lexsort_spec,
)
searchsorted_op = nondifferentiable(
    "SearchSorted",
    lambda a, v, *sorter, side: np.searchsorted(a, v, side, *sorter),
    shape_rule=lambda a, v, *sorter, side: spec_like(v, POSITIONS),
)
digitize_op = nondifferentiable(
    "Digitize", np.digitize, shape_rule=lambda x, bins, *, right: spec_like(x, POSITIONS)
)
# One row of positions for each axis.
nonzero_op = nondifferentiable(
    "Nonzero",
    lambda a: tuple(np.nonzero(a)),
    shape_rule=lambda a: (symbolic_spec((None,), POSITIONS),)
    * len(shape_rules.shape_of(a, "nonzero")),
)
argmax_op = nondifferentiable("ArgMax", np.argmax, shape_rule=_position_spec)
argmin_op = nondifferentiable("ArgMin", np.argmin, shape_rule=_position_spec)
count_nonzero_op = nondifferentiable(
    "CountNonzero", np.count_nonzero, shape_rule=shape_rules.to_integers)


def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    """Return the positions that sort along an axis, as `numpy.argsort`.

    Examples
    --------
    >>> import cytape
    >>> np.argsort(cytape.constant([3.0, 1.0, 2.0])).numpy()
    array([1, 2, 0])
    """
    return argsort_op(a, axis=axis, kind=kind, order=order, stable=stable)


def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """Return the positions that partition along an axis, as `numpy.argpartition`.

    Examples
    --------
    >>> import cytape
    >>> int(np.argpartition(cytape.constant([3.0, 1.0, 2.0]), 0)[0])
    1
    """
    return argpartition_op(a, kth=kth, axis=axis, kind=kind, order=order)


def lexsort(keys, axis=-1):
    """Return the positions that sort by several keys, the last one first, as `numpy.lexsort`.

    Examples
    --------
    >>> import cytape
    >>> np.lexsort((cytape.constant([1.0, 0.0]), cytape.constant([2.0, 2.0]))).numpy()
    array([1, 0])
    """
    if isinstance(keys, tuple | list) and len(keys) > 1:
        return lexsort_op(*keys, axis=axis)
    rows = expand_dims(keys[0], 0) if isinstance(keys, tuple | list) and keys else keys
    return lexsort_op(rows, axis=axis)


def searchsorted(a, v, side="left", sorter=None):
    """Return where elements belong in a sorted array, as `numpy.searchsorted`.

    Examples
    --------
    >>> import cytape
    >>> int(np.searchsorted(cytape.constant([1.0, 2.0, 3.0]), 2.5))
    2
    """
    return searchsorted_op(a, v, *(() if sorter is None else (sorter,)), side=side)


def digitize(x, bins, right=False):
    """Return the bins that elements belong to, as `numpy.digitize`.

    Examples
    --------
    >>> import cytape
    >>> np.digitize(cytape.constant([0.5, 2.5]), [1.0, 2.0]).numpy()
    array([0, 2])
    """
    return digitize_op(x, bins, right=right)


def nonzero(a):
    """Return the positions of the elements that are not zero, as `numpy.nonzero`.

    Examples
    --------
    >>> import cytape
    >>> np.nonzero(cytape.constant([0.0, 2.0]))[0].numpy()
    array([1])
    """
    return nonzero_op(a)


def argmax(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first maximum, as `numpy.argmax`.

    Examples
    --------
    >>> import cytape
    >>> int(np.argmax(cytape.constant([1.0, 3.0, 2.0])))
    1
    """
    if out is not None:
        return with_out(np.argmax, out, a, axis=axis, keepdims=keepdims)
    return argmax_op(a, axis=axis, keepdims=keepdims)


def argmin(a, axis=None, out=None, *, keepdims=False):
    """Return the index of the first minimum, as `numpy.argmin`.

    Examples
    --------
    >>> import cytape
    >>> int(np.argmin(cytape.constant([2.0, 1.0, 3.0])))
    1
    """
    if out is not None:
        return with_out(np.argmin, out, a, axis=axis, keepdims=keepdims)
    return argmin_op(a, axis=axis, keepdims=keepdims)


def count_nonzero(a, axis=None, *, keepdims=False):
    """Count the elements that are not zero, as `numpy.count_nonzero`.

    Examples
    --------
    >>> import cytape
    >>> int(np.count_nonzero(cytape.constant([1.0, 0.0, 2.0])))
    2
    """
    return count_nonzero_op(a, axis=axis, keepdims=keepdims)


NUMPY_FUNCTIONS = {
    np.argmax: argmax,
    np.argmin: argmin,
    np.argpartition: argpartition,
    np.argsort: argsort,
    np.count_nonzero: count_nonzero,
    np.digitize: digitize,
    np.lexsort: lexsort,
    np.nonzero: nonzero,
    np.searchsorted: searchsorted,
}
