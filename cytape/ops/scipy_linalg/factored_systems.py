"""`solve` by a factor that is computed once, for the solution and for all of its derivatives.

The factor is an operand of the op that solves, without a derivative: that is in the matrix itself.
"""

import warnings
from typing import Any

import numpy as np
import scipy.linalg as linalg
from numpy.linalg import LinAlgError
from scipy.linalg import LinAlgWarning, lapack

from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.joining import concatenate, stack
from cytape.ops.rearranging import diagonal
from cytape.ops.scipy_linalg.banded_systems import solve_banded
from cytape.ops.scipy_linalg.linear_systems import (
    any_tensor,
    by_columns,
    in_stacks,
    require_finite,
    solution_spec,
)
from cytape.ops.scipy_linalg.triangular_systems import solve_triangular
from cytape.ops.shaping import swapaxes
from cytape.ops.submodules.linear_algebra import identities_op
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    dtype_of,
    hermitian_part,
    matmul,
    square_shape,
    sum_of,
    transposed,
)
from cytape.ops.submodules.solving import inv as numpys_inv
from cytape.ops.submodules.solving import solve_op as stacks_op
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["inv", "solve"]

# Structures by their names, the long ones and the short ones.
STRUCTURES = {
    None: "gen", "general": "gen", "gen": "gen", "symmetric": "sym", "sym": "sym",
    "hermitian": "her", "her": "her", "positive definite": "pos", "pos": "pos",
    "diagonal": "diagonal", "tridiagonal": "tridiagonal", "banded": "banded",
    "upper triangular": "upper triangular", "lower triangular": "lower triangular"}


# -- factors ---------------------------------------------------------------------------------------


def _lapack(name, *arrays):
    return lapack.get_lapack_funcs((name,), arrays)[0]


def _factor(a, *, structure, lower):
    """Return the factor of one matrix; warn as SciPy does if it is ill-conditioned."""
    if structure == "banded":
        below, above = linalg.bandwidth(a)
        band = np.zeros((2 * below + above + 1, a.shape[0]), a.dtype)
        for k in range(-below, above + 1):  # the first rows are for fill-in
            band[below + above - k, max(k, 0):a.shape[0] + min(k, 0)] = np.diagonal(a, k)
        packed, pivots, info = _lapack("gbtrf", a)(band, below, above, overwrite_ab=True)
        if info > 0:
            raise LinAlgError("A singular matrix detected.")
        return packed, pivots, np.array([below, above])
    norm = np.abs(a).sum(0).max(initial=0)
    if structure == "gen":
        packed, pivots, info = _lapack("getrf", a)(a)
        condition = "gecon", (packed, norm), {}
    elif structure == "pos":
        packed, info = _lapack("potrf", a)(a, lower=lower, clean=False)
        pivots, condition = np.zeros(0, np.intc), ("pocon", (packed, norm), {"uplo": "UL"[lower]})
        if info > 0:
            raise LinAlgError("Matrix is not positive definite")
    else:
        kind = structure[:2] if a.dtype.kind == "c" else "sy"
        size = _lapack(f"{kind}trf_lwork", a)(a.shape[0], lower=lower)[0].real
        packed, pivots, info = _lapack(f"{kind}trf", a)(a, lower=lower, lwork=int(size))
        condition = f"{kind}con", (packed, pivots, norm), {"lower": lower}
    if info > 0:
        raise LinAlgError("A singular matrix detected.")
    name, args, options = condition
    rcond = _lapack(name, a)(*args, **options)[0]
    if not rcond >= np.finfo(a.dtype).eps:
        warnings.warn(f"An ill-conditioned matrix detected: rcond = {rcond}.", LinAlgWarning,
                      stacklevel=2)
    return packed, pivots, np.zeros(2, np.int64)


def _in_lapacks_dtype(a):
    return a.astype(dtype_of(a), copy=False)


def _factors(a, *, structure, lower, check_finite):
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Expected square matrix, got a1.shape={a.shape}")
    if check_finite:
        require_finite(a)
    a = _in_lapacks_dtype(a)
    if a.size == 0:
        return np.zeros(a.shape, a.dtype), np.zeros(a.shape[:-1], np.intc), np.zeros(
            (*a.shape[:-2], 2), np.int64)
    if a.ndim == 2:
        return _factor(a, structure=structure, lower=lower)
    found = [_factor(one, structure=structure, lower=lower)
             for one in a.reshape(-1, *a.shape[-2:])]
    if len({x.shape for x, *_ in found}) > 1:  # bands of several widths
        raise ValueError("solve: matrices of a stack must have the same bandwidths")
    return tuple([np.stack(x).reshape(*a.shape[:-2], *x[0].shape) for x in zip(
        *found, strict=True)])


