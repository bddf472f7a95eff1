"""Derivatives of eigenvalues and singular values, to second order where values are equal.

The gradient of values g in the matrix is u diag(g) vh, the tangent of values is the diagonal of
u^H t v, for any basis of the vectors of equal values. Along a tangent, a block of equal values
splits into the eigenvalues of its part of u^H t v, and the second derivative of a function of the
values along this tangent needs the basis of the split, which forward mode uses. Reverse mode, and a
second tangent, cannot: they raise an error if the basis matters, or return NaN if vectors are
returned, too, since only these may be used.
"""

import numpy as np

from cytape.errors import NotDifferentiableError
from cytape.ops import reductions
from cytape.ops.adjoints.conform import broadcast_to, sum_to
from cytape.ops.constants import zeros_like
from cytape.ops.elementwise import real
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general, nondifferentiable
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.rearranging import diagonal
from cytape.ops.shapes import shape_rules
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    columns,
    hermitian_part,
    is_negligible,
    matmul,
    rows,
    sum_of,
)
from cytape.tensor.values.spec import symbolic_spec

ROUNDINGS = 100  # of the largest element, which an element may have that is 0


def _equal(w):
    """Return which pairs of sorted values are in one block of equal ones."""
    gaps = ~is_negligible(np.diff(w), w)
    block = np.cumsum(np.concatenate([np.zeros_like(gaps[..., :1]), gaps], -1), -1) if (
        w.shape[-1] > 1) else np.zeros(w.shape, int)
    return columns(block) == rows(block), block


def _pairs(w, kind):
    """Return which pairs of different positions have equal values, for unsorted values of `eig`."""
    equal = is_negligible(columns(w) - rows(w), w) if kind == "eig" else _equal(w)[0]
    return equal & ~np.eye(w.shape[-1], dtype=bool)


def _inner(t, u, vh, kind):
    inner = adjoint(u) @ t @ adjoint(vh)
    return inner if kind == "eig" else hermitian_part(inner)


# -- errors ----------------------------------------------------------------------------------------


def _turned_pairs(t, w, u, vh, kind, zeros_only):
    """Return which pairs of equal values a tangent splits, or moves away from 0."""
    n = w.shape[-1]
    inner = _inner(t, u, vh, kind)
    size = np.abs(t).max((-2, -1), keepdims=True, initial=0) * ROUNDINGS * np.finfo(t.dtype).eps
    along = np.diagonal(inner, 0, -2, -1)
    split = (np.abs(inner) > size) & ~np.eye(n, dtype=bool) | (
        np.abs(columns(along) - rows(along)) > size)
    split = split & _pairs(w, kind) & (not zeros_only)
    if kind != "svd":
        return split
    zero = is_negligible(w, w)
    right, left = t @ adjoint(vh), adjoint(t) @ u
    others = ~zero
    right = right - (u * columns(others)) @ (adjoint(u) @ right)
    left = left - (adjoint(vh) * columns(others)) @ (vh @ left)
    moved = zero & ((np.abs(right) > size).any(-2) | (np.abs(left) > size).any(-2))
    return split | columns(moved) & np.eye(n, dtype=bool)


def _checked(x, w, u, vh, *tangents, kind, zeros_only=False, raises=True):
    """Return x; raise if each of some tangents splits equal values, or if there is no tangent."""
    equal = _pairs(w, kind) & (not zeros_only)
    if kind == "svd":
        equal = equal | columns(is_negligible(w, w)) & np.eye(w.shape[-1], dtype=bool)
    if not equal.any():
        return x
    for t in tangents:
        pairs = _turned_pairs(t, w, u, vh, kind, zeros_only)
        if not pairs.any():
            return x
        equal = pairs
    if not raises:
        return np.full_like(x, np.nan)
    *stack, i, j = np.argwhere(equal)[0].tolist()
    values = "singular values" if kind == "svd" else "eigenvalues"
    number = w[(*stack[len(stack) - w.ndim + 1:], i)]
    which = f"{values} {i} and {j} are equal ({number:.6g})" if i != j else f"one, {i}, is 0"
    raise NotDifferentiableError(
        f"the second derivative of a function of {values} is not known in this mode where {which}, "
        "but for rounding. cytape.hessian has it if no singular value is 0; or write the function "
        "with the matrix, where that is possible: the sum of the squares of eigenvalues is "
        "np.trace(a @ a), of singular values np.sum(np.abs(a) ** 2)")


