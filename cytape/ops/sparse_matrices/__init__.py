"""Sparse matrices of `scipy.sparse` in products, solutions and eigenvalue problems.

An op takes the stored values as an operand; the positions are an attribute, a `Pattern`. Gradients
in the values are computed at these positions only.
"""

from cytape.ops.sparse_matrices import (  # noqa: F401
    iterative_solves,
    sparse_eigenvectors,
    sparse_products,
    sparse_solves,
)
