"""Products of matrices and vectors: `matmul`, `tensordot`, and functions made of these."""

import math
import operator
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.adjoints.conform import as_operands, identity_op
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand, with_out
from cytape.ops.creation import result_in_order
from cytape.ops.elementwise import conj, multiply
from cytape.ops.engine.matmul_op import MatMulOp
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import enter, linear, multilinear
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import (
    expand_dims,
    moveaxis,
    ndim,
    ravel,
    reshape,
    shape,
    squeeze,
    swapaxes,
    transpose,
)
from cytape.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot", "vecdot"]


def conj_if_complex(x):
    """Return the conjugate of `x`; a real `x` is returned without a copy."""
    return conj(x) if x.dtype.kind == "c" else x


# -- matmul --------------------------------------------------------------------------------------


def _matrix_transpose(matrix):
    return transpose(matrix) if matrix.ndim == 2 else swapaxes(matrix, -1, -2)


def _matmul_left(op, g, b):
    a_spec, b_spec = op.input_specs
    if b_spec.ndim == 1:
        return b * (g if a_spec.ndim == 1 else expand_dims(g, -1))
    if a_spec.ndim == 1 and b_spec.ndim > 2:
        g = expand_dims(g, -2)
    b = _matrix_transpose(b)
    return g * b if _is_outer(g, b) else matmul_op(g, b)


def _matmul_right(op, a, g):
    a_spec, b_spec = op.input_specs
    if a_spec.ndim == 1:
        return a * g if b_spec.ndim == 1 else expand_dims(a, -1) * expand_dims(g, -2)
    if a_spec.ndim > 2 and b_spec.ndim <= 2:  # one product instead of a sum of products
        if not (a_spec.known and b_spec.known):
            axes = tuple(range(a_spec.ndim - 1))
            return tensordot_op(a, g, axes=(axes, axes))
        rows = math.prod(a_spec.shape[:-1])
        a = reshape(a, (rows, a_spec.shape[-1]))
        g = reshape(g, (rows, *b_spec.shape[1:]))
    a = _matrix_transpose(a)
    return a * g if _is_outer(a, g) else matmul_op(a, g)


def _is_outer(columns, rows):
    """Return whether these are stacks of outer products, which BLAS computes slowly."""
    return max(columns.ndim, rows.ndim) > 2 and columns.shape[-1] == rows.shape[-2] == 1


def _matmul_in_batch(call):
    """Multiply stacks; vectors are treated as matrices of one row or column."""
    ndims = [spec.ndim for spec in call.input_specs]
    matrices = []
    for i, vector in enumerate([(None, Ellipsis), (Ellipsis, None)]):
        ones = (None,) * (max(*ndims, 2) - max(ndims[i], 2))
        many = (slice(None), *ones) if call.mapped[i] else ()
        matrices.append(call.inputs[i][(*many, *(vector if ndims[i] == 1 else (Ellipsis,)))])
    row, column = [0 if ndim == 1 else slice(None) for ndim in ndims]
    return matmul_op(*matrices)[..., row, column]


matmul_op = enter(MatMulOp(
    "MatMul", np.matmul, (_matmul_left, _matmul_right), core=(2, 2),
    shape_rule=shape_rules.matmul)).described(
        batch=_matmul_in_batch, is_product=True,
        work=lambda x, y, out: math.prod(out) * x[-1])


def matmul(x1, x2, /, out=None, **kwargs) -> Any:
    """Multiply matrices, as `numpy.matmul`.

    Examples
    --------
    >>> import cytape
    >>> np.matmul(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0]).numpy()
    array([3., 7.])
    """
    if out is not None or not any(map(is_tensor, (x1, x2))):
        return np.matmul(joined(x1), joined(x2), out, **kwargs)
    result = matmul_op(*as_operands(np.matmul, (x1, x2), kwargs))
    return result_in_order(result, kwargs.get("order"), (x1, x2))


# -- tensordot -----------------------------------------------------------------------------------


def _tensordot_transpose(i, op, *factors):
    axes, free = op.attrs["axes"], _free_axes(op)
    split, n_axes = len(free[0]), len(free[0]) + len(free[1])
    summed = [(tuple(range(split, n_axes)), free[1]), (free[0], tuple(range(split)))][i]
    gradient = tensordot_op(*factors, axes=summed) if n_axes else multiply(*factors)
    # The free axes of the other operand keep their order.
    left = [axes[i][k] for k in _places_in_order(axes[1 - i])]
    order = [*free[0], *left] if i == 0 else [*left, *free[1]]
    return transpose(gradient, _places_in_order(order))