def _values_of_matrices(*of_values, first=0):
    """Make a batch rule of stacks: inputs from `first` on are matrices, or vectors of values."""

    def rule(call):
        ndims = [spec.ndim for spec in call.input_specs]
        of_matrices = {n for i, n in enumerate(ndims) if i >= first and i not in of_values}
        inputs = batch_axis.repeated(call)
        if len(of_matrices) != 1 or inputs is None:
            return NotImplemented
        [ndim] = of_matrices
        return call.again([
            batch_axis.with_axes(x, ndim - 1) if i in of_values and ndims[i] < ndim - 1 else x
            for i, x in enumerate(inputs)])

    return rule


checked_op = general(
    "CheckedEqualValues", _checked, lambda op, g: (g, *[None for _ in op.needs[1:]]),
    lambda op, t, *_: t, saved_inputs=(), optional_tangents=range(1, 9),
    batched=lambda op, t, *_: t,
    shape_rule=lambda x, *_, **__: x, batch=_values_of_matrices(1, first=2))


# -- gradients of values ---------------------------------------------------------------------------


def _split(u, vh, w, t, *, kind):
    """Return the vectors that a tangent of the matrix splits equal values into."""
    stack = np.broadcast_shapes(u.shape[:-2], t.shape[:-2])
    if kind == "eig" or not _pairs(w, kind).any():
        return tuple(np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (u, vh))
    q = _basis(w, _inner(t, u, vh, kind), kind=kind)
    return u @ q, adjoint(q) @ vh


def _basis(w, inner, *, kind):
    """Return vectors that diagonalise each block, sorted by the values after a small step."""
    equal, block = _equal(w)
    inner = np.where(equal, inner if kind == "eigh" else -inner, 0)
    apart = 3 * np.linalg.norm(inner, axis=(-2, -1), keepdims=True)[..., 0]
    offsets = columns((block * apart).astype(apart.dtype))
    return np.linalg.eigh(inner + offsets * np.eye(equal.shape[-1], dtype=apart.dtype))[1]


def _split_vjp(op, gu, gvh):
    u, vh, w, _ = op.inputs
    moved = [None if g is None else sum_to(checked_op(g, w, u, vh, kind=op.attrs["kind"]), spec)
             for g, spec in zip((gu, gvh), op.input_specs, strict=False)]
    return (*moved, None, None)


def _split_jvp(op, tu, tvh, *_):
    u, vh, w, _ = op.inputs
    return tuple([
        None if t is None else
        broadcast_to(checked_op(t, w, u, vh, kind=op.attrs["kind"]), spec.extents)
        for t, spec in zip((tu, tvh), op.output_specs, strict=True)])


split_op = general(
    "SplitVectors", _split, vjp=_split_vjp, jvp=_split_jvp, optional_tangents=(2, 3),
    shape_rule=lambda u, vh, w, t, **_: (_with_stack_of(u, t), _with_stack_of(vh, t)),
    batch=_values_of_matrices(2))


def _with_stack_of(vectors, t):
    shape, stack = shape_rules.shape_of(vectors, "svd"), shape_rules.shape_of(t, "svd")[:-2]
    return symbolic_spec((*stack, *shape[-2:]), vectors.dtype)


def _gradient_vjp(op, h):
    _, w, u, vh, g = op.inputs
    needed, kind = op.needs, op.attrs["kind"]
    g, of_g = conj_if_complex(g), None
    if needed[4]:
        along = reductions.sum(conj_if_complex(u) * matmul(h, adjoint(vh)), -2)
        of_g = along if kind == "eig" else real(along)
        if needed[0]:  # else g does not depend on the values
            of_g = checked_op(of_g, w, u, vh, h, kind=kind)
    return (
        None, None, matmul(h, adjoint(vh)) * columns(g) if needed[2] else None,
        rows(g) * matmul(adjoint(u), h) if needed[3] else None, of_g)


