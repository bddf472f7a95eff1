"""Systems of equations, inverses and determinants.

The derivatives are those of Giles, "Collected matrix derivative results for forward and reverse
mode algorithmic differentiation" (2008).
"""

import math
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from cytape.ops import reductions
from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.elementwise import conj, imag, real
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import expand_dims, extents, ndim, ravel, reshape, squeeze, transpose
from cytape.ops.special_kernels import small_matrices
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    columns,
    dtype_of,
    in_matrix,
    matmul,
    real_dtype,
    square_shape,
    stacked_shape,
    total,
    transposed,
)
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["det", "inv", "slogdet", "solve", "tensorinv", "tensorsolve"]


# -- solve and inv ---------------------------------------------------------------------------------


BLOCK = 64  # rows per block of the elimination


def _solve(a, b, triangle=None):
    """Solve equations; `triangle` is "lower" or "upper" for triangular `a`."""
    if triangle is None or a.shape[-1] <= BLOCK:
        return np.linalg.solve(a, b)
    dtype = np.result_type(a, b)
    a, b = [x.astype(np.result_type(x, float), copy=False) for x in (a, b)]  # as in LAPACK
    return _by_halves(a, b, triangle == "lower").astype(dtype, copy=False)


def _by_halves(a, b, is_lower):
    """Solve for one half of the unknowns, then for the other, mostly by products."""
    if a.shape[-1] <= BLOCK:
        return np.linalg.solve(a, b)
    middle = a.shape[-1] // 2
    first, last = slice(middle), slice(middle, None)
    if not is_lower:
        first, last = last, first
    x = _by_halves(a[..., first, first], b[..., first, :], is_lower)
    y = _by_halves(
        a[..., last, last], b[..., last, :] - a[..., last, first] @ x, is_lower)
    return np.concatenate((x, y) if is_lower else (y, x), -2)


def opposite(triangle):
    """Return the triangle of the transposes, None for matrices that are not triangular."""
    return {"lower": "upper", "upper": "lower"}.get(triangle)


def _solve_spec(a, b, **_):
    *stack, side, _ = square_shape(a, "solve")
    *other, height, width = stacked_shape(b, "solve")
    if shape_rules.differ(side, height):
        raise ValueError(
            f"solve: matrices of {side} rows do not fit right-hand sides of {height} rows"
        )
    shape = shape_rules.broadcast((*stack,), (*other,), what="solve")
    return symbolic_spec((*shape, height if side is None else side, width), dtype_of(a, b))


def _solve_vjp(op, g):
    a, x = op.inputs[0], op.outputs[0]
    gb = solve_op(adjoint(a), g, triangle=opposite(op.attrs.get("triangle")))
    needs_a, needs_b = op.needs
    return (
        sum_to(-matmul(gb, adjoint(x)), op.input_specs[0]) if needs_a else None,
        sum_to(gb, op.input_specs[1]) if needs_b else None,
    )


def _solve_jvp(op, ta, tb):
    a, x = op.inputs[0], op.outputs[0]
    change = tb
    if ta is not None:
        change = -matmul(ta, x)
        if tb is not None:
            change = tb + change
    return solve_op(a, change, **op.attrs)


def _solve_batched(op, *tangents):
    """Add stack axes so that all operands have equally many, with the batch axis in front."""
    n_axes = max([spec.ndim for spec in op.input_specs])
    return _solve_jvp(op, *[
        t if t is None else t[(slice(None), *(None,) * (n_axes - spec.ndim))]
        for t, spec in zip(tangents, op.input_specs, strict=True)
    ])  # fmt: skip


def _solve_in_batch(call):
    (a, b), (a_spec, b_spec) = call.inputs, call.input_specs
    if b_spec.ndim > 1:
        return batch_axis.aligned(call)
    if not call.mapped[1]:
        return call.again([a, b])
    if a_spec.ndim > 2:
        return NotImplemented
    return call.again([a, b[..., None]])[..., 0]


solve_op = general(
    "Solve",
    forward=_solve,
    vjp=_solve_vjp,
    jvp=_solve_jvp,
    saved_inputs=(0,),
    saved_outputs=(0,),
    optional_tangents=(0, 1),
    batched=_solve_batched,
    shape_rule=_solve_spec,
    batch=_solve_in_batch,
)


