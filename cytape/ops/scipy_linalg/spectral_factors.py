"""Eigenvalues and singular values by SciPy's names: `eigh`, `eig`, `svd`, `polar`.

Derivatives follow the conventions of `ops/submodules/spectral.py`: factors 1/(w[j] - w[i]) between
equal values are 0, and a Hermitian matrix is differentiated as such. With a second matrix b, the
vectors of equal values get the tangent that is symmetric in them.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.errors import NotDifferentiableError
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.creation import stop_gradient_op
from cytape.ops.elementwise import real, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.rearranging import diagonal, tril, triu
from cytape.ops.scipy_linalg.linear_systems import any_tensor, as_floats, checked
from cytape.ops.scipy_linalg.matrix_equations import solve_sylvester_op
from cytape.ops.scipy_linalg.triangular_systems import solve_triangular_op
from cytape.ops.submodules.factorizations import cholesky_op
from cytape.ops.submodules.linear_algebra import identities_op
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    columns,
    dtype_of,
    hermitian_part,
    is_negligible,
    matmul,
    real_dtype,
    reciprocal,
    reciprocal_differences,
    rows,
    square_shape,
    stacked_shape,
    sum_of,
)
from cytape.ops.submodules.solving import solve_op as numpys_solve_op
from cytape.ops.submodules.spectral import eig_of, eigh_jvp, eigh_vjp
from cytape.ops.submodules.spectral import svd as numpys_svd
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "hessenberg", "null_space", "orth", "polar",
           "schur", "svd", "svdvals"]


# -- Hermitian matrices ----------------------------------------------------------------------------


def _eigh_spec(a, subset=None, **_):
    *stack, n, _ = square_shape(a, "eigh")
    k = n if subset is None else None if subset[0] == "value" else subset[2] - subset[1] + 1
    dtype = dtype_of(a)
    return symbolic_spec((*stack, k), real_dtype(dtype)), symbolic_spec((*stack, n, k), dtype)


def _subset_options(subset):
    return {} if subset is None else {f"subset_by_{subset[0]}": list(subset[1:])}


def _eigh(a, *, lower, driver, subset=None, check_finite=False, values_only=0):
    return linalg.eigh(
        *as_floats(a), lower=lower, driver=driver, check_finite=check_finite,
        **_subset_options(subset))


eigh_op = general(
    "ScipyLinalgEigh", _eigh, vjp=eigh_vjp, jvp=eigh_jvp, batched=eigh_jvp, saved_outputs=(0, 1),
    optional_gradients=(0, 1), shape_rule=_eigh_spec, batch=batch_axis.stacked)


def _others(op):
    """Return all eigenvectors, and 1/(w[j] - w[i]) of the values j of a subset and all values i."""
    all_w, all_v = eigh_op(
        op.inputs[0], lower=op.attrs["lower"], driver=None)
    differences = columns(op.outputs[0]) - rows(all_w)
    return all_v, reciprocal(differences, is_negligible(differences, all_w))


def _subset_vjp(op, gw, gv):
    v, terms = op.outputs[1], []
    if gw is not None:
        terms.append(matmul(v * columns(gw), adjoint(v)))
    if gv is not None:
        all_v, factors = _others(op)
        turned = matmul(all_v, factors * matmul(adjoint(all_v), gv))
        terms.append(hermitian_part(matmul(turned, adjoint(v))))
    return sum_of(terms)


def _subset_jvp(op, t):
    v, t = op.outputs[1], hermitian_part(t)
    all_v, factors = _others(op)
    moved = matmul(t, v)
    of_values = real(np.sum(adjoint(v) * np.swapaxes(moved, -1, -2), -1))
    return of_values, matmul(all_v, factors * matmul(adjoint(all_v), moved))


subset_op = general(
    "ScipyLinalgEighSubset", _eigh, vjp=_subset_vjp, jvp=_subset_jvp, batched=_subset_jvp,
    saved_outputs=(0, 1), optional_gradients=(0, 1), shape_rule=_eigh_spec,
    batch=batch_axis.stacked)


def _general_parts(op):
    w, v = op.outputs
    return w, v, adjoint(v), reciprocal_differences(w)


def _equal(w):
    """Return half where two eigenvalues are equal, on the diagonal too, and 0 elsewhere."""
    differences = columns(w) - rows(w)
    return where(is_negligible(differences, w), 0.5, 0.0).astype(w.dtype)


def _general_vjp(op, gw, gv):
    w, v, vh, factors = _general_parts(op)
    of_a, of_b = [], []
    if gw is not None:
        of_a.append(columns(gw) * real(identities_op(v)))
    if gv is not None:
        inner = matmul(vh, gv)
        of_a.append(factors * inner)
        of_b.append(-_equal(w) * inner)
    inner = sum_of(of_a)
    of_b.append(-inner * columns(w))
    return tuple([
        hermitian_part(matmul(matmul(v, x), vh)) if needed else None
        for x, needed in zip((inner, sum_of(of_b)), op.needs, strict=True)])


def _general_jvp(op, ta, tb):
    w, v, vh, factors = _general_parts(op)
    moved_a, moved_b = [
        None if t is None else matmul(vh, matmul(hermitian_part(t), v)) for t in (ta, tb)]
    moved = sum_of([moved_a, None if moved_b is None else -moved_b * columns(w)])
    change = factors * moved
    if moved_b is not None:
        change = change - _equal(w) * moved_b
    return real(diagonal(moved, 0, -2, -1)), matmul(v, change)


general_op = general(
    "ScipyLinalgEighGeneral",
    lambda a, b, *, lower, driver, check_finite=False: linalg.eigh(
        *as_floats(a, b), lower=lower, driver=driver, check_finite=check_finite),
    vjp=_general_vjp, jvp=_general_jvp, batched=_general_jvp, saved_outputs=(0, 1),
    optional_gradients=(0, 1), optional_tangents=(0, 1),
    shape_rule=lambda a, b, **_: tuple(
        symbolic_spec(x.shape, np.result_type(x.dtype, real_dtype(dtype_of(b))) if i == 0
                      else dtype_of(a, b))
        for i, x in enumerate(_eigh_spec(a))),
    batch=batch_axis.stacked)


_DRIVERS = {None: "evd", "gvd": "evd", "gv": "ev"}  # of the problem that LAPACK reduces it to


def _by_cholesky(a, b, type, lower, driver, check_finite):
    """Solve a b v = w v (type 2) or b a v = w v (type 3), as LAPACK does."""
    linalg.eigh(np.eye(1), np.eye(1), type=type, driver=driver)  # raises SciPy's errors
    checked(check_finite, a, b)
    factor = cholesky_op(b, upper=not lower)
    factor = factor if lower else adjoint(factor)
    half, rest = (tril(a), tril(a, -1)) if lower else (triu(a), triu(a, 1))
    symmetric = hermitian_part(a)  # the value has one triangle, the derivative is Hermitian
    a = symmetric + stop_gradient_op(half + adjoint(rest) - symmetric)
    w, v = eigh_op(matmul(matmul(adjoint(factor), a), factor), lower=lower,
                   driver=_DRIVERS.get(driver))
    if type == 3:
        return w, matmul(factor, v)
    return w, solve_triangular_op(adjoint(factor), v, lower=False, unit_diagonal=False)


def eigh(a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, type=1,
         check_finite=True, subset_by_index=None, subset_by_value=None, driver=None) -> Any:
    """Return eigenvalues and vectors of Hermitian matrices, as `scipy.linalg.eigh`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import eigh
    >>> cytape.grad(lambda a: eigh(a, np.eye(2))[0][1])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.eigh(
            a, b, lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a,
            overwrite_b=overwrite_b, type=type, check_finite=check_finite,
            subset_by_index=subset_by_index, subset_by_value=subset_by_value, driver=driver)
    if subset_by_index is not None and subset_by_value is not None:
        raise ValueError("Either index or value subset can be requested.")
    subset = None
    if subset_by_index is not None:
        subset = ("index", *map(int, subset_by_index))
    elif subset_by_value is not None:
        subset = ("value", *map(float, subset_by_value))
    options = {"lower": bool(lower), "driver": driver, "check_finite": bool(check_finite)}
    if b is None:
        if subset is None:
            w, v = eigh_op(a, values_only=int(bool(eigvals_only)), **options)
        else:
            w, v = subset_op(a, subset=subset, **options)
    else:
        if subset is not None:
            raise NotDifferentiableError(
                "eigh of tensors a and b computes all eigenvalues: index the result for a subset")
        a, b = together(a, b)
        sides = (*a.shape[-2:], *b.shape[-2:])
        if None not in sides and (len(sides) < 4 or len(set(sides)) > 1):
            linalg.eigh(*[np.zeros(x.shape[-2:]) for x in (a, b)])  # raises SciPy's error
        w, v = general_op(a, b, **options) if type == 1 else _by_cholesky(a, b, type, **options)
    return w if eigvals_only else (w, v)


