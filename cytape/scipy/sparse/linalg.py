"""Sparse linear algebra, differentiable, with the names of `scipy.sparse.linalg`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.sparse.linalg as _scipys

from cytape.ops.sparse_matrices.dense_advice import *  # noqa: F403
from cytape.ops.sparse_matrices.iterative_solves import *  # noqa: F403
from cytape.ops.sparse_matrices.sparse_eigenvectors import *  # noqa: F403
from cytape.ops.sparse_matrices.sparse_solves import factorized as factorized
from cytape.ops.sparse_matrices.sparse_solves import splu as splu
from cytape.ops.sparse_matrices.sparse_solves import spsolve as spsolve


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