@numpy_function(np.linalg.solve, "a", "b")
def solve(a, b) -> Any:
    """Solve linear equations, as `numpy.linalg.solve`.

    Examples
    --------
    >>> import cytape
    >>> a = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> cytape.grad(lambda b: np.sum(np.linalg.solve(a, b)))(np.ones(2))
    array([0.5 , 0.25])
    """
    a, b = together(a, b)
    if ndim(b) != 1:
        return solve_op(a, b)
    return squeeze(solve_op(a, expand_dims(b, 1)), -1)


def _is_small(a):
    return (a.dtype.char in "fd" and a.ndim > 1
            and a.shape[-2] == a.shape[-1] <= small_matrices.SMALL)


def quick_inverse(a):
    """Return inverses for derivatives, whose last bits need not be NumPy's."""
    inverse = small_matrices.inverse(a) if _is_small(a) else None
    return np.linalg.inv(a) if inverse is None else inverse


def _inverse(a, *, singular, exact=True):
    """Return inverses; `singular`: "raise" or "nan", for singular matrices."""
    if not exact:
        return quick_inverse(a)
    try:
        return np.linalg.inv(a)
    except LinAlgError:
        if singular == "raise" or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise
        if a.ndim > 2:
            return np.stack([_inverse(matrix, singular=singular) for matrix in a])
        return np.full(a.shape, np.nan, dtype_of(a))


def _inverse_tangent(op, t):
    y = op.outputs[0]
    return -matmul(matmul(y, t), y)


inv_op = general(
    "MatrixInverse",
    forward=_inverse,
    vjp=lambda op, g: -matmul(
        matmul(adjoint(op.outputs[0]), g), adjoint(op.outputs[0])),
    jvp=_inverse_tangent,
    batched=_inverse_tangent,
    saved_inputs=(),
    saved_outputs=(0,),
    shape_rule=lambda a, **_: symbolic_spec(square_shape(a, "inv"), dtype_of(a)),
    batch=batch_axis.stacked,
)


def inv(a) -> Any:
    """Invert matrices, as `numpy.linalg.inv`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.inv(a)[0, 0])(np.array([[2.0, 0.0], [0.0, 4.0]])) + 0.0
    array([[-0.25,  0.  ],
           [ 0.  ,  0.  ]])
    """
    return inv_op(a, singular="raise")


# -- determinants ----------------------------------------------------------------------------------


def _inverse_in_rule(op):
    return inv_op(op.inputs[0], singular="raise", exact=False)


def _cofactors_vjp(op, g):
    c, x = conj_if_complex(op.outputs[0]), adjoint(_inverse_in_rule(op))
    return c * total(x * g) - matmul(matmul(c, transposed(g)), x), None


def _cofactors_jvp(op, t, _):
    c, x = op.outputs[0], transposed(_inverse_in_rule(op))
    return total(c * t) * x - matmul(matmul(x, transposed(t)), c)


