"""Some eigenvalues and vectors of a sparse Hermitian matrix: `eigsh`.

The tangent of a vector v is -(A - w)^+ dA v, where ^+ is the inverse on the vectors that are
perpendicular to v. It is the solution of a system with v as one more row and column, which is
regular if w differs from all other eigenvalues. Only the Hermitian part of dA counts.
"""

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy.sparse import linalg as sparse_linalg

from cytape.errors import NotDifferentiableError
from cytape.ops import reductions
from cytape.ops.adjoints.deferred_derivatives import composed
from cytape.ops.calls.operands import is_tensor
from cytape.ops.elementwise import absolute, real
from cytape.ops.engine.op_kinds import general
from cytape.ops.joining import concatenate, stack
from cytape.ops.matrix_products import conj_if_complex
from cytape.ops.ordering import argsort
from cytape.ops.sparse_matrices.iterative_solves import matrix_of
from cytape.ops.sparse_matrices.sparse_products import product_op, sampled_op
from cytape.ops.sparse_matrices.sparse_solves import spsolve
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor, from_elements
from cytape.ops.submodules.matrix_parts import columns, dtype_of, real_dtype
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["eigsh"]


def _bordered(data, w, v, pattern):
    """Return the matrix A - w with v as one more column, and its conjugate as one more row."""
    n = pattern.shape[0]
    places = np.arange(n)
    last = np.full(n, n)
    ones = np.ones(n, real_dtype(np.dtype(v.dtype)))
    return from_elements(
        concatenate([data, -w * ones, v, conj_if_complex(v)]),
        np.concatenate([pattern.rows, places, places, last]),
        np.concatenate([pattern.indices, places, last, places]), (n + 1, n + 1))


def _deflated(data, w, v, g, *, pattern):
    results = []
    for i in range(w.shape[0]):
        side = concatenate([g[:, i], 0 * g[:1, i]])
        results.append(spsolve(_bordered(data, w[i], v[:, i], pattern), side)[:-1])
    return stack(results, -1)


def _deflated_of_arrays(data, w, v, g, *, pattern):
    result = np.empty(g.shape, np.result_type(data, v, g))
    for i in range(w.shape[0]):
        matrix = _bordered(data, w[i], v[:, i], pattern)
        try:
            x = sparse_linalg.splu(matrix.pattern.matrix(matrix.data).tocsc()).solve(
                np.append(g[:, i], 0).astype(matrix.data.dtype))[:-1]
        except RuntimeError:
            x = np.full(g.shape[0], np.inf)
        size = np.abs(matrix.data).max()
        if not np.abs(x).max() * size * 1e5 * np.finfo(result.dtype).eps <= np.abs(g).max():
            raise LinAlgError(
                f"eigsh: the eigenvalue {w[i]:.6g} (number {i}) is equal to another one, and its "
                "vector has no derivative")
        result[:, i] = x
    return result


deflated_op = composed(
    "ScipySparseDeflatedSolve", _deflated_of_arrays, _deflated,
    shape_rule=lambda data, w, v, g, pattern: symbolic_spec(
        g.shape, np.result_type(data.dtype, v.dtype, g.dtype)))


def _vjp(op, gw, gv):
    (w, v), pattern, total = op.outputs, op.attrs["pattern"], None
    if gw is not None:
        total = sampled_op(v * columns(gw), conj_if_complex(v), pattern=pattern)
    if gv is not None:
        z = deflated_op(op.inputs[0], w, v, gv, pattern=pattern)
        of_v = (sampled_op(z, conj_if_complex(v), pattern=pattern)
                + sampled_op(v, conj_if_complex(z), pattern=pattern)) / 2
        total = -of_v if total is None else total - of_v
    return total


def _jvp(op, t):
    (w, v), pattern = op.outputs, op.attrs["pattern"]
    moved = (product_op(t, v, pattern=pattern, transposed=False)
             + product_op(conj_if_complex(t), v, pattern=pattern, transposed=True)) / 2
    of_values = real(reductions.sum(conj_if_complex(v) * moved, 0))
    return of_values, -deflated_op(op.inputs[0], w, v, moved, pattern=pattern)


def _spec(data, *, pattern, options):
    k, dtype = dict(options).get("k", 6), dtype_of(data)
    return symbolic_spec((k,), real_dtype(dtype)), symbolic_spec((pattern.shape[0], k), dtype)


eigsh_op = general(
    "ScipySparseEigsh",
    lambda data, *, pattern, options: sparse_linalg.eigsh(
        pattern.matrix(data.astype(dtype_of(data), copy=False)), **dict(options)),
    vjp=_vjp, jvp=_jvp, saved_outputs=(0, 1), optional_gradients=(0, 1), shape_rule=_spec)


def eigsh(A, k=6, M=None, sigma=None, which="LM", v0=None, ncv=None, maxiter=None,  # noqa: N803
          tol=0, return_eigenvectors=True, Minv=None, OPinv=None, mode="normal",  # noqa: N803
          **options) -> Any:
    """Return some eigenvalues and vectors of a Hermitian matrix, as `scipy.sparse.linalg.eigsh`.

    Derivatives of a vector need an eigenvalue that differs from all others.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.sparse import diags
    >>> from cytape.scipy.sparse.linalg import eigsh
    >>> cytape.grad(lambda d: eigsh(diags(d), k=1)[0][0])(np.array([1.0, 2.0, 4.0])).round(9) + 0.0
    array([0., 0., 1.])
    """
    given = {
        "k": k, "M": M, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter,
        "tol": tol, "Minv": Minv, "OPinv": OPinv, "mode": mode, **options}
    if not any(isinstance(x, SparseTensor) or is_tensor(x) for x in (A, M)):
        return sparse_linalg.eigsh(A, return_eigenvectors=return_eigenvectors, **given)
    if M is not None:
        raise NotDifferentiableError(
            "eigsh of tensors solves A v = w v, without M: call cytape.scipy.linalg.eigh("
            "A.toarray(), M.toarray()), or pass A multiplied by the inverse of the Cholesky factor "
            "of M from both sides")
    for name, x in given.items():
        if is_tensor(x):
            raise TypeError(f"eigsh: {name} has no derivative and must be constant; pass "
                            "tensor.numpy()")
    data, pattern, _ = matrix_of("eigsh", A)
    if pattern.shape[0] != pattern.shape[1]:
        raise ValueError(f"expected square matrix (shape={pattern.shape})")
    if k >= pattern.shape[0]:
        raise TypeError("eigsh of tensors needs k < N: use cytape.scipy.linalg.eigh(A.toarray())")
    w, v = eigsh_op(data, pattern=pattern, options=tuple(given.items()))
    if return_eigenvectors:
        return w, v
    return w[argsort(_last_sought(w, data.dtype.kind == "c", sigma, which))]


def _last_sought(w, is_complex, sigma, which):
    """Return the keys by which SciPy sorts eigenvalues that it computes without vectors."""
    if sigma is not None:
        if not is_complex:
            return w
        w = 1 / (w - sigma)
    return {"LM": absolute(w), "SM": -absolute(w), "SA": -w}.get(which, w)
