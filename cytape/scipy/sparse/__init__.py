"""Sparse matrices, differentiable in their values, with the names of `scipy.sparse`.

Called with arrays, the constructors return SciPy's matrices; with a tensor as the values, a
`SparseTensor`. Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.sparse as _scipys

from cytape.ops.sparse_matrices.sparse_constructors import *  # noqa: F403
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor as SparseTensor
from cytape.scipy.sparse import linalg as linalg


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