def eigvalsh(a, b=None, *, lower=True, overwrite_a=False, overwrite_b=False, type=1,
             check_finite=True, subset_by_index=None, subset_by_value=None, driver=None) -> Any:
    """Return eigenvalues of Hermitian matrices, as `scipy.linalg.eigvalsh`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import eigvalsh
    >>> cytape.grad(lambda a: eigvalsh(a)[1])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    options = {
        "lower": lower, "type": type, "check_finite": check_finite, "driver": driver,
        "subset_by_index": subset_by_index, "subset_by_value": subset_by_value}
    if not any_tensor(a, b):
        return linalg.eigvalsh(a, b, overwrite_a=overwrite_a, overwrite_b=overwrite_b, **options)
    return eigh(a, b, eigvals_only=True, **options)


# -- other square matrices -------------------------------------------------------------------------


def _only_simple(name, a, b, homogeneous_eigvals, left=False):
    if b is not None or homogeneous_eigvals or left:
        raise NotDifferentiableError(
            f"{name} of tensors has no b, left vectors or homogeneous eigenvalues. Solve with b "
            "first, as eig(solve(b, a)); left vectors are the rows of inv(v)")


def _as_complex(w):
    return w if w.dtype.kind == "c" else w + 0j


def eig(a, b=None, left=False, right=True, overwrite_a=False, overwrite_b=False, check_finite=True,
        homogeneous_eigvals=False) -> Any:
    """Return eigenvalues and right eigenvectors, as `scipy.linalg.eig`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import eig
    >>> cytape.grad(lambda a: np.real(eig(a)[0][0]))(np.diag([1.0, 3.0]))
    array([[1., 0.],
           [0., 0.]])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.eig(
            a, b, left, right, overwrite_a, overwrite_b, check_finite, homogeneous_eigvals)
    _only_simple("eig", a, b, homogeneous_eigvals, left)
    checked(check_finite, a)
    w, v = eig_of(a)
    return (_as_complex(w), v) if right else _as_complex(w)