def _factors_spec(a, *, structure, **_):
    *stack, side, _ = square_shape(a, "solve")
    return (
        symbolic_spec((*stack, None if structure == "banded" else side, side), dtype_of(a)),
        symbolic_spec((*stack, 0 if structure == "pos" else side), np.intc),
        symbolic_spec((*stack, 2), np.int64))


factors_op = nondifferentiable(
    "ScipyLinalgFactors", _factors, shape_rule=_factors_spec, batch=batch_axis.stacked)


# -- solutions -------------------------------------------------------------------------------------


def _solve_one(packed, pivots, widths, b, *, structure, lower, is_adjoint):
    if structure == "gen":
        x, _ = _lapack("getrs", packed, b)(packed, pivots, b, trans=2 * is_adjoint)
    elif structure == "pos":
        x, _ = _lapack("potrs", packed, b)(packed, b, lower=lower)
    elif structure == "banded":
        x, _ = _lapack("gbtrs", packed, b)(
            packed, int(widths[0]), int(widths[1]), b, pivots, trans=2 * is_adjoint)
    elif structure == "sym" and packed.dtype.kind == "c":  # its adjoint is its conjugate
        b = b.conj() if is_adjoint else b
        x, _ = _lapack("sytrs", packed)(packed, pivots, b, lower=lower)
        x = x.conj() if is_adjoint else x
    else:
        kind = "he" if packed.dtype.kind == "c" else "sy"
        x, _ = _lapack(f"{kind}trs", packed)(packed, pivots, b, lower=lower)
    return x


def _solve(a, b, packed, pivots, widths, *, check_finite=False, **options):
    if b.shape[-2] != a.shape[-1]:
        raise ValueError(f"incompatible shapes: a1.shape={a.shape} and b1.shape={b.shape}")
    if check_finite:
        require_finite(b)
    dtype = dtype_of(a, b)
    packed, b = packed.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if a.ndim == 2:  # the matrix is shared by all right-hand sides
        if b.size == 0:
            return np.zeros(b.shape, dtype)
        columns = np.moveaxis(b, -2, 0).reshape(b.shape[-2], -1)
        x = _solve_one(packed, pivots, widths, columns, **options)
        return np.moveaxis(x.reshape(b.shape[-2], *b.shape[:-2], b.shape[-1]), 0, -2)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*stack, *b.shape[-2:]), dtype)
    packed, pivots, widths, b = [
        np.broadcast_to(each, (*stack, *each.shape[each.ndim - n:]))
        for each, n in ((packed, 2), (pivots, 1), (widths, 1), (b, 2))]
    for i in np.ndindex(stack):
        x[i] = _solve_one(packed[i], pivots[i], widths[i], b[i], **options)
    return x


def _symmetrised(x, structure):
    """Return the part of a gradient or tangent of a matrix that a structure has."""
    if structure == "sym":
        return (x + transposed(x)) / 2
    return hermitian_part(x) if structure in ("her", "pos") else x


def _solve_vjp(op, g):
    (a, _, *factors), x = op.inputs, op.outputs[0]
    options = {**op.attrs, "check_finite": False, "is_adjoint": not op.attrs["is_adjoint"]}
    gb = solve_op(a, g, *factors, **options)
    ga, (needs_a, needs_b, *_) = None, op.needs
    if needs_a:
        outer = matmul(x, adjoint(gb)) if op.attrs["is_adjoint"] else matmul(gb, adjoint(x))
        ga = sum_to(_symmetrised(-outer, op.attrs["structure"]), op.input_specs[0])
    return ga, sum_to(gb, op.input_specs[1]) if needs_b else None, None, None, None


def _solve_jvp(op, ta, tb, *_):
    a, _, *factors = op.inputs
    change = None
    if ta is not None:
        ta = _symmetrised(ta, op.attrs["structure"])
        change = -matmul(adjoint(ta) if op.attrs["is_adjoint"] else ta, op.outputs[0])
    return solve_op(
        a, sum_of([tb, change]), *factors, **{**op.attrs, "check_finite": False})


