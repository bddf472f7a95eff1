"""Orders, positions and counts: functions with integer results, which are not differentiable."""

from typing import Any

import numpy as np

from cytape.ops.calls.operands import is_tensor, operand, plain, with_out
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, ndim, ravel, transpose
from cytape.tensor.values.spec import spec_like, symbolic_spec

__all__ = [
    "argmax", "argmin", "argpartition", "argsort", "argwhere", "count_nonzero", "digitize",
    "flatnonzero", "ix_", "lexsort", "nanargmax", "nanargmin", "nonzero", "ravel_multi_index",
    "searchsorted", "unravel_index",
]  # fmt: skip

POSITIONS = np.dtype(np.intp)


def _sorted_spec(a, *, axis, **_):
    if axis is None:
        size = None if a.shape is None else shape_rules.product(a.shape)
        return symbolic_spec((size,), POSITIONS)
    if a.shape is not None:
        np.cumsum(shape_rules.empty_of(a.shape or (0,)), axis)  # raises for an invalid axis
    if a.shape == ():
        return symbolic_spec((1,), POSITIONS)
    return spec_like(a, POSITIONS)


def _lexsort_spec(*keys, axis):
    np.lexsort([np.empty((1,) * len(key.shape or ())) for key in keys], axis)  # may raise
    if len(keys) == 1:  # the keys are its rows
        return symbolic_spec(shape_rules.shape_of(keys[0], "lexsort")[1:], POSITIONS)
    return spec_like(keys[0], POSITIONS)


def _position_op(name, forward):
    def rule(x, *, axis, **attrs):
        if x.shape is not None:
            forward(np.zeros((1,) * max(len(x.shape), 1)), axis)  # raises for an invalid axis
        return shape_rules.to_integers(x, axis, **attrs)

    return nondifferentiable(name, forward, shape_rule=rule, batch=batch_axis.along_lines)


def _argpartition(a, *, kth, axis, kind, order):
    if type(a) is np.ndarray:  # the method takes half the time for small ones
        return a.argpartition(kth, axis, kind, order)
    return np.argpartition(a, kth, axis, kind, order)


def _of_integers(indices):
    if indices.dtype.kind not in "iu":
        raise TypeError(f"only int indices permitted, got {indices.dtype}")
    return spec_like(indices, POSITIONS)


argsort_op = nondifferentiable("ArgSort", np.argsort,
    shape_rule=_sorted_spec, batch=batch_axis.along_lines)
argpartition_op = nondifferentiable("ArgPartition", _argpartition,
    shape_rule=_sorted_spec, batch=batch_axis.along_lines)
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
    "Digitize", np.digitize, shape_rule=lambda x, bins, *, right: spec_like(x, POSITIONS),
    batch=batch_axis.only(0),
)
# The result has one row of positions per axis.
nonzero_op = nondifferentiable(
    "Nonzero",
    lambda a: tuple(np.nonzero(a)),
    shape_rule=lambda a: (symbolic_spec((None,), POSITIONS),)
    * len(shape_rules.shape_of(a, "nonzero")),
)
argmax_op = _position_op("ArgMax", np.argmax)
argmin_op = _position_op("ArgMin", np.argmin)
nanargmax_op = _position_op("NanArgMax", np.nanargmax)
nanargmin_op = _position_op("NanArgMin", np.nanargmin)
unravel_index_op = nondifferentiable(
    "UnravelIndex",
    lambda indices, *, shape, order: tuple(np.unravel_index(indices, shape, order)),
    shape_rule=lambda indices, *, shape, **_: (_of_integers(indices),) * len(shape),
    batch=batch_axis.aligned)
ravel_multi_index_op = nondifferentiable(
    "RavelMultiIndex",
    lambda *indices, dims, mode, order: np.ravel_multi_index(indices, dims, mode, order),
    shape_rule=lambda *indices, **_: spec_like(
        shape_rules.broadcast_specs([_of_integers(x) for x in indices], "indices"), POSITIONS),
    batch=batch_axis.aligned)
count_nonzero_op = nondifferentiable(
    "CountNonzero", np.count_nonzero,
    shape_rule=shape_rules.to_integers, batch=batch_axis.along_axis)


def argsort(a, axis=-1, kind=None, order=None, *, stable=None) -> Any:
    """Return the positions that sort along an axis, as `numpy.argsort`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.argsort(cytape.constant([3.0, 1.0, 2.0])).numpy()
    array([1, 2, 0])
    """
    return argsort_op(a, axis=axis, kind=kind, order=order, stable=stable)


def argpartition(a, kth, axis=-1, kind="introselect", order=None) -> Any:
    """Return the positions that partition along an axis, as `numpy.argpartition`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> int(np.argpartition(cytape.constant([3.0, 1.0, 2.0]), 0)[0])
    1
    """
    return argpartition_op(a, kth=kth, axis=axis, kind=kind, order=order)


def lexsort(keys, axis=-1) -> Any:
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


def searchsorted(a, v, side="left", sorter=None) -> Any:
    """Return where elements belong in a sorted array, as `numpy.searchsorted`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> int(np.searchsorted(cytape.constant([1.0, 2.0, 3.0]), 2.5))
    2
    """
    return searchsorted_op(a, v, *(() if sorter is None else (sorter,)), side=side)


