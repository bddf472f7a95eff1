"""Sorted elements, and each of them once.

What is sorted is moved: an element keeps its derivative wherever it goes. Which one of equal
elements goes where is left to the kind of sort, and of those that `unique` finds it is the first.
The two parts that `partition` makes are those of `argpartition`, in an order that NumPy leaves
open.
"""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.creation import astype
from cytape.ops.engine.arguments import is_tensor, plain
from cytape.ops.engine.declare import general, nondifferentiable
from cytape.ops.indexing import getitem, take
from cytape.ops.ordering import argpartition, argsort
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis, ndim, ravel
from cytape.ops.shared.along_axis import put_along, take_along
from cytape.tensor import convert_to_tensor
from cytape.tensor.spec import spec_like, symbolic_spec

__all__ = [
    "partition", "sort", "sort_complex", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip


def _sort_vjp(op, g):
    order = argsort(op.inputs[0], kind=op.attrs["kind"])
    return put_along(g, order, op.input_specs[0], unique=True)


sort_op = general(
    "Sort", lambda x, *, kind: np.sort(x, kind=kind),
    vjp=_sort_vjp,
    jvp=lambda op, t: take_along(t, argsort(op.inputs[0], kind=op.attrs["kind"]), unique=True),
    batched=lambda op, t: take_along(
        t, argsort(op.inputs[0], kind=op.attrs["kind"])[None], unique=True),
    shape_rule=shape_rules.same,
)  # fmt: skip


def _along_last(op, a, axis, **attrs):
    """Apply an op of lines along an axis, or to all elements in one line where it is None."""
    a = convert_to_tensor(a)
    if axis is None:
        a, axis = ravel(a), -1
    last = ndim(a) - 1
    if normalize_axis_index(axis, last + 1) == last:
        return op(a, **attrs)
    return moveaxis(op(moveaxis(a, axis, -1), **attrs), -1, axis)


def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """Sort along an axis, as `numpy.sort`; each element keeps its derivative.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.sort(x) * np.arange(3)))(np.array([3.0, 1.0, 2.0]))
    array([2., 0., 1.])
    """
    if not is_tensor(a):
        return np.sort(a, axis, kind, order, stable=stable)
    if order is not None or (kind is not None and stable is not None):
        np.sort(np.empty(1, a.dtype), -1, kind, order, stable=stable)  # raises NumPy's error
    return _along_last(sort_op, a, axis, kind="stable" if stable else kind)


def partition(a, kth, axis=-1, kind="introselect", order=None):
    """Put the k-th smallest elements where sorting would, as `numpy.partition`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.partition(x, 0)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    if not is_tensor(a):
        return np.partition(a, kth, axis, kind, order)
    if order is not None or kind != "introselect":
        np.partition(np.empty(1, a.dtype), 0, -1, kind, order)
    return _along_last(_partition, a, axis, kth=plain(kth))


def _partition(a, kth):
    # Sorting, to find out what partitioning moved where, would take many times as long.
    return take_along(a, argpartition(a, kth), unique=True)


def sort_complex(a):
    """Sort by the real part, then by the imaginary part, as `numpy.sort_complex`.

    Examples
    --------
    >>> import cytape
    >>> np.sort_complex(cytape.constant([2.0, 1.0])).numpy()
    array([1.+0.j, 2.+0.j])
    """
    if not is_tensor(a):
        return np.sort_complex(a)
    a = sort(a)
    dtype = np.sort_complex(np.ones(1, a.dtype)).dtype
    return astype(a, dtype, copy=False)


# -- each element once -----------------------------------------------------------------------------


def _unique_specs(ar, *, axis, **_):
    shape = shape_rules.shape_of(ar, "unique")
    inverse = spec_like(ar, np.dtype(np.intp))
    if axis is not None:
        inverse = symbolic_spec((shape[normalize_axis_index(axis, len(shape))],), np.intp)
    positions = symbolic_spec((None,), np.intp)
    return positions, inverse, positions


unique_positions_op = nondifferentiable(
    "UniquePositions",
    lambda ar, *, axis, equal_nan: np.unique(ar, True, True, True, axis, equal_nan=equal_nan)[1:],
    shape_rule=_unique_specs,
)


def _unique(ar, axis=None, equal_nan=True):
    ar = convert_to_tensor(ar)
    index, inverse, counts = unique_positions_op(ar, axis=axis, equal_nan=equal_nan)
    values = getitem(ravel(ar), index) if axis is None else take(ar, index, axis)
    return values, index, inverse, counts


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
           equal_nan=True, sorted=True):
    """Return each element once, sorted, as `numpy.unique`.

    The gradient goes to the first of equal elements.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.unique(x)))(np.array([2.0, 1.0, 2.0]))
    array([1., 1., 0.])
    """
    if not is_tensor(ar):
        return np.unique(ar, return_index, return_inverse, return_counts, axis,
                         equal_nan=equal_nan, sorted=sorted)
    values, *others = _unique(ar, axis, equal_nan)
    wanted = (return_index, return_inverse, return_counts)
    found = [other for other, asked in zip(others, wanted, strict=True) if asked]
    return (values, *found) if found else values


def _array_api(name, *places):
    """Make the function of the array API that returns those of the results of `_unique`."""
    numpy_function = getattr(np, name)
    result_type = type(numpy_function(np.zeros(1)))

    def function(x, /):
        if not is_tensor(x):
            return numpy_function(x)
        results = _unique(x, equal_nan=False)
        found = [results[place] for place in places]
        return found[0] if len(places) == 1 else result_type(*found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return each element once, as `numpy.{name}`.

    Examples
    --------
    >>> import cytape
    >>> result = np.{name}(cytape.constant([2.0, 1.0, 2.0]))
    >>> {"result" if len(places) == 1 else "result.values"}.numpy()
    array([1., 2.])
    """
    return function


unique_all = _array_api("unique_all", 0, 1, 2, 3)
unique_counts = _array_api("unique_counts", 0, 3)
unique_inverse = _array_api("unique_inverse", 0, 2)
unique_values = _array_api("unique_values", 0)