def eigvals(a, b=None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False) -> Any:
    """Return eigenvalues, as `scipy.linalg.eigvals`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import eigvals
    >>> cytape.grad(lambda a: np.real(eigvals(a)[0]))(np.diag([1.0, 3.0]))
    array([[1., 0.],
           [0., 0.]])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.eigvals(a, b, overwrite_a, check_finite, homogeneous_eigvals)
    _only_simple("eigvals", a, b, homogeneous_eigvals)
    checked(check_finite, a)
    return _as_complex(eig_of(a, values_only=1)[0])


# -- singular values -------------------------------------------------------------------------------


def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True,
        lapack_driver="gesdd") -> Any:
    """Return singular values and vectors, as `scipy.linalg.svd` with the driver "gesdd".

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import svd
    >>> cytape.grad(lambda a: svd(a, compute_uv=False)[0])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.svd(
            a, full_matrices, compute_uv, overwrite_a, check_finite, lapack_driver)
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(
            f'lapack_driver must be "gesdd" or "gesvd", not "{lapack_driver}"')
    checked(check_finite, a)
    found = numpys_svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def svdvals(a, overwrite_a=False, check_finite=True) -> Any:
    """Return singular values, as `scipy.linalg.svdvals`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import svdvals
    >>> cytape.grad(lambda a: svdvals(a)[0])(np.diag([1.0, 3.0]))
    array([[0., 0.],
           [0., 1.]])
    """
    return svd(a, compute_uv=False, overwrite_a=overwrite_a, check_finite=check_finite)


