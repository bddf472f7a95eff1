"""Eigenvalues and singular values.

The derivatives are those of Giles, "Collected matrix derivative results for forward and reverse
mode algorithmic differentiation" (2008), of Townsend, "Differentiating the singular value
decomposition" (2016), and for complex matrices of Wan and Zhang, "Automatic differentiation for
complex valued SVD" (2019). Conventions where derivatives are not unique:

- The tangent of a vector contains other vectors with factors 1/(w[j] - w[i]). If two values are
  equal up to rounding, the factor is 0, also in higher derivatives. The second derivative of a
  function of the values raises an error if that would matter. Factors 1/(s[j] + s[i]) between left
  and right singular vectors are kept: the products u @ vh, which are unique, need them.
- The phase of a vector is arbitrary. That of eigenvectors of Hermitian matrices has no derivative;
  other eigenvectors keep their length; left and right singular vectors share the change of phase.
- A singular value that is 0 up to rounding has the derivative 0. Vectors that `full_matrices` adds
  have the smallest tangent that keeps them perpendicular to the others.
- Hermitian matrices are differentiated as such, although LAPACK reads one of their triangles: the
  gradient is Hermitian, and only the Hermitian part of a tangent counts.
"""

from typing import Any

import numpy as np

from cytape.ops import reductions
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.creation import identity
from cytape.ops.elementwise import absolute, copysign, real, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.indexing import take_along_axis
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.ordering import argsort
from cytape.ops.rearranging import diagonal, flip
from cytape.ops.shapes import shape_rules
from cytape.ops.submodules.equal_values import gradient_of_values_op, tangent_of_values
from cytape.ops.submodules.matrix_parts import (
    added_tangent,
    adjoint,
    columns,
    dtype_of,
    first_gradient,
    hermitian_part,
    is_negligible,
    matmul,
    real_dtype,
    reciprocal,
    reciprocal_differences,
    rows,
    smaller,
    square_shape,
    stacked_shape,
    sum_of,
)
from cytape.ops.submodules.solving import inv_op, solve_op
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "matrix_rank", "svd", "svdvals"]

EigResult = type(np.linalg.eig(np.eye(1)))
EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


# -- Hermitian matrices ----------------------------------------------------------------------------


def _eigh_spec(a, **_):
    shape, dtype = square_shape(a, "eigh"), dtype_of(a)
    return EighResult(symbolic_spec(shape[:-1], real_dtype(dtype)), symbolic_spec(shape, dtype))


def eigh_vjp(op, gw, gv):
    w, v = op.outputs
    vh = adjoint(v)
    terms = []
    if gw is not None:
        terms.append(gradient_of_values_op(op.inputs[0], w, v, vh, gw, kind="eigh"))
    if gv is not None:
        turned = reciprocal_differences(w) * matmul(vh, gv)
        terms.append(hermitian_part(matmul(matmul(v, turned), vh)))
    return sum_of(terms)


def eigh_jvp(op, t):
    w, v = op.outputs
    t, vh = hermitian_part(t), adjoint(v)
    moved = matmul(vh, matmul(t, v))
    of_values = tangent_of_values(
        op.inputs[0], w, v, vh, t, "eigh", op.attrs.get("values_only"))
    return of_values, matmul(v, reciprocal_differences(w) * moved)


eigh_op = general(
    "HermitianEig",
    forward=lambda a, *, triangle, values_only=0: np.linalg.eigh(a, triangle),
    vjp=eigh_vjp,
    jvp=eigh_jvp,
    batched=eigh_jvp,
    saved_outputs=(0, 1),
    optional_gradients=(0, 1),
    shape_rule=_eigh_spec,
    batch=batch_axis.stacked,
)


def _triangle(UPLO):  # noqa: N803 (NumPy's name)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return UPLO.upper()


def eigh(a, UPLO="L") -> Any:  # noqa: N803
    """Return eigenvalues and eigenvectors of Hermitian matrices, as `numpy.linalg.eigh`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.eigh(a).eigenvalues[1])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return eigh_op(a, triangle=_triangle(UPLO))


@numpy_function(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L") -> Any:  # noqa: N803
    """Return eigenvalues of Hermitian matrices, as `numpy.linalg.eigvalsh`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.eigvalsh(a)[1])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return eigh_op(a, triangle=_triangle(UPLO), values_only=1)[0]


# -- other square matrices -------------------------------------------------------------------------