def determinant_ops(prefix, invert):
    """Declare the determinant and its derivatives, by a function that inverts large matrices."""

    def forward(a, det):
        cofactors = small_matrices.cofactors(a, det) if _is_small(a) else None
        if cofactors is not None:
            return cofactors
        try:
            inverse = invert(a)
        except LinAlgError:  # singular matrices have cofactors, too
            u, s, vh = np.linalg.svd(a)
            others = np.where(np.eye(s.shape[-1], dtype=bool), 1, columns(s)).prod(-1)
            return ((np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
                    * ((u * columns(others)) @ vh).conj())  # fmt: skip
        return transposed(in_matrix(det) * inverse)

    # The determinant is an input, to avoid computing it again; the derivative is in the matrix.
    cofactors = general(
        prefix + "Cofactors",
        forward=forward,
        vjp=_cofactors_vjp,
        jvp=_cofactors_jvp,
        batched=_cofactors_jvp,
        saved_inputs=(0,),
        saved_outputs=(0,),
        optional_tangents=(1,),
        shape_rule=lambda a, det: symbolic_spec(square_shape(a, "det"), dtype_of(a)),
        batch=batch_axis.stacked,
    )

    def jvp(op, t):
        return reductions.sum(cofactors(op.inputs[0], op.outputs[0]) * t, (-2, -1))

    det = general(
        prefix + "Determinant",
        forward=np.linalg.det,
        vjp=lambda op, g: in_matrix(g) * conj_if_complex(cofactors(op.inputs[0], op.outputs[0])),
        jvp=jvp,
        batched=jvp,
        saved_outputs=(0,),
        shape_rule=lambda a: symbolic_spec(square_shape(a, "det")[:-2], dtype_of(a)),
        batch=batch_axis.stacked,
    )
    return det, cofactors


det_op, cofactors_op = determinant_ops("", np.linalg.inv)


def det(a) -> Any:
    """Return the determinants of matrices, as `numpy.linalg.det`.

    Its gradient, the cofactors, exists for singular matrices, too; second derivatives need the
    inverse.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(np.linalg.det)(np.array([[1.0, 2.0], [3.0, 4.0]])).round(12)
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    return det_op(a)


SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


def _slogdet_spec(a):
    shape, dtype = square_shape(a, "slogdet")[:-2], dtype_of(a)
    return SlogdetResult(symbolic_spec(shape, dtype), symbolic_spec(shape, real_dtype(dtype)))


def _slogdet_vjp(op, g_sign, g_log):
    sign = op.outputs[0]
    weight = g_log
    if sign.dtype.kind == "c" and g_sign is not None:  # its phase changes with the imaginary part
        turn = 1j * imag(g_sign * conj(sign))
        weight = turn if g_log is None else g_log + turn
    if weight is None:
        return None
    return in_matrix(weight) * adjoint(_inverse_in_rule(op))


def _slogdet_jvp(op, t):
    sign = op.outputs[0]
    change = reductions.sum(transposed(_inverse_in_rule(op)) * t, (-2, -1))
    if sign.dtype.kind != "c":
        return None, change
    return sign * (1j * imag(change)), real(change)


slogdet_op = general(
    "SignAndLogDeterminant",
    forward=np.linalg.slogdet,
    vjp=_slogdet_vjp,
    jvp=_slogdet_jvp,
    batched=_slogdet_jvp,
    saved_outputs=(0,),
    optional_gradients=(0, 1),
    shape_rule=_slogdet_spec,
    batch=batch_axis.stacked,
)


def slogdet(a) -> Any:
    """Return sign and logarithm of the magnitude of determinants, as `numpy.linalg.slogdet`.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: np.linalg.slogdet(a).logabsdet)(np.diag([2.0, 4.0]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return slogdet_op(a)


# -- tensors as matrices ---------------------------------------------------------------------------


def _size_of(lengths):
    size = 1
    for length in lengths:
        size = size * length
    return size


@numpy_function(np.linalg.tensorinv)
def tensorinv(a, ind=2) -> Any:
    """Invert a linear map of tensors, as `numpy.linalg.tensorinv`.

    Examples
    --------
    >>> import cytape
    >>> a = cytape.constant(2 * np.eye(4).reshape(4, 2, 2))
    >>> np.linalg.tensorinv(a, ind=1).shape
    (2, 2, 4)
    """
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    a = joined(a)
    lengths = extents(a)
    matrix = reshape(a, (_size_of(lengths[ind:]), -1))
    return reshape(inv(matrix), (*lengths[ind:], *lengths[:ind]))


@numpy_function(np.linalg.tensorsolve, "a", "b")
def tensorsolve(a, b, axes=None) -> Any:
    """Solve equations of tensors, as `numpy.linalg.tensorsolve`.

    Examples
    --------
    >>> import cytape
    >>> a = 2 * np.eye(4).reshape(2, 2, 4)
    >>> np.linalg.tensorsolve(a, cytape.constant(np.ones((2, 2)))).numpy()
    array([0.5, 0.5, 0.5, 0.5])
    """
    a, b = together(operand(a), operand(b))
    n_axes = ndim(a)
    if axes is not None:
        order = list(range(n_axes))
        for axis in axes:
            order.remove(axis)
            order.insert(n_axes, axis)
        a = transpose(a, order)
    lengths = extents(a)
    side, result = _size_of(lengths[ndim(b) - n_axes:]), lengths[ndim(b) - n_axes:]
    if not is_tensor(side) and None not in a.shape and math.prod(a.shape) != side**2:
        raise LinAlgError(
            "Input arrays must satisfy the requirement "
            "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    columns = -1 if is_tensor(side) else side
    return reshape(solve(reshape(a, (side, columns)), ravel(b)), result)
