"""Products of vectors with vectors and matrices: `cross`, `matvec`, `vecmat`."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cytape.ops.adjoints.conform import as_operands
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.matrix_products import conj_if_complex, matmul_op
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, moveaxis, ndim, shape, squeeze
from cytape.ops.special_kernels import small_matrices
from cytape.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["cross", "matvec", "vecmat"]


def _cross_spec(a, b):
    lead = shape_rules.broadcast(a.shape[:-1], b.shape[:-1], what="cross")
    return symbolic_spec((*lead, 3), np.result_type(a.dtype, b.dtype))


def _cross(a, b):
    """Return `numpy.cross` of vectors along the last axes."""
    if a.dtype == b.dtype and a.dtype.char in "fd" and a.shape[-1] == b.shape[-1] == 3:
        return small_matrices.cross(a, b)
    return np.cross(a, b)


cross_op = multilinear(
    "Cross", _cross, lambda op, g, b: cross_op(b, g), lambda op, a, g: cross_op(g, a),
    core=(1, 1), shape_rule=_cross_spec)


@numpy_function(np.cross, "a", "b")
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None) -> Any:
    """Return the cross product of vectors, as `numpy.cross`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(lambda x: np.cross(x, [0.0, 1.0, 0.0])[2])(np.ones(3))
    array([1., 0., 0.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = together(*map(operand, (a, b)))
    if not ndim(a) or not ndim(b):
        raise ValueError("At least one array has zero dimension")
    axisa, axisb = (normalize_axis_index(i, ndim(x), name)
                    for i, x, name in ((axisa, a, "axisa"), (axisb, b, "axisb")))
    lengths = shape(a)[axisa], shape(b)[axisb]
    if any(n not in (2, 3, None) for n in lengths):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if lengths == (2, 2):
        np.cross([0, 0], [0, 0])  # NumPy's warning for vectors in the plane
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    c = cross_op(*[_in_space(x) for x in (a, b)])
    axisc = normalize_axis_index(axisc, ndim(c), "axisc")
    return c if axisc == ndim(c) - 1 else moveaxis(c, -1, axisc)


def _in_space(x):
    if shape(x)[-1] != 2:
        return x
    return np.pad(x, (*[(0, 0)] * (ndim(x) - 1), (0, 1)))


def _tensors(ufunc, x1, x2, kwargs):
    return together(*map(operand, as_operands(ufunc, (x1, x2), kwargs)))


def _mismatch(name, x1, x2, at1, at2):
    if not (ndim(x1) >= -at1 and ndim(x2) >= -at2) or shape_rules.differ(
            shape(x1)[at1], shape(x2)[at2]):
        raise ValueError(
            f"{name}: operands of shapes {shape(x1)} and {shape(x2)} do not fit each other")


def _fit(x1, x2, n_axes1, n_axes2, kwargs):
    """Return whether operands are one matrix and one vector that fit, by a quick check."""
    return type(x1) is type(x2) is Tensor and not kwargs and (
        x1.ndim == n_axes1 and x2.ndim == n_axes2 and None is not x1.shape[-1] == x2.shape[0])


def matvec(x1, x2, /, out=None, **kwargs) -> Any:
    """Multiply matrices with vectors, as `numpy.matvec`.

    Examples
    --------
    >>> import cytape
    >>> np.matvec(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]).numpy()
    array([3., 7.])
    """
    if out is not None or not any(map(is_tensor, (x1, x2))):
        return np.matvec(joined(x1), joined(x2), out, **kwargs)
    if not _fit(x1, x2, 2, 1, kwargs):
        x1, x2 = _tensors(np.matvec, x1, x2, kwargs)
        if ndim(x1) < 2:
            raise ValueError(f"matvec: the first operand must be a matrix, got shape {shape(x1)}")
        _mismatch("matvec", x1, x2, -1, -1)
    if ndim(x1) == 2 and ndim(x2) == 1:
        return matmul_op(x1, x2)
    return squeeze(matmul_op(x1, expand_dims(x2, -1)), -1)


def vecmat(x1, x2, /, out=None, **kwargs) -> Any:
    """Multiply the conjugates of vectors with matrices, as `numpy.vecmat`.

    Examples
    --------
    >>> import cytape
    >>> np.vecmat([1.0, 1.0], cytape.constant([[1.0, 2.0], [3.0, 4.0]])).numpy()
    array([4., 6.])
    """
    if out is not None or not any(map(is_tensor, (x1, x2))):
        return np.vecmat(joined(x1), joined(x2), out, **kwargs)
    if not _fit(x1, x2, 1, 2, kwargs) or x1.dtype.kind == "c":  # needs another op, for conjugation
        x1, x2 = _tensors(np.vecmat, x1, x2, kwargs)
        if ndim(x2) < 2:
            raise ValueError(f"vecmat: the second operand must be a matrix, got shape {shape(x2)}")
        _mismatch("vecmat", x1, x2, -1, -2)
    if ndim(x1) == 1 and ndim(x2) == 2:
        return matmul_op(conj_if_complex(x1), x2)
    return squeeze(matmul_op(expand_dims(conj_if_complex(x1), -2), x2), -2)