def _eig(a, *, always_complex, values_only=0):
    result = np.linalg.eig(a)
    if always_complex and result[0].dtype.kind != "c":
        return EigResult(*[x.astype(np.result_type(x.dtype, np.complex64)) for x in result])
    return result


def _eig_spec(a, **_):
    shape, dtype = square_shape(a, "eig"), np.result_type(dtype_of(a), np.complex64)
    return EigResult(symbolic_spec(shape[:-1], dtype), symbolic_spec(shape, dtype))


def _eig_vjp(op, gw, gv):
    w, v = op.outputs
    vh = adjoint(v)
    terms, of_values = [], None
    if gw is not None:
        of_values = gradient_of_values_op(
            op.inputs[0], w, adjoint(inv_op(v, singular="nan")), vh, gw, kind="eig")
    if gv is not None:
        inner = matmul(vh, gv)
        along = real(diagonal(inner, 0, -2, -1))  # the part that changes the length of a vector
        turned = inner - matmul(vh, v) * columns(along)
        terms.append(matmul(conj_if_complex(reciprocal_differences(w)) * turned, vh))
    return sum_of([of_values, solve_op(vh, terms[0]) if terms else None])


def _eig_jvp(op, t):
    w, v = op.outputs
    moved = solve_op(v, matmul(t, v))
    of_values = tangent_of_values(
        op.inputs[0], w, adjoint(inv_op(v, singular="nan")), adjoint(v), t, "eig",
        op.attrs.get("values_only"))
    change = matmul(v, reciprocal_differences(w) * moved)
    along = real(reductions.sum(conj_if_complex(v) * change, -2))
    return of_values, change - v * columns(along)


eig_op = general(
    "Eig",
    forward=_eig,
    vjp=_eig_vjp,
    jvp=_eig_jvp,
    batched=_eig_jvp,
    saved_outputs=(0, 1),
    optional_gradients=(0, 1),
    shape_rule=_eig_spec,
    batch=batch_axis.stacked,
)


def eig_of(a, **options):
    a = joined(a)
    in_graph = is_tensor(a) and a.dtype.kind != "c" and identity(a).graph is not None
    return eig_op(a, always_complex=in_graph, **options)


def eig(a) -> Any:
    """Return eigenvalues and right eigenvectors, as `numpy.linalg.eig`.

    NumPy's results are real if no eigenvalue of a real matrix is complex. In a graph they are
    always complex.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.eig(a).eigenvalues[0])(np.diag([1.0, 3.0]))
    array([[1., 0.],
           [0., 0.]])
    """
    return eig_of(a)


def eigvals(a) -> Any:
    """Return eigenvalues, as `numpy.linalg.eigvals`; in a graph they are complex.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.eigvals(a)[0])(np.diag([1.0, 3.0]))
    array([[1., 0.],
           [0., 0.]])
    """
    return eig_of(a, values_only=1)[0] if is_tensor(a) else np.linalg.eigvals(a)


# -- singular values -------------------------------------------------------------------------------


def _svd_spec(a, *, full_matrices, **_):
    *stack, m, n = stacked_shape(a, "svd")
    dtype, k = dtype_of(a), smaller(m, n)
    return SVDResult(
        symbolic_spec((*stack, m, m if full_matrices else k), dtype),
        symbolic_spec((*stack, k), real_dtype(dtype)),
        symbolic_spec((*stack, n if full_matrices else k, n), dtype),
    )


def _reciprocal_sums(s):
    """Return 1/(s[j] + s[i]) at i, j, and 0 where both are 0 up to rounding."""
    sums = columns(s) + rows(s)
    return reciprocal(sums, is_negligible(sums, s))


def _spans_all(x):
    """Return whether columns are known to span the whole space."""
    return x.shape[-1] == x.shape[-2] is not None