def _places_in_order(axes):
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _free_axes(op):
    """Return the axes of each operand that are not summed."""
    return [
        tuple([axis for axis in range(spec.ndim) if axis not in axes])
        for spec, axes in zip(op.input_specs, op.attrs["axes"], strict=True)
    ]


def _tensordot_in_batch(call):
    (a, b), axes, free = call.inputs, call.attrs["axes"], _free_axes(call)
    if not all(call.mapped):
        place, later = call.mapped.index(True), list(axes)
        later[place] = tuple([axis + 1 for axis in axes[place]])
        product = tensordot_op(a, b, axes=tuple(later))
        return product if place == 0 else moveaxis(product, len(free[0]), 0)
    # Free axes are joined to one axis, summed axes to another: a product of matrices.
    shapes = [spec.shape for spec in call.input_specs]
    if not all(spec.known for spec in (*call.input_specs, a.spec, b.spec)):
        return NotImplemented
    size = math.prod([shapes[0][axis] for axis in axes[0]])
    matrices = []
    for i, x in enumerate((a, b)):
        order = (*free[i], *axes[i]) if i == 0 else (*axes[i], *free[i])
        rows = math.prod([shapes[i][axis] for axis in free[i]])
        moved = transpose(x, (0, *[axis + 1 for axis in order]))
        matrices.append(reshape(moved, (x.shape[0], *((rows, size) if i == 0 else (size, rows)))))
    left = [shapes[i][axis] for i in (0, 1) for axis in free[i]]
    return reshape(matmul_op(*matrices), (a.shape[0], *left))


tensordot_op = multilinear(
    "Tensordot", np.tensordot, partial(_tensordot_transpose, 0), partial(_tensordot_transpose, 1),
    shape_rule=shape_rules.tensordot, batch=_tensordot_in_batch, is_product=True)


def tensordot(a, b, axes=2) -> Any:
    """Sum products over the given axes of two arrays, as `numpy.tensordot`.

    Examples
    --------
    >>> import cytape
    >>> np.tensordot(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), [1.0, 1.0], axes=1).numpy()
    array([3., 7.])
    """
    axes = _contracted_axes(ndim(a), ndim(b), axes)
    types = {type(a), type(b)}
    usual = Tensor in types and types <= {Tensor, np.ndarray}
    if usual and max(ndim(a), ndim(b)) <= 2 and len(axes[0]) == len(axes[1]) == 1:
        (i,), (j,) = axes
        length = shape(a)[i]
        if length is not None and length == shape(b)[j]:
            a, b = together(a, b)
            return matmul_op(
                a if i == ndim(a) - 1 else transpose(a), transpose(b) if j else b)
    every = tuple(range(ndim(a)))
    if usual and axes == (every, every) and shape(a) == shape(b) and None not in shape(a):
        a, b = together(a, b)
        return matmul_op(_as_line(a), _as_line(b))
    return tensordot_op(*_with_dtypes(a, b), axes=axes)


def _with_dtypes(*operands):
    """Return operands, numbers of Python as arrays: these have a dtype, unlike in a * b."""
    return [np.asarray(x) if type(x) in (bool, int, float, complex) else x for x in operands]


def _contracted_axes(a_ndim, b_ndim, axes):
    """Return the summed axes of both operands as two tuples of non-negative numbers."""
    try:
        a_axes, b_axes = axes
    except TypeError:
        count = operator.index(axes)
        a_axes, b_axes = range(-count, 0), range(count)
    return (
        normalize_axis_tuple(a_axes, a_ndim, allow_duplicate=True),
        normalize_axis_tuple(b_axes, b_ndim, allow_duplicate=True),
    )


# -- products made of the above ------------------------------------------------------------------


@numpy_function(np.dot, "a", "b")
def dot(a, b, out=None) -> Any:
    """Multiply two arrays, as `numpy.dot`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> float(np.dot(cytape.constant([1.0, 2.0]), [3.0, 4.0]))
    11.0
    """
    if ndim(a) == 0 or ndim(b) == 0:
        return multiply(*_with_dtypes(a, b))
    if ndim(b) <= 2:
        return matmul_op(a, b)
    return tensordot(a, b, axes=(-1, -2))


