"""Iterative solutions of linear equations: `cg`, `gmres`, `bicgstab`, `minres` and others.

A derivative is one more solution, by the same method to the same tolerance, of the adjoint
equations in reverse mode. It raises an error if that does not converge.
"""

from contextlib import contextmanager

import numpy as np
from numpy.linalg import LinAlgError
from scipy.sparse import linalg as sparse_linalg

from cytape.errors import (
    DetachedError,
    NotDifferentiableError,
    SymbolicTensorError,
    TapeStateError,
)
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.engine.op_kinds import general
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.scipy_linalg.linear_systems import any_tensor
from cytape.ops.shaping import ndim, ravel
from cytape.ops.sparse_matrices.patterns import Pattern
from cytape.ops.sparse_matrices.sparse_products import product_op, sampled_op
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor, sparse_tensor
from cytape.ops.submodules.matrix_parts import dtype_of, sum_of
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr"]

_HERMITIAN = ("cg", "minres")  # methods that use the matrix only, not its adjoint
_PRECONDITIONERS = ("M", "M1", "M2")
# Options that only the solution itself has: lists of vectors belong to its matrix.
_OF_THE_SOLUTION = ("callback", "callback_type", "CU", "outer_v")


def _adjoint_of(system, name, operator):
    if operator is None:
        return None
    operator = sparse_linalg.aslinearoperator(operator)
    try:
        operator.rmatvec(np.zeros(operator.shape[0], operator.dtype))
    except NotImplementedError:
        raise NotDifferentiableError(
            f"{system.method}: reverse mode needs the adjoint of {name}, a LinearOperator without "
            "one: pass rmatvec, too, as in LinearOperator(shape, factors.solve, rmatvec=lambda x: "
            "factors.solve(x, 'H')) for factors of spilu or splu") from None
    return operator.H


def _solve(data, b, *start, system, is_adjoint, is_derivative):
    if system.pattern is None:
        system.require_unchanged()
    matrix = system.operator if system.pattern is None else system.pattern.matrix(data)
    options = dict(system.options)
    if is_adjoint:
        matrix = matrix if system.operator is not None and system.method in _HERMITIAN else (
            matrix.T.conj() if system.operator is None else _adjoint_of(system, "A", matrix))
        for name in _PRECONDITIONERS:
            if name in options and system.method not in _HERMITIAN:
                options[name] = _adjoint_of(system, name, options[name])
    if is_derivative:
        options = {name: x for name, x in options.items() if name not in _OF_THE_SOLUTION}
    x, info = getattr(sparse_linalg, system.method)(matrix, b, *start, **options)
    if is_derivative and info != 0:
        raise LinAlgError(
            f"{system.method}: the equations of the derivative did not converge (info = {info}). "
            "Pass a larger maxiter, a preconditioner M, or a larger tolerance rtol")
    return np.asarray(x).astype(_dtype(data, b), copy=False), np.asarray(info, np.int64)


def _dtype(data, b):
    return dtype_of(data, b)


def _again(op, b, is_adjoint):
    return solve_op(op.inputs[0], b, system=op.attrs["system"], is_adjoint=is_adjoint,
                    is_derivative=True)[0]


def _vjp(op, g, _):
    system, is_adjoint, x = op.attrs["system"], op.attrs["is_adjoint"], op.outputs[0]
    gb, g_data = _again(op, g, not is_adjoint), None
    if op.needs[0]:
        left, right = (x, gb) if is_adjoint else (gb, x)
        g_data = -sampled_op(left, conj_if_complex(right), pattern=system.pattern)
    return (g_data, gb, None)[: len(op.needs)]


def _jvp(op, t_data, tb, *_):
    system, is_adjoint, x = op.attrs["system"], op.attrs["is_adjoint"], op.outputs[0]
    change = None
    if t_data is not None and system.pattern is not None:
        t_data = conj_if_complex(t_data) if is_adjoint else t_data
        change = -product_op(t_data, x, pattern=system.pattern, transposed=is_adjoint)
    return _again(op, sum_of([tb, change]), is_adjoint), None


solve_op = general(
    "ScipySparseIterativeSolve", _solve, vjp=_vjp, jvp=_jvp, saved_outputs=(0,),
    optional_tangents=(0, 1, 2), optional_gradients=(1,),
    shape_rule=lambda data, b, *_, **__: (
        symbolic_spec(b.shape, _dtype(data, b)), symbolic_spec((), np.int64)))


