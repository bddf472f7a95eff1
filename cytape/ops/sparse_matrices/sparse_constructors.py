"""Constructors of sparse matrices by SciPy's names, with a tensor as the values."""

from typing import Any

import numpy as np
import scipy.sparse as sparse

from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.joining import concatenate, stack
from cytape.ops.shaping import ndim
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor, from_compressed, from_elements
from cytape.tensor import Tensor, convert_to_tensor

__all__ = ["coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix",
           "diags", "diags_array"]


def _values(name, data, dtype):
    data = convert_to_tensor(joined(data))
    if ndim(data) != 1:
        raise ValueError(f"{name}: the values must be a vector, got shape {data.shape}")
    return data if dtype is None else data.astype(dtype)


def _parts(name, arg1, shape, dtype):
    """Return the parts of a constructor's argument, or None if it holds no tensor."""
    if isinstance(arg1, SparseTensor):
        return arg1 if dtype is None else SparseTensor(arg1.data.astype(dtype), arg1.pattern)
    if is_tensor(arg1) and not isinstance(arg1, tuple):
        raise TypeError(
            f"{name} of a dense tensor: which elements are stored would depend on its values. Pass "
            "the values and their positions, as (values, (rows, columns))")
    if not isinstance(arg1, tuple) or not arg1 or not is_tensor(arg1[0]):
        if isinstance(arg1, tuple) and any(map(is_tensor, arg1[1:])):
            raise TypeError(f"{name}: positions must be arrays of integers, not tensors")
        return None
    if len(arg1) == 2:
        rows, cols = map(np.asarray, arg1[1])
        if shape is None:
            shape = int(rows.max()) + 1, int(cols.max()) + 1
        return from_elements(_values(name, arg1[0], dtype), rows, cols, tuple(shape))
    return None


def _constructor(name, transposed=None):
    theirs = getattr(sparse, name)

    def constructor(arg1, shape=None, dtype=None, copy=False, **options):
        found = _parts(name, arg1, shape, dtype)
        if found is not None:
            return found
        if transposed is None or not (
                isinstance(arg1, tuple) and len(arg1) == 3 and is_tensor(arg1[0])):
            return theirs(arg1, shape, dtype, copy, **options)
        data, (_, indices, indptr) = _values(name, arg1[0], dtype), arg1
        if not transposed:
            return from_compressed(data, indices, indptr, shape)
        return from_compressed(
            data, indices, indptr, None if shape is None else tuple(shape)[::-1]).T

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__module__ = __name__
    constructor.__doc__ = (
        f"Return a sparse matrix, as `scipy.sparse.{name}`; of a tensor's values a SparseTensor.")
    return constructor


csr_array, csr_matrix = _constructor("csr_array", False), _constructor("csr_matrix", False)
csc_array, csc_matrix = _constructor("csc_array", True), _constructor("csc_matrix", True)
coo_array, coo_matrix = _constructor("coo_array"), _constructor("coo_matrix")


def _diagonals(diagonals, offsets, shape, dtype):
    offsets = np.atleast_1d(offsets)
    if isinstance(diagonals, Tensor) and ndim(diagonals) == 1:
        diagonals = [diagonals]
    diagonals = [convert_to_tensor(joined(d)) for d in diagonals]
    if len(diagonals) > 1 and all(d.ndim == 0 for d in diagonals) and offsets.size == 1:
        diagonals = [stack(diagonals)]
    diagonals = [d.reshape(1) if d.ndim == 0 else d for d in diagonals]
    if len(diagonals) != offsets.size:
        raise ValueError("Different number of diagonals and offsets.")
    if shape is None:
        side = diagonals[0].shape[0] + abs(int(offsets[0]))
        shape = side, side
    values, rows, cols = [], [], []
    for d, k in zip(diagonals, map(int, offsets), strict=True):
        start, length = max(-k, 0), min(shape[0] + min(k, 0), shape[1] - max(k, 0))
        if length < 0:
            raise ValueError(f"Offset {k} (index {len(rows)}) out of bounds")
        if d.shape[0] not in (length, 1):
            raise ValueError(
                f"Diagonal length (index {len(rows)}: {d.shape[0]} at offset {k}) does not agree "
                f"with array size ({shape[0]}, {shape[1]}).")
        values.append(d if d.shape[0] == length else d * np.ones(length, d.dtype))
        rows.append(np.arange(start, start + length))
        cols.append(rows[-1] + k)
    return from_elements(
        _values("diags", concatenate(values), dtype), np.concatenate(rows), np.concatenate(cols),
        tuple(shape))


def diags_array(diagonals, /, *, offsets=0, shape=None, format=None, dtype=None) -> Any:  # noqa: A002
    """Return a matrix of its diagonals, as `scipy.sparse.diags_array`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.sparse import diags_array
    >>> diags_array([cytape.constant([1.0, 2.0]), [3.0]], offsets=[0, 1]).toarray().numpy()
    array([[1., 3.],
           [0., 2.]])
    """
    if is_tensor(diagonals):
        return _diagonals(diagonals, offsets, shape, dtype)
    given = {} if dtype is None else {"dtype": dtype}
    return sparse.diags_array(diagonals, offsets=offsets, shape=shape, format=format, **given)


def diags(diagonals, offsets=0, shape=None, format=None, dtype=None) -> Any:  # noqa: A002
    """Return a matrix of its diagonals, as `scipy.sparse.diags`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.sparse import diags
    >>> diags(cytape.constant([1.0, 2.0])).diagonal().numpy()
    array([1., 2.])
    """
    if is_tensor(diagonals):
        return _diagonals(diagonals, offsets, shape, dtype)
    given = {} if dtype is None else {"dtype": dtype}
    return sparse.diags(diagonals, offsets, shape, format, **given)
