"""Common parts of functions of (stacks of) matrices: adjoints, triangles, specs.

Rules of derivatives are written with the adjoint, the conjugate transpose: the gradient G of a real
loss in A satisfies d loss = Re tr(G^H dA), see docs/conventions.md.
"""

from operator import matmul

import numpy as np
from numpy.linalg import LinAlgError

from cytape.ops import reductions
from cytape.ops.elementwise import absolute, where
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import tril
from cytape.ops.reductions import max_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import swapaxes


def transposed(x):
    """Return the transpose of matrices."""
    return x.mT if type(x) is np.ndarray else swapaxes(x, -1, -2)


def adjoint(x):
    """Return the conjugate transpose of matrices."""
    return conj_if_complex(transposed(x))


def hermitian_part(x):
    """Return the mean of matrices and their adjoints."""
    return (x + adjoint(x)) / 2


def lower_half(x):
    """Return the lower triangle of matrices, with half of the diagonal.

    A Hermitian matrix is the sum of this triangle and its adjoint.
    """
    return (tril(x) + tril(x, -1)) / 2


def columns(x):
    """Return vectors as rows, to multiply columns of matrices with."""
    return x[..., None, :]


def rows(x):
    """Return vectors as columns, to multiply rows of matrices with."""
    return x[..., :, None]


def in_matrix(x):
    """Return numbers as matrices of one element."""
    return (np.asarray(x) if type(x) is complex else x)[..., None, None]


def total(x):
    """Sum the elements of matrices; keep the axes."""
    return reductions.sum(x, (-2, -1), keepdims=True)


def is_negligible(x, w):
    """Return which values, or differences of values, are 0 up to rounding.

    w: the values, along the last axis, of which the largest sets the scale.
    """
    largest = max_op(absolute(w), axis=-1, keepdims=True, initial=0)
    if x.ndim > w.ndim:
        largest = largest[..., None]
    return absolute(x) <= 10 * np.finfo(w.dtype).eps * largest


def reciprocal(x, negligible):
    """Return 1/x, and 0 with derivatives of 0 where x is negligible."""
    if type(x) is np.ndarray:
        return np.divide(1, x, out=np.zeros(x.shape, x.dtype), where=~negligible)
    return where(negligible, 0, 1 / where(negligible, 1, x))


def reciprocal_differences(w):
    """Return 1/(w[j] - w[i]) at i, j, and 0 where the two are equal up to rounding."""
    differences = columns(w) - rows(w)
    return reciprocal(differences, is_negligible(differences, w))


def sum_of(terms):
    """Return the sum of the terms that are not None, None if all are."""
    terms = [term for term in terms if term is not None]
    return sum(terms[1:], terms[0]) if terms else None


# -- columns that were added to k others, perpendicular to them ------------------------------------


def first_gradient(x, g, k):
    """Return the gradient of the first columns, including contributions of the added ones."""
    first, added = x[..., :k], x[..., k:]
    return g[..., :k] - matmul(added, matmul(adjoint(g[..., k:]), first))


def added_tangent(x, t, k):
    """Return the tangent of all columns, given that of the first ones."""
    first, added = x[..., :k], x[..., k:]
    return concatenate([t, -matmul(first, matmul(adjoint(t), added))], -1)


# -- specs -----------------------------------------------------------------------------------------


def stacked_shape(spec, what):
    """Return the shape of (stacks of) matrices, or raise NumPy's error."""
    shape = shape_rules.shape_of(spec, what)
    if len(shape) < 2:
        raise LinAlgError(
            f"{len(shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    return shape


def square_shape(spec, what):
    """Return the shape of (stacks of) square matrices, or raise NumPy's error."""
    *stack, m, n = stacked_shape(spec, what)
    if shape_rules.differ(m, n):
        raise LinAlgError("Last 2 dimensions of the array must be square")
    side = n if m is None else m
    return (*stack, side, side)


def dtype_of(*specs):
    """Return the dtype that NumPy's functions of matrices compute in."""
    dtypes = [spec.dtype if spec.dtype.kind in "fc" else np.dtype(float) for spec in specs]
    for dtype in dtypes:
        if dtype.char not in "fdFD":
            raise TypeError(f"array type {dtype.name} is unsupported in linalg")
    return np.result_type(*dtypes)


def real_dtype(dtype):
    """Return the dtype of the real part."""
    return np.empty(0, dtype).real.dtype


def smaller(m, n):
    """Return the smaller of two extents, None if it is unknown."""
    return None if m is None or n is None else min(m, n)