@numpy_function(np.inner, "a", "b")
def inner(a, b, /) -> Any:
    """Sum products over the last axes, as `numpy.inner`.

    Examples
    --------
    >>> import cytape
    >>> float(np.inner(cytape.constant([1.0, 2.0]), [3.0, 4.0]))
    11.0
    """
    if ndim(a) == 0 or ndim(b) == 0:
        return multiply(*_with_dtypes(a, b))
    if ndim(a) == ndim(b) == 1:
        return matmul_op(a, b)
    return tensordot(a, b, axes=(-1, -1))


def outer(a, b, out=None) -> Any:
    """Return all products of an element of `a` and an element of `b`, as `numpy.outer`.

    Examples
    --------
    >>> import cytape
    >>> np.outer(cytape.constant([1.0, 2.0]), [3.0, 4.0]).numpy()
    array([[3., 4.],
           [6., 8.]])
    """
    if out is not None:
        return with_out(np.outer, out, a, b)
    a, b = together(a, b)
    return multiply(expand_dims(_as_line(a), 1), expand_dims(_as_line(b), 0))


def _as_line(x):
    """Return an array with its elements along one axis."""
    return x if type(x) is Tensor and x.shape is not None and len(x.shape) == 1 else ravel(x)


def vdot(a, b, /) -> Any:
    """Sum the products of the conjugate of `a` and `b` over all elements, as `numpy.vdot`.

    Examples
    --------
    >>> import cytape
    >>> complex(np.vdot(cytape.constant([1.0 + 1.0j]), [1.0j]))
    (1+1j)
    """
    a, b = together(a, b)
    return matmul_op(conj_if_complex(_as_line(a)), _as_line(b))


def vecdot(x1, x2, /, out=None, *, axis=-1, **kwargs) -> Any:
    """Sum the products of the conjugate of `x1` and `x2` over an axis, as `numpy.vecdot`.

    Examples
    --------
    >>> import cytape
    >>> np.vecdot(cytape.constant([[1.0, 2.0], [3.0, 4.0]]), np.ones(2)).numpy()
    array([3., 7.])
    """
    if out is not None or not any(map(is_tensor, (x1, x2))):
        return np.vecdot(joined(x1), joined(x2), out, axis=axis, **kwargs)  # type: ignore[call-overload]
    x1, x2 = together(*map(operand, as_operands(np.vecdot, (x1, x2), kwargs)))
    axis = operator.index(axis)
    if ndim(x1) == ndim(x2) == 1 and axis in (0, -1):
        return matmul_op(conj_if_complex(x1), x2)
    rows = expand_dims(conj_if_complex(moveaxis(x1, axis, -1)), -2)
    columns = expand_dims(moveaxis(x2, axis, -1), -1)
    result = squeeze(matmul_op(rows, columns), (-2, -1))
    return result_in_order(result, kwargs.get("order"), (x1, x2))


@numpy_function(np.kron, "a", "b")
def kron(a, b) -> Any:
    """Return the Kronecker product, as `numpy.kron`.

    Examples
    --------
    >>> import cytape
    >>> np.kron(cytape.constant([1.0, 10.0]), [1.0, 2.0]).numpy()
    array([ 1.,  2., 10., 20.])
    """
    a, b = together(a, b)
    if ndim(a) == ndim(b) == 1:
        return identity_op(reshape(outer(a, b), -1))
    length = max(ndim(a), ndim(b))
    lead_a, lead_b = length - ndim(a), length - ndim(b)
    a = expand_dims(a, (*range(2 * lead_a), *range(2 * lead_a + 1, 2 * length, 2)))
    b = expand_dims(b, (*range(2 * lead_b), *range(2 * lead_b, 2 * length, 2)))
    product = multiply(a, b)
    return merge_pairs_op(product) if None in shape(product) else identity_op(_merge_pairs(product))


def _merge_pairs(x):
    return x.reshape([n * m for n, m in zip(x.shape[::2], x.shape[1::2], strict=True)])


merge_pairs_op = linear(
    "MergePairs",
    _merge_pairs,
    transpose=lambda op, g: reshape(g, op.input_specs[0].extents),
    shape_rule=lambda x: symbolic_spec(
        [shape_rules.product(pair) for pair in zip(x.shape[::2], x.shape[1::2], strict=True)],
        x.dtype,
    ),
)