def _svd_vjp(op, gu, gs, gvh):
    u, s, vh = op.outputs
    zero = is_negligible(s, s)
    per_s = reciprocal(s, zero)
    v, gv = adjoint(vh), None if gvh is None else adjoint(gvh)
    if op.attrs["full_matrices"]:
        k = s.shape[-1]
        if k is None:
            return NotImplemented
        gu, gv = [g if g is None or x.shape[-1] == k else first_gradient(x, g, k)
                  for x, g in ((u, gu), (v, gv))]
        u, v, vh = u[..., :k], v[..., :k], vh[..., :k, :]
    turned, against, left, terms = [], [], [], []  # left: factors of vh
    if gs is not None:
        terms.append(gradient_of_values_op(
            op.inputs[0], s, u, vh, where(zero, 0, gs), kind="svd"))
    if gu is not None:
        inner = matmul(adjoint(u), gu)
        turned.append(inner - adjoint(inner))
        against.append(turned[-1])
        if not _spans_all(u):
            left.append((gu - matmul(u, inner)) * columns(per_s))
    if gv is not None:
        inner = matmul(vh, gv)
        turned.append(inner - adjoint(inner))
        against.append(-turned[-1])
        if not _spans_all(v):
            terms.append(matmul(u, adjoint((gv - matmul(v, inner)) * columns(per_s))))
    if turned:
        left.append(matmul(u, (
            reciprocal_differences(s) * sum_of(turned)
            + _reciprocal_sums(s) * sum_of(against)) / 2))
    if left:
        terms.append(matmul(sum_of(left), vh))
    return sum_of(terms)


def _svd_jvp(op, t):
    all_u, s, all_vh = op.outputs
    all_v = adjoint(all_vh)
    k = s.shape[-1]
    if op.attrs["full_matrices"] and k is None:
        return NotImplemented
    u, v = (all_u[..., :k], all_v[..., :k]) if op.attrs["full_matrices"] else (all_u, all_v)
    along_v, along_u = matmul(t, v), matmul(adjoint(t), u)
    moved = matmul(adjoint(u), along_v)
    of_values = tangent_of_values(
        op.inputs[0], s, u, adjoint(v), t, "svd", op.attrs.get("values_only"))
    moved_h, zero = adjoint(moved), is_negligible(s, s)
    per_s = columns(reciprocal(s, zero))
    turned = reciprocal_differences(s) * (moved + moved_h) / 2
    against = _reciprocal_sums(s) * (moved - moved_h) / 2
    tu = matmul(u, turned + against) + (along_v - matmul(u, moved)) * per_s
    tv = matmul(v, turned - against) + (along_u - matmul(v, moved_h)) * per_s
    if op.attrs["full_matrices"]:
        tu, tv = added_tangent(all_u, tu, k), added_tangent(all_v, tv, k)
    return tu, where(zero, 0, of_values), adjoint(tv)


svd_op = general(
    "SVD",
    forward=lambda a, *, full_matrices, values_only=0: np.linalg.svd(a, full_matrices),
    vjp=_svd_vjp,
    jvp=_svd_jvp,
    batched=_svd_jvp,
    saved_outputs=(0, 1, 2),
    optional_gradients=(0, 1, 2),
    shape_rule=_svd_spec,
    batch=batch_axis.stacked,
)


@numpy_function(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False) -> Any:
    """Return singular values and vectors, as `numpy.linalg.svd`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.svd(a, compute_uv=False)[0])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    if not hermitian:
        if compute_uv:
            return svd_op(a, full_matrices=bool(full_matrices))
        return svd_op(a, full_matrices=False, values_only=1)[1]
    w, u = eigh(a) if compute_uv else (eigvalsh(a), None)
    s = absolute(w)
    order = flip(argsort(s), -1)
    s = take_along_axis(s, order, -1)
    if not compute_uv:
        return s
    signs = take_along_axis(copysign(1.0, w), order, -1)
    u = take_along_axis(u, columns(order), -1)
    return SVDResult(u, s, adjoint(u * columns(signs)))


def svdvals(x, /) -> Any:
    """Return singular values, as `numpy.linalg.svdvals`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.svdvals(a)[0])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return svd(x, compute_uv=False)


def _rank_spec(*operands, **_):
    shape = shape_rules.shape_of(operands[0], "matrix_rank")
    return symbolic_spec(shape[:-2], np.dtype(np.intp))


matrix_rank_op = nondifferentiable(
    "MatrixRank",
    forward=lambda a, *, tol, hermitian, rtol: np.linalg.matrix_rank(
        a, tol, hermitian, rtol=rtol),
    shape_rule=_rank_spec,
)


def matrix_rank(A, tol=None, hermitian=False, *, rtol=None) -> Any:  # noqa: N803 (NumPy's name)
    """Return the rank of matrices, as `numpy.linalg.matrix_rank`: integers without a gradient.

    Examples
    --------
    >>> import cytape
    >>> int(np.linalg.matrix_rank(cytape.constant(np.eye(3))))
    3
    """
    return matrix_rank_op(A, tol=tol, hermitian=hermitian, rtol=rtol)