def _solve_in_batch(call):
    a_spec, b_spec = call.input_specs[:2]
    if not any(call.mapped[:1]):
        ndim = max(a_spec.ndim, b_spec.ndim)
        inputs = [batch_axis.with_axes(x, ndim) if mapped else x
                  for x, mapped in zip(call.inputs, call.mapped, strict=True)]
        return call.again(inputs)
    inputs = batch_axis.repeated(call)
    if inputs is None or min(a_spec.ndim, b_spec.ndim) < 2:
        return NotImplemented
    ndim = max(a_spec.ndim, b_spec.ndim)
    inputs = [
        batch_axis.with_axes(x, spec.ndim + ndim - (b_spec if i == 1 else a_spec).ndim)
        for i, (x, spec) in enumerate(zip(inputs, call.input_specs, strict=True))]
    if call.attrs["structure"] == "gen":  # NumPy takes stacks
        a = adjoint(inputs[0]) if call.attrs["is_adjoint"] else inputs[0]
        return stacks_op(a, inputs[1])
    return call.again(inputs)


solve_op = general(
    "ScipyLinalgSolve", _solve, vjp=_solve_vjp, jvp=_solve_jvp, batched=in_stacks(_solve_jvp),
    saved_outputs=(0,), optional_tangents=(0, 1, 2, 3, 4), shape_rule=solution_spec("solve"),
    batch=_solve_in_batch)


def _solve_by_factor(a, b, **options):
    factors = factors_op(a, **options)
    return by_columns(
        lambda a, b: solve_op(a, b, *factors, **options, is_adjoint=False), a, b)


def _band_of_three(a):
    """Return the three middle diagonals, as rows of a band."""
    corner = 0 * a[..., :1, 0]
    return stack([
        concatenate([corner, diagonal(a, 1, -2, -1)], -1), diagonal(a, 0, -2, -1),
        concatenate([diagonal(a, -1, -2, -1), corner], -1)], -2)


def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True,
          assume_a=None, transposed=False) -> Any:
    """Solve linear equations, as `scipy.linalg.solve`; derivatives reuse the factor.

    Without `assume_a`, tensors are solved as general matrices.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve
    >>> a = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> cytape.grad(lambda b: np.sum(solve(a, b, assume_a="pos")))(np.ones(2))
    array([0.5 , 0.25])
    """
    a, b = joined(a), joined(b)
    if not any_tensor(a, b):
        return linalg.solve(
            a, b, lower, overwrite_a, overwrite_b, check_finite, assume_a, transposed)
    if assume_a not in STRUCTURES:
        raise ValueError(f"{assume_a} is not a recognized matrix structure")
    a, b = together(a, b)
    structure = STRUCTURES[assume_a]
    if transposed:
        if a.dtype.kind == "c":
            raise NotImplementedError(
                "scipy.linalg.solve can currently not solve a^T x = b or a^H x = b for complex "
                "matrices.")
        a = swapaxes(a, -1, -2)
        lower = not lower
        structure = {"upper triangular": "lower triangular",
                     "lower triangular": "upper triangular"}.get(structure, structure)
    if structure == "diagonal":
        return solve_banded(
            (0, 0), diagonal(a, 0, -2, -1)[..., None, :], b, check_finite=check_finite)
    if structure.endswith("triangular"):
        return solve_triangular(
            a, b, lower=structure.startswith("lower"), check_finite=check_finite)
    if structure == "tridiagonal":
        return solve_banded((1, 1), _band_of_three(a), b, check_finite=check_finite)
    if structure == "gen" and len(a.shape or ()) > 2:
        return by_columns(stacks_op, a, b)
    return _solve_by_factor(
        a, b, structure=structure, lower=bool(lower), check_finite=bool(check_finite))


def inv(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False) -> Any:
    """Invert matrices, as `scipy.linalg.inv`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import inv
    >>> cytape.grad(lambda a: inv(a)[0, 0])(np.array([[2.0, 0.0], [0.0, 4.0]])) + 0.0
    array([[-0.25,  0.  ],
           [ 0.  ,  0.  ]])
    """
    a = joined(a)
    if not is_tensor(a):
        return linalg.inv(a, overwrite_a, check_finite, assume_a=assume_a, lower=lower)
    if STRUCTURES.get(assume_a) == "gen":
        return numpys_inv(a)
    return solve(a, identities_op(a), lower, check_finite=check_finite, assume_a=assume_a)