def _gradient_jvp(op, ta, tw, tu, tvh, tg):
    (_, w, u, vh, g), kind = op.inputs, op.attrs["kind"]
    moved = sum_of([
        None if tu is None else matmul(tu * columns(g), vh),
        None if tvh is None else matmul(u * columns(g), tvh)])
    if tg is not None:
        if ta is not None:
            tg = checked_op(tg, w, u, vh, ta, kind=kind, zeros_only=kind != "eig")
            u, vh = split_op(u, vh, w, ta, kind=kind)
        moved = sum_of([moved, matmul(u * columns(tg), vh)])
    return matmul(u * columns(zeros_like(g)), vh) if moved is None else moved


def _matrix_spec(a, w, u, vh, g, **_):
    *stack, m, _ = shape_rules.shape_of(u, "svd")
    return symbolic_spec((*stack, m, shape_rules.shape_of(vh, "svd")[-1]),
                         np.result_type(u.dtype, vh.dtype, g.dtype))


# a: the matrix, read only for its tangent; u, vh: the vectors of its values w; g: their gradient.
gradient_of_values_op = general(
    "GradientOfValues",
    forward=lambda a, w, u, vh, g, *, kind: (u * columns(g)) @ vh,
    vjp=_gradient_vjp,
    jvp=_gradient_jvp,
    batched=_gradient_jvp,
    optional_tangents=range(5),
    shape_rule=_matrix_spec,
    batch=_values_of_matrices(1, 4),
)


# -- tangents of values ----------------------------------------------------------------------------


def tangent_of_values(a, w, u, vh, t, kind, values_only):
    """Return the tangents of values, given one of the matrix or a batch."""
    u = turning_op(u, a, w, vh, t, kind=kind, values_only=bool(values_only))
    inner = matmul(adjoint(u), matmul(t, adjoint(vh)))
    return diagonal(inner, 0, -2, -1) if kind == "eig" else (
        values_of_blocks_op(w, hermitian_part(inner), kind=kind))


def _values_of_blocks(w, inner, *, kind):
    if _pairs(w, kind).any():
        q = _basis(w, inner, kind=kind)
        return np.sum(np.conj(q) * (inner @ q), -2).real
    return np.diagonal(inner, 0, -2, -1).real.copy()


def _blocks_vjp(op, c):
    q = basis_of_blocks_op(*op.inputs, **op.attrs)
    return None, matmul(q * columns(c), adjoint(q))


def _blocks_jvp(op, _, t):
    q = basis_of_blocks_op(*op.inputs, **op.attrs)
    return real(reductions.sum(conj_if_complex(q) * matmul(t, q), -2))


basis_of_blocks_op = nondifferentiable(
    "BasisOfBlocks", _basis, shape_rule=lambda w, inner, **_: inner, batch=_values_of_matrices(0))
values_of_blocks_op = general(
    "ValuesOfBlocks", _values_of_blocks, vjp=_blocks_vjp, jvp=_blocks_jvp,
    optional_tangents=(0, 1), shape_rule=lambda w, inner, **_: symbolic_spec(
        shape_rules.shape_of(inner, "svd")[:-1], w.dtype), batch=_values_of_matrices(0))


def _turning_vjp(op, g):
    u, _, w, vh, t = op.inputs
    kind, values_only = op.attrs["kind"], op.attrs["values_only"]
    return checked_op(g, w, u, vh, t, kind=kind, raises=values_only), None, None, None, None


def _turning_jvp(op, tu, ta, *_):
    u, _, w, vh, t = op.inputs
    if tu is None:
        return zeros_like(u)
    moving = (t,) if ta is None else (t, ta)
    return checked_op(
        tu, w, u, vh, *moving, kind=op.attrs["kind"], raises=op.attrs["values_only"])


# Vectors u multiplied by a tangent t of the matrix.
turning_op = general(
    "TurningVectors",
    forward=lambda u, a, w, vh, t, *, kind, values_only: u,
    vjp=_turning_vjp,
    jvp=_turning_jvp,
    optional_tangents=range(5),
    shape_rule=lambda u, *_, **__: u,
    batch=_values_of_matrices(2),
)
