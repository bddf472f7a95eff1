"""The pseudoinverse, and least squares.

The derivatives are those of Golub and Pereyra, "The differentiation of pseudo-inverses and
nonlinear least squares problems whose variables separate" (1973): for a rank that does not change.
"""

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cytape.ops import reductions
from cytape.ops.adjoints.conform import cast, sum_to
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, values_of
from cytape.ops.elementwise import real, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, ndim, shape, size, squeeze
from cytape.ops.submodules.cut_or_pad import cut_or_pad_op
from cytape.ops.submodules.equal_values import gradient_of_values_op, tangent_of_values
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    columns,
    dtype_of,
    hermitian_part,
    matmul,
    real_dtype,
    smaller,
    square_shape,
    stacked_shape,
    sum_of,
    transposed,
)
from cytape.ops.submodules.solving import quick_inverse
from cytape.ops.submodules.spectral import svd
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["lstsq", "pinv"]


# -- pseudoinverse ---------------------------------------------------------------------------------


def _pinv(a, *, rcond, by_eps, hermitian):
    if by_eps:
        return np.linalg.pinv(a, hermitian=hermitian, rtol=None)
    return np.linalg.pinv(a, rcond, hermitian)


def _is_wide(spec):
    """Return whether matrices have more columns than rows; None if extents are unknown."""
    m, n = spec.shape[-2:]
    return None if m is None or n is None else m < n


# Rules for matrices a with at least as many rows as columns, and their pseudoinverses p. Factors
# are small squares; the projections a @ p are applied, not formed. Wide matrices are transposed.


def _gradient_of_tall(a, p, g):
    ph, gh = adjoint(p), adjoint(g)
    gram, inner = matmul(p, ph), matmul(p, gh)
    within = inner - matmul(inner, matmul(p, a)) - adjoint(inner)
    return matmul(gh, gram) - matmul(a, matmul(inner, gram)) + matmul(ph, within)


def _tangent_of_tall(a, p, t):
    th, gram, inner = adjoint(t), matmul(p, adjoint(p)), matmul(p, t)
    outer = adjoint(inner)
    within = outer - matmul(matmul(p, a), outer) - matmul(gram, matmul(th, a)) - inner
    return matmul(gram, th) + matmul(within, p)


def _pinv_rule(op, of_tall, change):
    a, p, is_wide = op.inputs[0], op.outputs[0], _is_wide(op.input_specs[0])
    if is_wide is None:
        return NotImplemented
    if is_wide:
        return transposed(of_tall(transposed(a), transposed(p), transposed(change)))
    return of_tall(a, p, change)


def _pinv_vjp(op, g):
    result = _pinv_rule(op, _gradient_of_tall, g)
    return result if result is NotImplemented else sum_to(result, op.input_specs[0])


def _pinv_jvp(op, t):
    return _pinv_rule(op, _tangent_of_tall, t)


def _pinv_spec(a, *, rcond, hermitian, **_):
    *stack, m, n = (square_shape if hermitian else stacked_shape)(a, "pinv")
    stack = shape_rules.broadcast((*stack,), np.shape(rcond), what="pinv")
    # NumPy's result for empty matrices has their dtype.
    return symbolic_spec((*stack, n, m), a.dtype if 0 in (m, n) else dtype_of(a))


pinv_op = general(
    "PseudoInverse",
    forward=_pinv,
    vjp=_pinv_vjp,
    jvp=_pinv_jvp,
    batched=_pinv_jvp,
    saved_outputs=(0,),
    shape_rule=_pinv_spec,
    batch=batch_axis.stacked,
)


def _completed(a, *, lower):
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    whole = np.where(np.eye(a.shape[-1], dtype=bool), a.real, triangle + adjoint(triangle))
    return whole.astype(dtype_of(a), copy=False)


completion_op = general(
    "HermitianCompletion",
    forward=_completed,
    vjp=lambda op, g: cast(hermitian_part(g), op.input_specs[0].dtype),
    jvp=lambda op, t: hermitian_part(t),
    batched=lambda op, t: hermitian_part(t),
    saved_inputs=(),
    shape_rule=lambda a, **_: symbolic_spec(square_shape(a, "pinv"), dtype_of(a)),
    batch=batch_axis.stacked,
)


def completed(a, lower=True):
    """Return Hermitian matrices, of which one triangle is read; their derivatives are Hermitian."""
    return completion_op(a, lower=bool(lower))


def is_tiny(cutoff):
    """Return whether singular values below a cutoff are irrelevant for derivatives."""
    return np.ndim(cutoff) == 0 and not is_tensor(cutoff) and cutoff <= 1e-8


