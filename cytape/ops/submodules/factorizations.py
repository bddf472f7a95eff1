"""The factors of Cholesky and QR.

The derivatives are those of Murray, "Differentiation of the Cholesky decomposition" (2016), of
Seeger et al., "Auto-differentiating linear algebra" (2017), for QR, and of Roberts and Roberts, "QR
and LQ decomposition matrix backpropagation algorithms for square, wide, and deep matrices" (2020).
Conventions where derivatives are not unique:

- A Hermitian matrix is differentiated as such, although LAPACK reads one of its triangles: the
  gradient is Hermitian, and only the Hermitian part of a tangent counts.
- Columns that the mode "complete" adds to Q have the smallest tangent that keeps them perpendicular
  to the others.
"""

from typing import Any

import numpy as np

from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.calls.operands import joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.rearranging import tril
from cytape.ops.special_kernels.small_matrices import cholesky_gradient
from cytape.ops.submodules.matrix_parts import (
    added_tangent,
    adjoint,
    dtype_of,
    first_gradient,
    hermitian_part,
    lower_half,
    matmul,
    smaller,
    square_shape,
    stacked_shape,
)
from cytape.ops.submodules.solving import BLOCK, opposite, quick_inverse, solve_op
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["cholesky", "qr"]


# -- Cholesky --------------------------------------------------------------------------------------


def _lower(op):
    factor = op.outputs[0]
    return adjoint(factor) if op.attrs["upper"] else factor


def _gradient_of_block(lower, g):
    lower_h = adjoint(lower)
    inner = hermitian_part(lower_half(matmul(lower_h, tril(g))))
    half = adjoint(solve_op(lower_h, inner, triangle="upper"))
    return adjoint(solve_op(lower_h, half, triangle="upper"))


AT_ONCE = 256  # rows; larger matrices are faster by blocks


def _by_blocks(lower, g):
    """Compute the gradient from the last block of columns to the first, mostly by products.

    Murray, "Differentiation of the Cholesky decomposition" (2016): a tenth of the arithmetic.
    """
    n, has_kernel = lower.shape[-1], lower.dtype == g.dtype and g.dtype.char in "fd"
    if has_kernel and n <= AT_ONCE:
        return cholesky_gradient(lower, g)
    if n <= BLOCK:
        return _gradient_of_block(np.tril(lower), g)
    g = np.tril(g)  # becomes the gradient in the lower triangle, for both triangles
    for stop in range(n, 0, -BLOCK):
        start = max(stop - BLOCK, 0)
        block = (..., slice(start, stop), slice(start, stop))
        left, below = (..., slice(start, stop), slice(start)), (..., slice(stop, None), block[2])
        corner = (..., slice(stop, None), slice(start))
        if stop < n:
            g[below] = g[below] @ quick_inverse(np.tril(lower[block]))
            g[corner] -= g[below] @ lower[left]
            g[block] -= np.tril(adjoint(g[below]) @ lower[below])
        g[block] = _by_blocks(lower[block], g[block])
        g[left] -= adjoint(g[below]) @ lower[corner] + 2 * g[block] @ lower[left]
        g[block] = np.tril(g[block]) + np.tril(g[block], -1)
    return hermitian_part(g)


cholesky_back_op = composed(
    "CholeskyBack", _by_blocks, lambda lower, g: _gradient_of_block(tril(lower), g),
    shape_rule=lambda lower, g: lower, batch=batch_axis.of_one_shape)


def cholesky_vjp(op, g):
    lower = _lower(op)
    if op.attrs["upper"]:
        g = adjoint(g)
    if op.output_specs[0].known and (
            type(g) is np.ndarray or g.graph is not None or lower.shape[-1] > BLOCK):
        return cholesky_back_op(lower, g)
    return _gradient_of_block(lower, g)  # in ops that know forward mode and batches


def cholesky_jvp(op, t):
    lower = _lower(op)
    half = adjoint(solve_op(lower, hermitian_part(t), triangle="lower"))
    inner = solve_op(lower, half, triangle="lower")
    tangent = matmul(lower, lower_half(inner))
    return adjoint(tangent) if op.attrs["upper"] else tangent


cholesky_op = general(
    "Cholesky",
    forward=lambda a, *, upper: np.linalg.cholesky(a, upper=upper),
    vjp=cholesky_vjp,
    jvp=cholesky_jvp,
    batched=cholesky_jvp,
    saved_inputs=(),
    saved_outputs=(0,),
    shape_rule=lambda a, **_: symbolic_spec(square_shape(a, "cholesky"), dtype_of(a)),
    batch=batch_axis.stacked,
)


