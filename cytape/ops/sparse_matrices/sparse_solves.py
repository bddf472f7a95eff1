"""Solutions of sparse equations by SuperLU: `spsolve`, `splu`, `factorized`.

The op's attribute `factors` keeps the last factorisation, which the derivatives reuse: it is used
again for equal values only. The rows of a matrix are the columns of its transpose, so that SuperLU
factors the transpose, which needs no copy.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import linalg as sparse_linalg

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, operand
from cytape.ops.engine.op_kinds import general
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.scipy_linalg.linear_systems import any_tensor
from cytape.ops.shaping import ndim, ravel
from cytape.ops.sparse_matrices.sparse_products import columns_in_batch, product_op, sampled_op
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor, sparse_tensor
from cytape.ops.submodules.matrix_parts import dtype_of, sum_of
from cytape.tensor.values.spec import symbolic_spec


class Factors:
    """The last factorisation of a matrix with constant positions."""

    def __init__(self, pattern, **options):
        self.pattern, self.options = pattern, options
        self._last = None  # values and factors

    def of(self, data):
        """Return SuperLU's factors of the transpose for these values."""
        last = self._last
        if last is not None and last[0].dtype == data.dtype and np.array_equal(last[0], data):
            return last[1]
        matrix = self.pattern.columns_matrix(np.array(data))
        factors = sparse_linalg.splu(matrix, **self.options)
        self._last = matrix.data, factors
        return factors


def _solve(data, b, *, factors, is_adjoint, if_singular):
    dtype = dtype_of(data, b)
    if data.dtype.kind != "c" or dtype.kind != "c":
        data = data.astype(np.result_type(data.dtype, np.float32, *(
            [] if dtype.kind == "c" else [dtype])), copy=False)
    data = data.astype(dtype_of(data), copy=False)
    try:
        found = factors.of(data)
    except RuntimeError as error:
        if if_singular == "raise" or "singular" not in str(error):
            raise
        warnings.warn("Matrix is exactly singular", sparse_linalg.MatrixRankWarning, stacklevel=2)
        return np.full(b.shape, np.nan, dtype)
    if b.size == 0:
        return np.zeros(b.shape, dtype)
    kind = "N" if is_adjoint else "T"
    if data.dtype.kind == "c":
        b = b.conj() if is_adjoint else b
        x = found.solve(b.astype(data.dtype), kind)
        x = x.conj() if is_adjoint else x
    elif b.dtype.kind == "c":
        x = found.solve(b.real.astype(data.dtype), kind) + 1j * found.solve(
            b.imag.astype(data.dtype), kind)
    else:
        x = found.solve(b.astype(data.dtype, copy=False), kind)
    return x.astype(dtype, copy=False)


def _again(op, b, is_adjoint):
    return solve_op(op.inputs[0], b, **{
        **op.attrs, "is_adjoint": is_adjoint, "if_singular": "raise"})


def _vjp(op, g):
    pattern, is_adjoint = op.attrs["factors"].pattern, op.attrs["is_adjoint"]
    x, gb = op.outputs[0], _again(op, g, not is_adjoint)
    g_data = None
    if op.needs[0]:
        left, right = (x, gb) if is_adjoint else (gb, x)
        g_data = -sampled_op(left, conj_if_complex(right), pattern=pattern)
    return g_data, gb


def _jvp(op, t_data, tb):
    pattern, is_adjoint, x = op.attrs["factors"].pattern, op.attrs["is_adjoint"], op.outputs[0]
    change = None
    if t_data is not None:
        t_data = conj_if_complex(t_data) if is_adjoint else t_data
        change = -product_op(t_data, x, pattern=pattern, transposed=is_adjoint)
    return _again(op, sum_of([tb, change]), is_adjoint)


solve_op = general(
    "ScipySparseSolve", _solve, vjp=_vjp, jvp=_jvp, saved_inputs=(0,), saved_outputs=(0,),
    optional_tangents=(0, 1), batch=columns_in_batch,
    shape_rule=lambda data, b, **_: symbolic_spec(b.shape, dtype_of(data, b)))