def _without_small_part(a, cutoff, hermitian):
    """Return matrices without the part of singular values below a cutoff.

    The derivative is that of `svd`; equal values within the kept or the dropped part are harmless.
    """
    if 0 in shape(a):
        return a
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    cutoff = np.asarray(cutoff)[..., None] * reductions.max(s, -1, keepdims=True)
    return a - matmul(u * columns(where(s > cutoff, 0, s)), vh)


@numpy_function(np.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, *, rtol=np._NoValue) -> Any:
    """Return the pseudoinverse of matrices, as `numpy.linalg.pinv`.

    The derivative is that of matrices of the same rank.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.sum(np.linalg.pinv(a)))(np.array([[2.0], [0.0]]))
    array([[-0.25],
           [ 0.25]])
    """
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    by_eps = rcond is None and rtol is None
    if rcond is None and rtol is not np._NoValue:
        rcond = rtol
    if hermitian:
        a = completed(a)
    if rcond is not None and not is_tiny(rcond):
        a = _without_small_part(a, rcond, hermitian)
    return pinv_op(a, rcond=rcond, by_eps=by_eps, hermitian=hermitian)


# -- least squares ---------------------------------------------------------------------------------


def _lstsq(a, b, *, rcond):
    x, squares, rank, s = np.linalg.lstsq(a, b, rcond)
    return x, squares, np.asarray(rank), s


def _lstsq_spec(a, b, **_):
    for spec in (a, b):
        shape = shape_rules.shape_of(spec, "lstsq")
        if len(shape) != 2:
            raise LinAlgError(
                f"{len(shape)}-dimensional array given. Array must be two-dimensional")
    (m, n), (height, width), dtype = a.shape, b.shape, dtype_of(a, b)
    if shape_rules.differ(m, height):
        raise LinAlgError("Incompatible dimensions")
    return (
        symbolic_spec((n, width), dtype),
        symbolic_spec((None,), real_dtype(dtype)),  # empty where the rank is not full
        symbolic_spec((), np.intc),
        symbolic_spec((smaller(m, n),), real_dtype(dtype)),
    )


QUICK_QR = 1 << 14  # elements; for larger matrices the singular values are as fast


def _pinv_of_rank(a, rank, **attrs):
    """Return the pseudoinverse, for independent columns by their QR decomposition."""
    if a.dtype.char not in "dD" or a.size > QUICK_QR or (np.asarray(rank) != a.shape[-1]).any():
        return _pinv(a, hermitian=False, **attrs)
    q, r = np.linalg.qr(a)
    return quick_inverse(r) @ adjoint(q)


# The rank is an input, to avoid computing it again; the derivative is with respect to the matrix.
pinv_of_rank_op = general(
    "PseudoInverseOfRank",
    forward=_pinv_of_rank,
    vjp=lambda op, g: (_pinv_vjp(op, g), None),
    jvp=lambda op, t, _: _pinv_jvp(op, t),
    batched=lambda op, t, _: _pinv_jvp(op, t),
    saved_outputs=(0,),
    optional_tangents=(1,),
    shape_rule=lambda a, rank, **attrs: _pinv_spec(a, hermitian=False, **attrs),
    batch=lambda call: call.again(call.inputs) if call.mapped[0] else NotImplemented,
)


def _pinv_for_lstsq(a, rank, rcond):
    by_eps = rcond is None or rcond < 0
    if a.dtype.kind not in "fc":
        a = cast(a, np.dtype(float))
    return pinv_of_rank_op(a, rank, rcond=None if by_eps else rcond, by_eps=by_eps)


def _adjoint_times(a, x):
    """Return the product of a's adjoint and a few columns, without a conjugated copy of a."""
    return adjoint(matmul(adjoint(x), a))


def _by_pinv(a, b, x, rank, g, *, rcond):
    p = _pinv_for_lstsq(a, rank, rcond)
    gb = _adjoint_times(p, g)
    left, right = [b - matmul(a, x), gb], [matmul(p, gb), -x]
    if values_of(rank) != a.shape[1]:  # components outside of the range of a's adjoint
        left.append(_adjoint_times(p, x))
        right.append(g - matmul(p, matmul(a, g)))
    return matmul(concatenate(left, -1), adjoint(concatenate(right, -1))), gb


