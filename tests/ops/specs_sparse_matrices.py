"""Records of the ops on sparse matrices; none without SciPy."""

import numpy as np

import cytape.numpy as cnp
from tests.ops.op_specs import OpSpec, case, uniform

try:
    from scipy import sparse as scipys
    from scipy.sparse import linalg as scipys_linalg

    from cytape.ops.sparse_matrices.iterative_solves import System
    from cytape.ops.sparse_matrices.iterative_solves import solve_op as iterative_op
    from cytape.ops.sparse_matrices.patterns import Pattern
    from cytape.ops.sparse_matrices.sparse_eigenvectors import deflated_op, eigsh_op
    from cytape.ops.sparse_matrices.sparse_products import product_op, sampled_op
    from cytape.ops.sparse_matrices.sparse_solves import Factors, solve_op
except ImportError:
    SPECS = []
else:
    DTYPES = ("float64", "float32", "complex128", "complex64")
    INDICES, INDPTR = np.array([0, 2, 1, 1, 2]), np.array([0, 2, 3, 5])
    PATTERN = Pattern(INDICES, INDPTR, (3, 3))
    OPTIONS = {"is_adjoint": False, "if_singular": "raise"}

    def matrix(data):
        return scipys.csr_array((data, INDICES, INDPTR), shape=(3, 3))

    def native(x):
        return x.astype(x.dtype.newbyteorder("="))

    def dominant(rng, shape):
        return rng.uniform(-1, 1, shape) + np.array([4, 0, 4, 0, 4])

    FULL = Pattern(np.tile(np.arange(3), 3), np.arange(4) * 3, (3, 3))
    EIGSH = (("k", 1), ("v0", (1.0, 2.0, 3.0)), ("tol", 1e-14))

    def full(rng, shape):
        return rng.uniform(-1, 1, shape) + np.diag([2.0, 5.0, 9.0]).ravel()

    def hermitian(data):
        a = cnp.reshape(data, (3, 3))
        return cnp.reshape((a + cnp.conj(cnp.swapaxes(a, 0, 1))) / 2, (9,))

    def sizes(result):
        return result[0], cnp.absolute(result[1]) ** 2

    SPECS = [
        OpSpec("ScipySparseProduct",
               lambda data, x, transposed: product_op(
                   data, x, pattern=PATTERN, transposed=transposed),
               lambda data, x, transposed: (
                   matrix(native(data)).T if transposed else matrix(native(data))) @ native(x),
               [case((5,), (3,), transposed=False), case((5,), (3, 2), transposed=True)],
               dtypes=DTYPES),
        OpSpec("ScipySparseSampledProduct",
               lambda u, v: sampled_op(u, v, pattern=PATTERN),
               lambda u, v: (u[PATTERN.rows] * v[INDICES]).reshape(5, -1).sum(-1),
               [case((3,), (3,)), case((3, 2), (3, 2))], dtypes=DTYPES),
        OpSpec("ScipySparseSolve",
               lambda data, b: solve_op(data, b, factors=Factors(PATTERN), **OPTIONS),
               lambda data, b: np.linalg.solve(matrix(native(data)).toarray(), b),
               [case((5,), (3,)), case((5,), (3, 2))], (dominant, uniform(-2, 2)), DTYPES),
        OpSpec("ScipySparseIterativeSolve",
               lambda data, b: iterative_op(
                   data, b, system=System("gmres", {"rtol": 1e-13}, PATTERN), is_adjoint=False,
                   is_derivative=False)[0],
               lambda data, b: np.linalg.solve(matrix(native(data)).toarray(), b),
               [case((5,), (3,))], (dominant, uniform(-2, 2)), ("float64", "complex128")),
        OpSpec("ScipySparseEigsh",
               lambda data: sizes(eigsh_op(hermitian(data), pattern=FULL, options=EIGSH)),
               lambda data: sizes(scipys_linalg.eigsh(
                   native(hermitian(data)).reshape(3, 3), **dict(EIGSH))),
               [case((9,))], full, ("float64", "complex128"), tolerance=100),
        OpSpec("ScipySparseDeflatedSolve",
               lambda g: deflated_op(
                   np.diag([1.0, 3.0, 6.0]).ravel(), np.ones(1), np.eye(3)[:, :1], g, pattern=FULL),
               lambda g: g * np.array([[0.0], [0.5], [0.2]]), [case((3, 1))],
               dtypes=("float64",)),
    ]