def checked_system(name, A, b):  # noqa: N803 (SciPy's name)
    """Return the matrix as a SparseTensor and the right-hand side, or raise SciPy's errors."""
    if isinstance(b, SparseTensor) or sparse.issparse(b):
        raise TypeError(
            f"{name}: a sparse right-hand side cannot be combined with tensors; pass b.toarray()")
    matrix = sparse_tensor(A)
    if matrix is None:
        raise TypeError(f"{name}: A must be a sparse matrix if an argument is a tensor, got "
                        f"{type(A).__name__}; solve dense equations by cytape.scipy.linalg.solve")
    b = operand(joined(b))
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square (has shape {matrix.shape})")
    if b.shape is not None and (ndim(b) not in (1, 2) or b.shape[0] not in (
            None, matrix.shape[0])):
        raise ValueError(f"matrix - rhs dimension mismatch ({matrix.shape} - {b.shape})")
    data, b = together(matrix.data, b)
    return SparseTensor(data, matrix.pattern), b


def spsolve(A, b, permc_spec=None, use_umfpack=True) -> Any:  # noqa: N803
    """Solve sparse equations, as `scipy.sparse.linalg.spsolve`; derivatives reuse the factors.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.sparse import csr_array
    >>> from cytape.scipy.sparse.linalg import spsolve
    >>> def f(values):
    ...     return np.sum(spsolve(csr_array((values, [0, 1], [0, 1, 2])), np.ones(2)))
    >>> cytape.grad(f)(np.array([1.0, 2.0]))
    array([-1.  , -0.25])
    """
    if not isinstance(A, SparseTensor) and not any_tensor(A, b):
        return sparse_linalg.spsolve(A, b, permc_spec, use_umfpack)
    matrix, b = checked_system("spsolve", A, b)
    if ndim(b) == 2 and b.shape[1] == 1:
        b = ravel(b)  # as in SciPy
    return solve_op(
        matrix.data, b, factors=Factors(matrix.pattern, permc_spec=permc_spec), is_adjoint=False,
        if_singular="warn")


class SparseFactors:
    """LU factors of a sparse matrix, with the method `solve` of `scipy.sparse.linalg.SuperLU`.

    Those of a matrix of SciPy have all attributes of SuperLU's object.
    """

    def __init__(self, matrix, options, theirs=None):
        self._matrix, self._theirs, self.shape = matrix, theirs, matrix.shape
        self._factors = Factors(matrix.pattern, **options)

    def __getattr__(self, name):
        if name.startswith("__") or self._theirs is None:
            raise AttributeError(f"the factors of a SparseTensor have no attribute {name!r}")
        return getattr(self._theirs, name)

    def solve(self, rhs, trans="N"):
        """Solve equations with the matrix, its transpose ("T") or its adjoint ("H")."""
        if self._theirs is not None and not any_tensor(rhs):
            return self._theirs.solve(rhs, trans)
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        matrix, b = checked_system("splu", self._matrix, rhs)
        turn = conj_if_complex if trans == "T" else lambda x: x
        return turn(solve_op(
            matrix.data, turn(b), factors=self._factors, is_adjoint=trans != "N",
            if_singular="raise"))


def splu(A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None,  # noqa: N803
         options=None) -> Any:
    """Factor a sparse matrix, as `scipy.sparse.linalg.splu`.

    The method `solve` of the factors takes tensors.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.sparse import csr_array
    >>> from cytape.scipy.sparse.linalg import splu
    >>> def f(values):
    ...     return splu(csr_array((values, [0, 1], [0, 1, 2]))).solve(np.ones(2))[1]
    >>> cytape.grad(f)(np.array([1.0, 2.0])) + 0.0
    array([ 0.  , -0.25])
    """
    given = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax,
             "panel_size": panel_size, "options": options}
    if is_tensor(A):
        raise TypeError("A must be a sparse matrix, got a dense tensor: call "
                        "cytape.scipy.linalg.lu_factor")
    theirs = None if isinstance(A, SparseTensor) else sparse_linalg.splu(A, **given)
    if A.shape[0] != A.shape[1]:
        raise ValueError("can only factor square matrices")
    return SparseFactors(
        sparse_tensor(A), {name: x for name, x in given.items() if x is not None}, theirs)


def factorized(A) -> Any:  # noqa: N803
    """Return a function that solves equations with a matrix, as `scipy.sparse.linalg.factorized`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.sparse import csr_array
    >>> from cytape.scipy.sparse.linalg import factorized
    >>> solve = factorized(csr_array((cytape.constant([2.0, 4.0]), [0, 1], [0, 1, 2])))
    >>> solve(np.ones(2)).numpy()
    array([0.5 , 0.25])
    """
    return splu(A if isinstance(A, SparseTensor) or is_tensor(A) else sparse.csc_array(A)).solve