def _lstsq_back(a, b, x, rank, g, *, rcond):
    """Return the gradients of the operands, given that of the solution.

    For independent columns the factor R of their QR decomposition suffices; for independent rows
    the residual is zero.
    """
    if a.dtype.char not in "dD" or rank != min(a.shape):
        return _by_pinv(a, b, x, rank, g, rcond=rcond)
    if rank == a.shape[1]:
        inverse = quick_inverse(np.linalg.qr(a, "r"))
        gx = inverse @ (adjoint(inverse) @ g)
        gb = a @ gx
        return np.concatenate([b - a @ x, gb], 1) @ adjoint(np.concatenate([gx, -x], 1)), gb
    q, r = np.linalg.qr(adjoint(a))
    inverse, qh = quick_inverse(r), adjoint(q)
    along = qh @ g
    gb = inverse @ along
    return (inverse @ (qh @ x)) @ adjoint(g - q @ along) - gb @ adjoint(x), gb


lstsq_back_op = composed(
    "LeastSquaresBack", _lstsq_back, _by_pinv,
    shape_rule=lambda a, b, x, rank, g, **_: tuple(
        symbolic_spec(spec.shape, dtype_of(a, b)) for spec in (a, b)))


def _lstsq_vjp(op, g_x, g_squares, _, g_s):
    a, b = op.inputs
    x, parts = op.outputs[0], []
    if g_x is not None:
        # Recorded eager calls build single ops, which have rules for forward mode and batches.
        back = lstsq_back_op if type(g_x) is np.ndarray or g_x.graph is not None else _by_pinv
        parts.append(back(a, b, x, op.outputs[2], g_x, rcond=op.attrs["rcond"]))
    if g_squares is not None:  # None if there are no residuals
        if b.shape[1] is None:
            return NotImplemented
        gb = 2 * cut_or_pad_op(g_squares, axis=0, n=b.shape[1]) * (b - matmul(a, x))
        parts.append((-matmul(gb, adjoint(x)), gb))
    if g_s is not None:
        u, s, vh = svd(a, full_matrices=False)
        parts.append((gradient_of_values_op(a, s, u, vh, g_s, kind="svd"), None))
    return tuple([sum_of([part[i] for part in parts]) for i in range(2)])


def _lstsq_jvp(op, ta, tb):
    a, b = op.inputs
    x, squares = op.outputs[:2]
    p = _pinv_for_lstsq(a, op.outputs[2], op.attrs["rcond"])
    residuals = b - matmul(a, x)
    change = sum_of([tb, None if ta is None else -matmul(ta, x)])
    t_x, t_s = matmul(p, change), None
    if ta is not None:
        beyond = _adjoint_times(ta, _adjoint_times(p, x))
        t_x = (
            t_x + matmul(p, _adjoint_times(p, _adjoint_times(ta, residuals)))
            + beyond - matmul(p, matmul(a, beyond))
        )
        u, s, vh = svd(a, full_matrices=False)
        t_s = tangent_of_values(a, s, u, vh, ta, "svd", False)
    t_squares = 2 * real(reductions.sum(conj_if_complex(residuals) * change, -2))
    return t_x, t_squares[..., : size(squares)], None, t_s


lstsq_op = general(
    "LeastSquares",
    forward=_lstsq,
    vjp=_lstsq_vjp,
    jvp=_lstsq_jvp,
    batched=_lstsq_jvp,
    saved_outputs=(0, 1, 2),
    optional_gradients=(0, 1, 2, 3),
    optional_tangents=(0, 1),
    shape_rule=_lstsq_spec,
)


def has_full_rank(a, rank):
    """Return whether the rank is known, and that of the smaller side of a matrix."""
    known = values_of(rank)
    return known is not None and known == min(shape(a))


def _solved(a, b, rcond):
    """Solve without the part of `a` below a cutoff, which depends on the elements, too."""
    found = lstsq_op(a, b, rcond=rcond)
    if not is_tensor(a) or rcond is None or has_full_rank(a, found[2]):
        return found
    np.linalg.lstsq(np.ones((1, 1)), np.ones(1), rcond)  # raises NumPy's errors in traces, too
    if is_tiny(rcond) or rcond >= 1:  # LAPACK's own cutoff then
        return found
    return *lstsq_op(_without_small_part(a, rcond, False), b, rcond=rcond)[:3], found[3]


@numpy_function(np.linalg.lstsq, "a", "b")
def lstsq(a, b, rcond=None) -> Any:
    """Return a least-squares solution of linear equations, as `numpy.linalg.lstsq`.

    The derivative is that of matrices of the same rank, as of `pinv`.

    Examples
    --------
    >>> import cytape
    >>> a = np.array([[1.0], [1.0]])
    >>> cytape.grad(lambda b: np.linalg.lstsq(a, b)[0][0])(np.array([1.0, 3.0])).round(12)
    array([0.5, 0.5])
    """
    a, b = together(a, b)
    if ndim(b) != 1:
        return _solved(a, b, rcond)
    x, *others = _solved(a, expand_dims(b, 1), rcond)
    return squeeze(x, -1), *others
