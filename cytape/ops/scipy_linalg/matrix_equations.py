"""Matrix equations: Sylvester's and Lyapunov's.

Each backward pass solves the adjoint equation by SciPy's solver of the same name.
"""

from typing import Any

import numpy as np
import scipy.linalg as linalg

from cytape.ops.adjoints.conform import sum_to
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import joined
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import general
from cytape.ops.scipy_linalg.linear_systems import any_tensor, in_stacks
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import atleast_2d
from cytape.ops.submodules.matrix_parts import (
    adjoint,
    dtype_of,
    matmul,
    square_shape,
    stacked_shape,
    sum_of,
)
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = [
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov",
    "solve_sylvester"]


# -- Sylvester -------------------------------------------------------------------------------------


def _sylvester_vjp(op, g):
    (a, b), x = op.inputs[:2], op.outputs[0]
    gq = solve_sylvester_op(adjoint(a), adjoint(b), g)
    return tuple([
        sum_to(each, spec) for each, spec in zip(
            (-matmul(gq, adjoint(x)), -matmul(adjoint(x), gq), gq), op.input_specs, strict=True)])


def _sylvester_jvp(op, ta, tb, tq):
    x = op.outputs[0]
    change = sum_of([
        tq, None if ta is None else -matmul(ta, x), None if tb is None else -matmul(x, tb)])
    return solve_sylvester_op(*op.inputs[:2], change)


def _solve_sylvester(*matrices):
    """Call SciPy's function with matrices of one dtype.

    It computes with booleans in single precision. If only one matrix is complex it takes the real
    Schur form of the other for triangular, and is wrong for complex eigenvalues.
    """
    dtype = dtype_of(*matrices)
    stack = np.broadcast_shapes(*[x.shape[:-2] for x in matrices])
    if 0 in stack:  # which SciPy refuses; sqrtm of such has a derivative
        return np.zeros((*stack, *matrices[-1].shape[-2:]), dtype)
    return linalg.solve_sylvester(*[x.astype(dtype, copy=False) for x in matrices])


def _spec_of_last(what, *specs):
    """Return the spec of a solution, of the extents of the last operand; raise if others differ."""
    sides = [square_shape(spec, what)[-1] for spec in specs[:-1]]
    if any(shape_rules.differ(sides[-i], n) for i, n in zip(
            (0, 1), stacked_shape(specs[-1], what)[-2:], strict=True)):
        raise ValueError(
            f"{what}: incompatible shapes {', '.join([str(spec.shape) for spec in specs])}")
    stacks = [stacked_shape(spec, what)[:-2] for spec in specs]
    stack = stacks[0]
    for other in stacks[1:]:
        stack = shape_rules.broadcast(stack, other, what=what)
    return symbolic_spec((*stack, *specs[-1].shape[-2:]), dtype_of(*specs))


solve_sylvester_op = general(
    "ScipyLinalgSolveSylvester", _solve_sylvester,
    vjp=_sylvester_vjp, jvp=_sylvester_jvp, batched=in_stacks(_sylvester_jvp),
    saved_inputs=(0, 1), saved_outputs=(0,), optional_tangents=(0, 1, 2),
    shape_rule=lambda a, b, q: _spec_of_last("solve_sylvester", a, b, q),
    batch=batch_axis.aligned)


def solve_sylvester(a, b, q) -> Any:
    """Solve ``a x + x b = q``, as `scipy.linalg.solve_sylvester`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_sylvester
    >>> cytape.grad(lambda a: solve_sylvester(a, np.eye(1), np.eye(1))[0, 0])(np.eye(1))
    array([[-0.25]])
    """
    a, b, q = map(joined, (a, b, q))
    if not any_tensor(a, b, q):
        return linalg.solve_sylvester(a, b, q)
    a, b, q = map(convert_to_tensor, together(a, b, q))
    _spec_of_last("solve_sylvester", a.spec, b.spec, q.spec)  # SciPy reads beyond small arrays
    return solve_sylvester_op(a, b, q)


# -- Lyapunov --------------------------------------------------------------------------------------