def digitize(x, bins, right=False) -> Any:
    """Return the bin of each element, as `numpy.digitize`.

    Examples
    --------
    >>> import cytape
    >>> np.digitize(cytape.constant([0.5, 2.5]), [1.0, 2.0]).numpy()
    array([0, 2])
    """
    return digitize_op(x, bins, right=right)


def nonzero(a) -> Any:
    """Return the positions of the elements that are not zero, as `numpy.nonzero`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> np.nonzero(cytape.constant([0.0, 2.0]))[0].numpy()
    array([1])
    """
    return nonzero_op(a)


def flatnonzero(a) -> Any:
    """Return the positions in the flattened array that are not zero, as `numpy.flatnonzero`.

    Examples
    --------
    >>> import cytape
    >>> np.flatnonzero(cytape.constant([[0.0, 2.0], [3.0, 0.0]])).numpy()
    array([1, 2])
    """
    return nonzero(ravel(a))[0]


@numpy_function(np.argwhere)
def argwhere(a) -> Any:
    """Return a row of indices for each element that is not zero, as `numpy.argwhere`.

    Examples
    --------
    >>> import cytape
    >>> np.argwhere(cytape.constant([[0.0, 2.0], [3.0, 0.0]])).numpy()
    array([[0, 1],
           [1, 0]])
    """
    return transpose(nonzero(a)) if ndim(a) else argwhere(ravel(a))[:, :0]


def unravel_index(indices, shape, order="C") -> Any:
    """Turn positions in the flattened array into indices for each axis, as `numpy.unravel_index`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 3.0], [2.0, 0.0]])
    >>> x[np.unravel_index(np.argmax(x), x.shape)]
    Tensor(3.)
    """
    shape = shape_rules.known_extents(shape, "indices for the")
    if not is_tensor(indices) or not shape:
        return np.unravel_index(plain(indices), shape, order)
    return unravel_index_op(indices, shape=shape, order=order)


@numpy_function(np.ravel_multi_index)
def ravel_multi_index(multi_index, dims, mode="raise", order="C") -> Any:
    """Turn indices for each axis into positions in the flattened array.

    See `numpy.ravel_multi_index`.

    Examples
    --------
    >>> import cytape
    >>> np.ravel_multi_index((cytape.constant([0, 1]), 1), (2, 3)).numpy()
    array([1, 4])
    """
    dims = shape_rules.known_extents(dims, "positions in the")
    if len(multi_index) != len(dims):
        raise ValueError(
            f"parameter multi_index must be a sequence of length {len(dims)}, got "
            f"{len(multi_index)} arrays")
    return ravel_multi_index_op(*multi_index, dims=dims, mode=mode, order=order)


@numpy_function(np.ix_)
def ix_(*args) -> Any:
    """Make an open mesh of indices from sequences, as `numpy.ix_`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[np.ix_(np.argsort(-x[:, 0]), [0])].numpy()
    array([[3.],
           [1.]])
    """
    parts = []
    for axis, x in enumerate(map(operand, args)):
        if ndim(x) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if x.shape == (0,):
            x = np.zeros(0, POSITIONS)  # not the floats of an empty list
        x = nonzero(x)[0] if x.dtype == bool else x
        others = [i for i in range(len(args)) if i != axis]
        parts.append(expand_dims(x, others))
    return tuple(parts)


def argmax(a, axis=None, out=None, *, keepdims=False) -> Any:
    """Return the index of the first maximum, as `numpy.argmax`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> int(np.argmax(cytape.constant([1.0, 3.0, 2.0])))
    1
    """
    if out is not None:
        return with_out(np.argmax, out, a, axis=axis, keepdims=keepdims)
    return argmax_op(a, axis=axis, keepdims=bool(keepdims))


def argmin(a, axis=None, out=None, *, keepdims=False) -> Any:
    """Return the index of the first minimum, as `numpy.argmin`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> int(np.argmin(cytape.constant([2.0, 1.0, 3.0])))
    1
    """
    if out is not None:
        return with_out(np.argmin, out, a, axis=axis, keepdims=keepdims)
    return argmin_op(a, axis=axis, keepdims=bool(keepdims))


def nanargmax(a, axis=None, out=None, *, keepdims=False) -> Any:
    """Return the index of the first maximum that is not NaN, as `numpy.nanargmax`.

    Examples
    --------
    >>> import cytape
    >>> int(np.nanargmax(cytape.constant([1.0, np.nan, 2.0])))
    2
    """
    if out is not None:
        return with_out(np.nanargmax, out, a, axis=axis, keepdims=keepdims)
    return nanargmax_op(a, axis=axis, keepdims=bool(keepdims))


def nanargmin(a, axis=None, out=None, *, keepdims=False) -> Any:
    """Return the index of the first minimum that is not NaN, as `numpy.nanargmin`.

    Examples
    --------
    >>> import cytape
    >>> int(np.nanargmin(cytape.constant([np.nan, 3.0, 2.0])))
    2
    """
    if out is not None:
        return with_out(np.nanargmin, out, a, axis=axis, keepdims=keepdims)
    return nanargmin_op(a, axis=axis, keepdims=bool(keepdims))


def count_nonzero(a, axis=None, *, keepdims=False) -> Any:
    """Count the elements that are not zero, as `numpy.count_nonzero`.

    Examples
    --------
    >>> import cytape
    >>> int(np.count_nonzero(cytape.constant([1.0, 0.0, 2.0])))
    2
    """
    return count_nonzero_op(a, axis=axis, keepdims=keepdims)
