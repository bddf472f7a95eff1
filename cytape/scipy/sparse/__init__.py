"""Sparse matrices, differentiable in their values, with the names of `scipy.sparse`.

Called with arrays, the constructors return SciPy's matrices; with a tensor as the values, a
`SparseTensor`, which has the operations of SciPy's arrays. Names without derivatives here are
SciPy's own; functions refuse a `SparseTensor`.
"""

from typing import Any as _Any

import scipy.sparse as _scipys

from cytape.ops.sparse_matrices.sparse_constructors import *  # noqa: F403
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor as SparseTensor
from cytape.ops.sparse_matrices.sparse_tensors import (
    without_sparse_tensors as _without_sparse_tensors,
)
from cytape.scipy.sparse import linalg as linalg

_OF_MATRICES = {
    "block_array", "block_diag", "bmat", "expand_dims", "find", "hstack", "kron", "kronsum",
    "permute_dims", "save_npz", "swapaxes", "tril", "triu", "vstack"}


def __getattr__(name: str) -> _Any:
    value = getattr(_scipys, name)
    return _without_sparse_tensors(value) if name in _OF_MATRICES else value


def __dir__() -> list[str]:
    return list(_scipys.__all__)