def _continuous_vjp(op, g):
    a, x = op.inputs[0], op.outputs[0]
    gq = continuous_op(adjoint(a), g)
    needs_a, _ = op.needs
    ga = -(matmul(gq, adjoint(x)) + matmul(adjoint(gq), x)) if needs_a else None
    return None if ga is None else sum_to(ga, op.input_specs[0]), sum_to(gq, op.input_specs[1])


def _continuous_jvp(op, ta, tq):
    a, x = op.inputs[0], op.outputs[0]
    change = None if ta is None else -(matmul(ta, x) + matmul(x, adjoint(ta)))
    return continuous_op(a, sum_of([tq, change]))


def _as_floats(a, q):
    dtype = dtype_of(a, q)
    return a.astype(dtype, copy=False), q.astype(dtype, copy=False)


continuous_op = general(
    "ScipyLinalgContinuousLyapunov",
    lambda a, q: linalg.solve_continuous_lyapunov(*_as_floats(a, q)),
    vjp=_continuous_vjp, jvp=_continuous_jvp, batched=in_stacks(_continuous_jvp),
    saved_inputs=(0,), saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=lambda a, q: _spec_of_last("solve_continuous_lyapunov", a, q),
    batch=batch_axis.aligned)


def solve_continuous_lyapunov(a, q) -> Any:
    """Solve ``a x + x a^H = q``, as `scipy.linalg.solve_continuous_lyapunov`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_continuous_lyapunov
    >>> cytape.grad(lambda a: solve_continuous_lyapunov(a, np.eye(1))[0, 0])(np.eye(1))
    array([[-0.5]])
    """
    a, q = joined(a), joined(q)
    if not any_tensor(a, q):
        return linalg.solve_continuous_lyapunov(a, q)
    a, q = map(atleast_2d, map(convert_to_tensor, together(a, q)))
    _spec_of_last("solve_continuous_lyapunov", a.spec, q.spec)
    return continuous_op(a, q)


solve_lyapunov = solve_continuous_lyapunov


def _discrete_vjp(op, g):
    a, x = op.inputs[0], op.outputs[0]
    gq = discrete_op(adjoint(a), g, **op.attrs)
    needs_a, _ = op.needs
    ga = None
    if needs_a:
        ga = matmul(matmul(gq, a), adjoint(x)) + matmul(matmul(adjoint(gq), a), x)
    return None if ga is None else sum_to(ga, op.input_specs[0]), sum_to(gq, op.input_specs[1])


def _discrete_jvp(op, ta, tq):
    a, x = op.inputs[0], op.outputs[0]
    change = None
    if ta is not None:
        change = matmul(matmul(ta, x), adjoint(a)) + matmul(matmul(a, x), adjoint(ta))
    return discrete_op(a, sum_of([tq, change]), **op.attrs)


discrete_op = general(
    "ScipyLinalgDiscreteLyapunov",
    lambda a, q, method: linalg.solve_discrete_lyapunov(
        *_as_floats(a, q), method=method).astype(dtype_of(a, q), copy=False),
    vjp=_discrete_vjp, jvp=_discrete_jvp, batched=in_stacks(_discrete_jvp),
    saved_inputs=(0,), saved_outputs=(0,), optional_tangents=(0, 1),
    shape_rule=lambda a, q, method: _spec_of_last("solve_discrete_lyapunov", a, q),
    batch=batch_axis.aligned)


def solve_discrete_lyapunov(a, q, method=None) -> Any:
    """Solve ``a x a^H - x + q = 0``, as `scipy.linalg.solve_discrete_lyapunov`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.linalg import solve_discrete_lyapunov
    >>> cytape.grad(lambda q: solve_discrete_lyapunov(np.eye(1) / 2, q)[0, 0])(np.eye(1))
    array([[1.33333333]])
    """
    a, q = joined(a), joined(q)
    if not any_tensor(a, q):
        return linalg.solve_discrete_lyapunov(a, q, method)
    a, q = map(atleast_2d, map(convert_to_tensor, together(a, q)))
    _spec_of_last("solve_discrete_lyapunov", a.spec, q.spec)
    return discrete_op(a, q, method=method)