def _sylvester_of_positive(p, q):
    """Solve p x + x p = q for Hermitian positive definite p, by its eigenvalues."""
    w, v = np.linalg.eigh(p)
    inner = adjoint(v) @ q @ v / (columns(w) + rows(w))
    return v @ inner @ adjoint(v)


# Its derivative is that of the general equation: the vectors of equal eigenvalues have none.
positive_sylvester_op = composed(
    "ScipyLinalgPositiveSylvester", _sylvester_of_positive,
    lambda p, q: solve_sylvester_op(p, p, q),
    shape_rule=lambda p, q: symbolic_spec(q.shape, dtype_of(p, q)), batch=batch_axis.of_one_shape)


def _unitary(a):
    w, _, vh = linalg.svd(*as_floats(a), full_matrices=False, check_finite=False)
    return w @ vh


def _of_tall(op, rule, x):
    """Return a rule's result for matrices with at least as many rows as columns, or adjoints."""
    m, n = op.input_specs[0].shape[-2:]
    if m is None or n is None:
        return NotImplemented
    a, u = op.inputs[0], op.outputs[0]
    if m < n:
        return adjoint(_of_tall_matrix(rule, adjoint(a), adjoint(u), adjoint(x), False))
    return _of_tall_matrix(rule, a, u, x, m == n)


def _of_tall_matrix(rule, a, u, x, is_square):
    p, inner = hermitian_part(matmul(adjoint(u), a)), matmul(adjoint(u), x)
    result = matmul(u, rule(p, inner))
    if is_square:
        return result
    return result + adjoint(numpys_solve_op(p, adjoint(x - matmul(u, inner))))


def _turn(p, inner):
    """Return U^H dU with a = U P, of U^H da."""
    return positive_sylvester_op(p, inner - adjoint(inner))


def _turned_back(p, inner):
    turn = positive_sylvester_op(p, inner)
    return turn - adjoint(turn)


unitary_op = general(
    "ScipyLinalgPolarUnitary", _unitary, vjp=lambda op, g: _of_tall(op, _turned_back, g),
    jvp=lambda op, t: _of_tall(op, _turn, t), saved_outputs=(0,),
    shape_rule=lambda a: symbolic_spec(stacked_shape(a, "polar"), dtype_of(a)),
    batch=batch_axis.stacked)


def polar(a, side="right") -> Any:
    """Return the polar factors of a matrix, as `scipy.linalg.polar`.

    The derivative is that of matrices of full rank.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import polar
    >>> cytape.grad(lambda a: polar(a)[1][0, 0])(np.diag([-2.0, 3.0])) + 0.0
    array([[-1.,  0.],
           [ 0.,  0.]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.polar(a, side)
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    u = unitary_op(a)
    p = matmul(adjoint(u), a) if side == "right" else matmul(a, adjoint(u))
    return u, hermitian_part(p)


# -- results that are not unique -------------------------------------------------------------------


def _not_unique(name, reason):
    theirs = getattr(linalg, name)

    def function(A, *args, **options):  # noqa: N803
        if is_tensor(A):
            raise NotDifferentiableError(
                f"{name} has no derivative: {reason}; or pass {name} the values of the tensor, "
                "A.numpy()")
        return theirs(A, *args, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.refuses_tensors = True
    function.__doc__ = (
        f"Return `scipy.linalg.{name}` of an array; raise for a tensor: the result is not unique.")
    return function


_BASIS = ("its result is a basis of a subspace, and rotations of the basis span it, too. The "
          "projection on the subspace is unique: ")
null_space = _not_unique("null_space", _BASIS + "numpy.eye(n) - pinv(A) @ A")
orth = _not_unique("orth", _BASIS + "A @ pinv(A)")
schur = _not_unique(
    "schur", "the phases of its vectors and the order of the eigenvalues are arbitrary. Call eig, "
    "eigvals, eigh of a Hermitian matrix, or a function of the matrix, such as expm or sqrtm")
hessenberg = _not_unique(
    "hessenberg", "it is one of many similar matrices of that form. Pass the matrix itself to eig, "
    "solve or a function of the matrix")