class System:
    """The constant parts of a system: the method, its options, and positions or an operator."""

    def __init__(self, method, options, pattern=None, operator=None):
        self.method, self.options = method, options
        self.pattern, self.operator = pattern, operator
        self._product = None if operator is None else self._probe()

    def _probe(self):
        return self.operator.matvec(np.cos(np.arange(self.operator.shape[1])))

    def require_unchanged(self):
        """Raise if the operator is not that of the call: it reads values that have changed."""
        if not np.allclose(self._probe(), self._product, 1e-9, 0, equal_nan=True):
            raise TapeStateError(
                f"{self.method}: the products of the LinearOperator have changed since the call, "
                "so the solution or its derivative would be that of another matrix. Have its "
                "functions keep what they read, as matvec=lambda x, k=k: k * x")


def matrix_of(name, A):  # noqa: N803 (SciPy's name)
    """Return values, pattern and operator of a matrix of any kind."""
    matrix = sparse_tensor(A)
    if matrix is None and isinstance(A, sparse_linalg.LinearOperator):
        return np.zeros(0, A.dtype), None, A
    if matrix is None:
        A = operand(joined(A))  # noqa: N806
        if ndim(A) != 2 or None in A.shape:
            raise ValueError(f"{name}: A must be a matrix of known shape, got shape {A.shape}")
        m, n = A.shape
        pattern = Pattern(
            np.tile(np.arange(n, dtype=np.int32), m), np.arange(m + 1, dtype=np.int32) * n, (m, n))
        matrix = SparseTensor(ravel(A), pattern)
    return matrix.data, matrix.pattern, None


@contextmanager
def _reading(name, A):  # noqa: N803
    """Explain the error of a LinearOperator that reads a recorded tensor."""
    try:
        yield
    except (DetachedError, SymbolicTensorError) as error:
        if not isinstance(A, sparse_linalg.LinearOperator):
            raise
        raise type(error)(
            f"{name}: the LinearOperator reads a tensor that is recorded or symbolic, but it is a "
            f"constant to {name}, so that the gradient would be lost. Pass the matrix as a tensor "
            "or by cytape.scipy.sparse.csr_array; or solve by cytape.scipy.optimize.root(lambda "
            "x, p: product(x, p) - b, x0, args=(p,)), which has derivatives in p; or read "
            "tensor.numpy() if the derivative should stop there") from error


def _method(name):
    theirs = getattr(sparse_linalg, name)

    def method(A, b, x0=None, **options):  # noqa: N803
        with _reading(name, A):
            return solved(A, b, x0, **options)

    def solved(A, b, x0=None, **options):  # noqa: N803
        if not isinstance(A, SparseTensor) and not any_tensor(A, b, x0):
            return theirs(A, b, x0, **options)
        for key in options:
            if is_tensor(options[key]) or isinstance(options[key], SparseTensor):
                raise TypeError(f"{name}: {key} has no derivative and must be constant; pass "
                                "tensor.numpy()")
        data, pattern, operator = matrix_of(name, A)
        shape = operator.shape if pattern is None else pattern.shape
        if shape[0] != shape[1]:
            raise ValueError(f"expected square matrix, but got shape={shape}")
        b = convert_to_tensor(operand(joined(b)))
        if b.shape is not None and b.shape not in ((shape[0],), (None,), (shape[0], 1)):
            raise ValueError(
                f"A and b have incompatible dimensions: shapes {shape} and {b.shape}")
        if ndim(b) == 2:
            b = ravel(b)
        start = () if x0 is None else (ravel(operand(joined(x0))),)
        data, b, *start = together(data, b, *start)
        return solve_op(
            data, b, *start, system=System(name, options, pattern, operator), is_adjoint=False,
            is_derivative=False)

    method.__name__ = method.__qualname__ = name
    method.__module__ = __name__
    method.__doc__ = f"""Solve equations iteratively, as `scipy.sparse.linalg.{name}`.

    Derivatives are in the values of A and in b. They are solutions by the same method, as accurate
    as `rtol`; one that does not converge raises a LinAlgError.
    """
    return method


bicg, bicgstab, cg, cgs = map(_method, ("bicg", "bicgstab", "cg", "cgs"))
gcrotmk, gmres, lgmres = map(_method, ("gcrotmk", "gmres", "lgmres"))
minres, qmr, tfqmr = map(_method, ("minres", "qmr", "tfqmr"))
