"""Products of sparse matrices with vectors and dense matrices.

`product_op` computes A x, and with `transposed` A^T x. `sampled_op` computes the elements of u v^T
at the positions of a pattern, the gradient of a product in the values. Each is linear in both of
its operands, and the transposes of one are calls of the other.
"""

import numpy as np

from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.shaping import moveaxis, reshape
from cytape.tensor.values.spec import symbolic_spec


def _product(data, x, *, pattern, transposed=False):
    matrix = pattern.columns_matrix(data) if transposed else pattern.matrix(data)
    return matrix @ x


def _sampled(u, v, *, pattern):
    left, right = u.take(pattern.rows, 0), v.take(pattern.indices, 0)  # faster than an index
    return left * right if u.ndim == 1 else np.einsum("ij,ij->i", left, right)


def _product_spec(data, x, *, pattern, transposed=False):
    m, n = pattern.shape[::-1] if transposed else pattern.shape
    if x.ndim not in (1, 2) or x.shape[0] not in (n, None):
        raise ValueError(
            f"matmul: dimension mismatch with signature (n,k={n}),(k={x.shape[:1] or None},m)->"
            f"(n,m): a sparse matrix of shape {(m, n)} and an operand of shape {x.shape}")
    dtype = np.result_type(data.dtype, x.dtype)
    return symbolic_spec(  # SciPy computes with half precision in single
        (m, *x.shape[1:]), np.dtype(np.float32) if dtype == np.float16 else dtype)


def columns_in_batch(call):
    """Join a batch of dense operands, the second ones, to one with more columns."""
    data, x = call.inputs
    if call.mapped != [False, True] or call.extent is None or not call.input_specs[1].known:
        return NotImplemented
    moved = moveaxis(x, 0, -1)
    if moved.ndim == 2:
        return moveaxis(call.again([data, moved]), -1, 0)
    wide = call.again([data, reshape(moved, (moved.shape[0], -1))])
    return moveaxis(reshape(wide, (wide.shape[0], *moved.shape[1:])), -1, 0)


product_op = multilinear(
    "ScipySparseProduct", _product,
    lambda op, g, x: (
        sampled_op(x, g, pattern=op.attrs["pattern"]) if op.attrs["transposed"]
        else sampled_op(g, x, pattern=op.attrs["pattern"])),
    lambda op, data, g: product_op(
        data, g, pattern=op.attrs["pattern"], transposed=not op.attrs["transposed"]),
    batch=columns_in_batch, shape_rule=_product_spec)
sampled_op = multilinear(
    "ScipySparseSampledProduct", _sampled,
    lambda op, g, v: product_op(g, v, pattern=op.attrs["pattern"], transposed=False),
    lambda op, u, g: product_op(g, u, pattern=op.attrs["pattern"], transposed=True),
    shape_rule=lambda u, v, pattern: symbolic_spec(
        (pattern.size,), np.result_type(u.dtype, v.dtype)))
