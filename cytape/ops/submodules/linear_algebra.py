"""The functions of `numpy.linalg`: functions made of products, and the names of other modules."""

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from cytape.ops import matrix_products as products
from cytape.ops import rearranging, shaping
from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calculus import vector_products
from cytape.ops.calls.operands import joined, operand
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import nondifferentiable
from cytape.ops.matrix_products import matmul_op
from cytape.ops.shaping import ndim, shape
from cytape.ops.submodules import factorizations, least_squares, norms, solving, spectral
from cytape.ops.submodules.factorizations import *  # noqa: F403
from cytape.ops.submodules.least_squares import *  # noqa: F403
from cytape.ops.submodules.matrix_parts import square_shape
from cytape.ops.submodules.norms import *  # noqa: F403
from cytape.ops.submodules.solving import *  # noqa: F403
from cytape.ops.submodules.spectral import *  # noqa: F403
from cytape.tensor.values.spec import symbolic_spec

_FAMILIES = (factorizations, least_squares, norms, solving, spectral)
_OWN = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer",
    "tensordot", "trace", "vecdot",
]  # fmt: skip
__all__ = [*_OWN, *[name for family in _FAMILIES for name in family.__all__]]  # noqa: PLE0604


# -- powers and chains of products -----------------------------------------------------------------


def _identities(a):
    result = np.empty_like(a)
    result[...] = np.eye(a.shape[-1], dtype=a.dtype)
    return result


identities_op = nondifferentiable(
    "IdentityMatrices",
    forward=_identities,
    shape_rule=lambda a: symbolic_spec(square_shape(a, "matrix_power"), a.dtype),
    batch=batch_axis.stacked,
)


@numpy_function(np.linalg.matrix_power)
def matrix_power(a, n) -> Any:
    """Return powers of matrices, as `numpy.linalg.matrix_power`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.matrix_power(a, 3)[0, 0])(np.diag([2.0, 1.0]))
    array([[12.,  0.],
           [ 0.,  0.]])
    """
    a = joined(a)
    rows = len(square_shape(a, "matrix_power")) - 2
    a = with_extents(a, np.linalg.LinAlgError, "Last 2 dimensions of the array must be square",
                     same=[(rows, rows + 1)])
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    if n == 0:
        return identities_op(a)
    if n < 0:
        a, n = solving.inv(a), -n
    square, result = a, None
    while True:  # by the bits of n, from the lowest up
        n, bit = divmod(n, 2)
        if bit:
            result = square if result is None else matmul_op(result, square)
        if not n:
            return result
        square = matmul_op(square, square)


@lru_cache(maxsize=128)
def _cheapest_split(*lengths):
    """Return the best split of each part of a chain of products, by dynamic programming.

    Cormen et al., "Introduction to algorithms", chapter on matrix-chain multiplication.
    """
    n = len(lengths) - 1
    costs, splits = {(i, i): 0 for i in range(n)}, {}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            costs[i, j], splits[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                for k in range(i, j)
            )
    return splits


def _chain(arrays, splits, i, j):
    if i == j:
        return arrays[i]
    k = splits[i, j]
    return products.dot(_chain(arrays, splits, i, k), _chain(arrays, splits, k + 1, j))


@numpy_function(np.linalg.multi_dot, "arrays")
def multi_dot(arrays, *, out=None) -> Any:
    """Multiply a chain of matrices in the cheapest order, as `numpy.linalg.multi_dot`.

    If extents are unknown, from left to right.

    Examples
    --------
    >>> import cytape
    >>> a = cytape.constant(np.eye(2))
    >>> np.linalg.multi_dot([a, 2 * np.eye(2), np.ones(2)]).numpy()
    array([2., 2.])
    """
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    arrays = together(*map(operand, arrays))
    last = len(arrays) - 1
    if last == 1:
        return products.dot(*arrays)
    for i, x in enumerate(arrays):
        if ndim(x) != 2 and not (ndim(x) == 1 and i in (0, last)):
            raise np.linalg.LinAlgError(
                f"{ndim(x)}-dimensional array given. Array must be two-dimensional")
    inside = [x.shape[0] for x in arrays[1:]]
    first = arrays[0].shape[0] if ndim(arrays[0]) == 2 else 1
    width = arrays[-1].shape[1] if ndim(arrays[-1]) == 2 else 1
    lengths = [first, *inside, width]
    if None in lengths:
        splits = {(0, j): j - 1 for j in range(1, len(arrays))}
    else:
        splits = _cheapest_split(*lengths)
    return _chain(arrays, splits, 0, last)


