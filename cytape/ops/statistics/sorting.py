"""Sorting: `sort`, `partition`, `unique` and similar functions.

Elements keep their derivatives when they are moved. The order of equal elements depends on the kind
of sort; `unique` takes the first one. The elements on each side of a partition are in the order of
`argpartition`, which NumPy leaves undefined.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.adjoints.line_elements import (
    lines_in_batch,
    put_elements,
    take_along,
    take_elements,
)
from cytape.ops.calls.operands import is_small, is_tensor, plain
from cytape.ops.creation import astype
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, multilinear, nondifferentiable
from cytape.ops.indexing import getitem, take
from cytape.ops.kernels.gather import are_alike
from cytape.ops.ordering import argpartition
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import moveaxis, ndim, ravel
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "partition", "sort", "sort_complex", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip


def _in_order(values, x, *, kind):
    if are_alike(values):
        return values
    return take_elements(values, np.argsort(x, kind=kind), unique=True)


def _out_of_order(values, x, *, kind):
    if are_alike(values):  # before the order is computed
        return values
    return put_elements(values, np.argsort(x, kind=kind), size=values.shape[-1], unique=True)


def _of_lines(values, x, **_):
    return symbolic_spec(values.shape, values.dtype)


# Linear op that applies the sorting permutation of x to a tensor, or its inverse.
in_order_op = multilinear(
    "InOrder", _in_order,
    lambda op, g, x: out_of_order_op(g, x, **op.attrs), None,
    shape_rule=_of_lines, batch=lines_in_batch)
out_of_order_op = multilinear(
    "OutOfOrder", _out_of_order,
    lambda op, g, x: in_order_op(g, x, **op.attrs), None,
    shape_rule=_of_lines, batch=lines_in_batch)
sort_op = general(
    "Sort", lambda x, *, kind: np.sort(x, kind=kind),
    vjp=lambda op, g: out_of_order_op(g, op.inputs[0], **op.attrs),
    jvp=lambda op, t: in_order_op(t, op.inputs[0], **op.attrs),
    batched=lambda op, t: in_order_op(t, op.inputs[0][None], **op.attrs),
    shape_rule=shape_rules.same,
    batch=batch_axis.stacked,
)  # fmt: skip


sort_complex_op = general(
    "SortComplex", np.sort_complex,
    vjp=lambda op, g: out_of_order_op(g, op.inputs[0], kind=None),
    jvp=lambda op, t: astype(
        in_order_op(t, op.inputs[0], kind=None), op.output_specs[0].dtype, copy=False),
    batched=lambda op, t: astype(
        in_order_op(t, op.inputs[0][None], kind=None), op.output_specs[0].dtype, copy=False),
    shape_rule=lambda a: spec_like(a, np.sort_complex(np.ones(1, a.dtype)).dtype),
    batch=batch_axis.stacked,
)  # fmt: skip


def _along_last(op, a, axis, **attrs):
    """Apply an op along an axis, or to the flattened array if it is None."""
    a = convert_to_tensor(a)
    if axis is None:
        a, axis = ravel(a), -1
    last = ndim(a) - 1
    if normalize_axis_index(axis, last + 1) == last:
        return op(a, **attrs)
    return moveaxis(op(moveaxis(a, axis, -1), **attrs), -1, axis)


@numpy_function(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None) -> Any:
    """Sort along an axis, as `numpy.sort`; each element keeps its derivative.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.sort(x) * np.arange(3)))(np.array([3.0, 1.0, 2.0]))
    array([2., 0., 1.])
    """
    if order is not None or (kind is not None and stable is not None):
        np.sort(np.empty(1, a.dtype), -1, kind, order, stable=stable)  # raises NumPy's error
    return _along_last(sort_op, a, axis, kind="stable" if stable else kind)


@numpy_function(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None) -> Any:
    """Move the k-th smallest elements to their sorted positions, as `numpy.partition`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.partition(x, 0)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    if order is not None or kind != "introselect":
        np.partition(np.empty(1, a.dtype), 0, -1, kind, order)
    return _along_last(_partition, a, axis, kth=plain(kth))


def _partition(a, kth):
    # A sort, to find where partitioning moved elements, would be many times slower.
    positions = argpartition(a, kth)
    if a.ndim == 1 and is_small(a):
        return a[positions]
    return take_along(a, positions, unique=True)


def sort_complex(a) -> Any:
    """Sort by the real part, then by the imaginary part, as `numpy.sort_complex`.

    Examples
    --------
    >>> import cytape
    >>> np.sort_complex(cytape.constant([2.0, 1.0])).numpy()
    array([1.+0.j, 2.+0.j])
    """
    return sort_complex_op(convert_to_tensor(a)) if is_tensor(a) else np.sort_complex(a)


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