def cholesky(a, /, *, upper=False) -> Any:
    """Return the Cholesky factors of Hermitian matrices, as `numpy.linalg.cholesky`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.cholesky(a)[0, 0])(np.diag([4.0, 9.0]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    return cholesky_op(a, upper=upper)


# -- QR --------------------------------------------------------------------------------------------

QRResult = type(np.linalg.qr(np.eye(1)))


def _qr_spec(a, *, mode):
    *stack, m, n = stacked_shape(a, "qr")
    side = m if mode == "complete" else smaller(m, n)
    dtype = dtype_of(a)
    return QRResult(
        symbolic_spec((*stack, m, side), dtype), symbolic_spec((*stack, side, n), dtype))


def _times_inverse(b, r, triangle="upper"):
    """Return b r^-1, or b r^-H for "lower".

    Elements of the diagonal of R that are rounding errors of their column make it singular.
    """
    size, tiny = abs(r), 10 * np.finfo(r.dtype).eps
    if type(r) is not np.ndarray or (
            size.diagonal(0, -2, -1).min(initial=np.inf) <= tiny * size.max(initial=0)):
        is_tiny = size <= tiny * size.max(-2, keepdims=True, initial=0)
        r = np.where(is_tiny & np.eye(r.shape[-1], dtype=bool), 0, r)
    a = r if triangle == "lower" else adjoint(r)
    return adjoint(solve_op(a, adjoint(b), triangle=opposite(triangle)))


def _qr_vjp(op, gq, gr):
    (q, r), (m, n) = op.outputs, op.input_specs[0].shape[-2:]
    if m is None or n is None:
        return NotImplemented
    k = min(m, n)
    if gq is not None and q.shape[-1] > k:
        gq = first_gradient(q, gq, k)
        gr = gr if gr is None else gr[..., :k, :]
        q, r = q[..., :k], r[..., :k, :]
    elif gr is not None and r.shape[-2] > k:
        gr, q, r = gr[..., :k, :], q[..., :k], r[..., :k, :]
    if gq is None and gr is None:
        return None
    rest = None
    if n > k:  # the columns on the right are q @ r[:, k:]
        if gr is None:
            rest = 0 * matmul(q, r[..., k:])
        else:
            rest = matmul(q, gr[..., k:])
            back = matmul(matmul(q, r[..., k:]), adjoint(gr[..., k:]))
            gq, gr = back if gq is None else gq + back, gr[..., :k]
        r = r[..., :k]
    inner = 0 if gr is None else matmul(r, adjoint(gr))
    if gq is not None:
        inner = inner - matmul(adjoint(gq), q)
    inner = lower_half(inner)
    first = matmul(q, inner + adjoint(inner))
    first = _times_inverse(first if gq is None else gq + first, r, "lower")
    return first if rest is None else concatenate([first, rest], -1)


def _qr_jvp(op, t):
    (all_q, r), (m, n) = op.outputs, op.input_specs[0].shape[-2:]
    if m is None or n is None:
        return NotImplemented
    k = min(m, n)
    q, square = all_q[..., :k], r[..., :k, :k]
    moved = _times_inverse(t[..., :k], square)
    inner = matmul(adjoint(q), moved)
    growth = adjoint(lower_half(inner + adjoint(inner)))
    tq, tr = moved - matmul(q, growth), matmul(growth, square)
    if n > k:
        right = matmul(q, r[..., k:])
        right = matmul(adjoint(tq), right) + matmul(adjoint(q), t[..., k:])
        tr = concatenate([tr, right], -1)
    if r.shape[-2] > k:  # all_q is complete
        tq = added_tangent(all_q, tq, k)
        below = 0 * t[..., k:, :]
        tr = concatenate([tr, below], -2)
    return tq, tr


qr_op = general(
    "QR",
    forward=np.linalg.qr,
    vjp=_qr_vjp,
    jvp=_qr_jvp,
    batched=_qr_jvp,
    saved_outputs=(0, 1),
    optional_gradients=(0, 1),
    shape_rule=_qr_spec,
    batch=batch_axis.stacked,
)


@numpy_function(np.linalg.qr)
def qr(a, mode="reduced") -> Any:
    """Return the factors Q and R of matrices, as `numpy.linalg.qr`.

    For derivatives the left square of R must be regular. The mode "raw" has no derivative.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.qr(a).R[0, 0])(np.diag([-3.0, 1.0])) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    if mode not in ("reduced", "complete", "r"):
        if mode not in ("raw", "full", "f", "economic", "e"):
            raise ValueError(f"Unrecognized mode '{mode}'")
        return np.linalg.qr(np.asarray(joined(a)), mode)  # raises for a recorded tensor
    result = qr_op(a, mode="reduced" if mode == "r" else mode)
    return result[1] if mode == "r" else result