# -- cross products --------------------------------------------------------------------------------


@numpy_function(np.linalg.cross, "x1", "x2")
def cross(x1, x2, /, *, axis=-1) -> Any:
    """Return cross products of vectors of three components, as `numpy.linalg.cross`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda x: np.linalg.cross(x, np.array([0.0, 1.0, 0.0]))[2])(np.ones(3))
    array([1., 0., 0.])
    """
    x1, x2 = map(operand, (x1, x2))
    lengths = [shape(x)[axis] for x in (x1, x2)]
    if any(n not in (3, None) for n in lengths):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{lengths[0]} and {lengths[1]} dimensional instead.")
    x1, x2 = [with_extents(
        x, ValueError, "Both input arrays must be (arrays of) 3-dimensional vectors.",
        like=np.zeros(3), same=[(axis, 0)]) for x in (x1, x2)]
    return vector_products.cross(x1, x2, axis=axis)


# -- functions that also exist in `numpy` ----------------------------------------------------------


@numpy_function(np.linalg.outer, "x1", "x2")
def outer(x1, x2, /) -> Any:
    """Return all products of elements of two vectors, as `numpy.linalg.outer`.

    Examples
    --------
    >>> import cytape
    >>> np.linalg.outer(cytape.constant([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([[3., 4.],
           [6., 8.]])
    """
    if ndim(x1) != 1 or ndim(x2) != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={ndim(x1)} and x2.ndim={ndim(x2)}."
        )
    return products.outer(x1, x2)


def diagonal(x, /, *, offset=0) -> Any:
    """Return the diagonals of matrices, as `numpy.linalg.diagonal`.

    Examples
    --------
    >>> import cytape
    >>> np.linalg.diagonal(cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([1., 4.])
    """
    return rearranging.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None) -> Any:
    """Sum along the diagonals of matrices, as `numpy.linalg.trace`.

    Examples
    --------
    >>> import cytape
    >>> float(np.linalg.trace(cytape.constant([[1.0, 2.0], [3.0, 4.0]])))
    5.0
    """
    return rearranging.trace(x, offset, -2, -1, dtype)


def matmul(x1, x2, /) -> Any:
    """Multiply matrices, as `numpy.linalg.matmul`.

    Examples
    --------
    >>> import cytape
    >>> np.linalg.matmul(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]).numpy()
    array([3., 7.])
    """
    return products.matmul(x1, x2)


def matrix_transpose(x, /) -> Any:
    """Transpose matrices, as `numpy.linalg.matrix_transpose`.

    Examples
    --------
    >>> import cytape
    >>> np.linalg.matrix_transpose(cytape.constant([[1.0, 2.0]])).shape
    (2, 1)
    """
    return shaping.matrix_transpose(x)


def tensordot(x1, x2, /, *, axes=2) -> Any:
    """Sum products over the given axes of two arrays, as `numpy.linalg.tensordot`.

    Examples
    --------
    >>> import cytape
    >>> a = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> np.linalg.tensordot(a, [1.0, 1.0], axes=1).numpy()
    array([3., 7.])
    """
    return products.tensordot(x1, x2, axes)


def vecdot(x1, x2, /, *, axis=-1) -> Any:
    """Sum the products of the conjugate of `x1` and `x2`, as `numpy.linalg.vecdot`.

    Examples
    --------
    >>> import cytape
    >>> np.linalg.vecdot(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), np.ones(2)).numpy()
    array([3., 7.])
    """
    return products.vecdot(x1, x2, axis=axis)