def _first_places(ar, equal_nan):
    """Return the first position of each distinct element, in sorted order, as `numpy.unique`.

    Several times as fast as NumPy's, which uses a stable sort.
    """
    flat = ar.reshape(-1)
    if flat.dtype.kind != "f":
        return np.unique(flat, return_index=True, equal_nan=equal_nan)[1]
    order = np.argsort(flat)
    line = flat[order]
    n_numbers = line.size
    if n_numbers and np.isnan(line[-1]):
        n_numbers = np.searchsorted(line, line[-1])
        order[n_numbers:].sort()
    is_first = np.ones(line.size, bool)
    np.not_equal(line[1:], line[:-1], out=is_first[1:])
    if equal_nan:
        is_first[n_numbers + 1:] = False
    starts = np.flatnonzero(is_first)
    return order if starts.size == order.size else np.minimum.reduceat(order, starts)


def _from_first(t, ar, *, equal_nan, count):
    lead = t.shape[: t.ndim - ar.ndim]
    return t.reshape(*lead, ar.size)[..., _first_places(ar, equal_nan)]


def _to_first(values, ar, *, equal_nan):
    shape = values.shape[:-1] + ar.shape
    if values.shape[-1] == ar.size and are_alike(values):
        return values.reshape(shape)
    total = np.zeros((*values.shape[:-1], ar.size), values.dtype)
    total[..., _first_places(ar, equal_nan)] = values
    return total.reshape(shape)


# Linear op that takes the first of equal elements, or its transpose.
from_first_op = multilinear(
    "FromFirst", _from_first,
    lambda op, g, ar: to_first_op(g, ar, equal_nan=op.attrs["equal_nan"]), None,
    batched=lambda op, _, t, ar: from_first_op(t, ar, **op.attrs),
    shape_rule=lambda t, ar, *, count, **_: symbolic_spec(
        (*shape_rules.shape_of(t, "unique")[: t.ndim - ar.ndim], count), t.dtype))
to_first_op = multilinear(
    "ToFirst", _to_first,
    lambda op, g, ar: from_first_op(g, ar, **op.attrs, count=op.input_specs[0].shape[-1]), None,
    batched=lambda op, _, t, ar: to_first_op(t, ar, **op.attrs),
    shape_rule=lambda values, ar, **_: symbolic_spec(
        (*values.shape[:-1], *shape_rules.shape_of(ar, "unique")), values.dtype))


def _unique_jvp(op, t):
    return from_first_op(t, op.inputs[0], **op.attrs, count=op.output_specs[0].shape[0])


unique_op = general(
    "Unique", lambda ar, *, equal_nan: np.unique(ar, equal_nan=equal_nan),
    vjp=lambda op, g: to_first_op(g, op.inputs[0], **op.attrs),
    jvp=_unique_jvp, batched=_unique_jvp,
    shape_rule=lambda ar, **_: symbolic_spec((None,), ar.dtype),
)  # fmt: skip


def _unique(ar, axis=None, equal_nan=True):
    ar = convert_to_tensor(ar)
    index, inverse, counts = unique_positions_op(ar, axis=axis, equal_nan=equal_nan)
    values = getitem(ravel(ar), index) if axis is None else take(ar, index, int(axis))
    return values, index, inverse, counts


@numpy_function(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
           equal_nan=True, sorted=True) -> Any:
    """Return each element once, sorted, as `numpy.unique`.

    The gradient goes to the first of equal elements.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.sum(np.unique(x)))(np.array([2.0, 1.0, 2.0]))
    array([1., 1., 0.])
    """
    wanted = (return_index, return_inverse, return_counts)
    if axis is None and not any(wanted):
        return unique_op(convert_to_tensor(ar), equal_nan=equal_nan)
    values, *others = _unique(ar, axis, equal_nan)
    found = [other for other, asked in zip(others, wanted, strict=True) if asked]
    return (values, *found) if found else values


def _array_api(name, *places):
    """Make a function of the array API that returns some of the results of `_unique`."""
    numpy_function = getattr(np, name)
    result_type = type(numpy_function(np.zeros(1)))

    def function(x, /):
        if not is_tensor(x):
            return numpy_function(x)
        if places == (0,):
            return unique(x, equal_nan=False)
        results = _unique(x, equal_nan=False)
        found = [results[place] for place in places]
        return result_type(*found)

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
