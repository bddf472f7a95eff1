"""Functions of `scipy.sparse.linalg` without derivatives: errors that name a replacement."""

import functools

import numpy as np
from scipy.sparse import linalg as sparse_linalg

from cytape.errors import DetachedError, NotDifferentiableError, SymbolicTensorError
from cytape.ops.sparse_matrices.sparse_tensors import SparseTensor
from cytape.tensor import Tensor

_INSTEAD = {
    "aslinearoperator": "pass the SparseTensor itself to cg, gmres and other solvers, or write "
                        "A @ x",
    "eigs": "call eigsh if A is Hermitian, or cytape.scipy.linalg.eig(A.toarray())",
    "expm": "call cytape.scipy.linalg.expm(A.toarray())",
    "expm_multiply": "call cytape.scipy.linalg.expm(A.toarray()) @ B, or cytape.scipy.integrate."
                     "solve_ivp with the right-hand side A @ y, the values of A among its args",
    "inv": "call splu(A).solve for the columns that are needed, or "
           "cytape.scipy.linalg.inv(A.toarray())",
    "lobpcg": "call eigsh",
    "lsmr": "call cg with the normal equations, or cytape.scipy.linalg.lstsq(A.toarray(), b)",
    "lsqr": "call cg with the normal equations, or cytape.scipy.linalg.lstsq(A.toarray(), b)",
    "matrix_power": "write the products with a vector, A @ (A @ x), or call "
                    "numpy.linalg.matrix_power(A.toarray(), n)",
    "norm": "call numpy.linalg.norm(A.data), the Frobenius norm, or numpy.linalg.norm(A.toarray(), "
            "ord)",
    "onenormest": "call numpy.linalg.norm(A.toarray(), 1)",
    "spilu": "make a preconditioner of a constant matrix, of A.data.numpy()",
    "spsolve_triangular": "call spsolve",
    "svds": "call cytape.scipy.linalg.svd(A.toarray(), full_matrices=False)",
}
__all__ = list(_INSTEAD)


def _refusing(name):
    theirs = getattr(sparse_linalg, name)

    @functools.wraps(theirs)
    def function(*args, **kwargs):
        if any(isinstance(x, SparseTensor) for x in (*args, *kwargs.values())):
            raise NotDifferentiableError(
                f"{name} has no derivative in the values of a SparseTensor A: {_INSTEAD[name]}")
        try:
            args = [np.asarray(x) if isinstance(x, Tensor) else x for x in args]
        except (DetachedError, SymbolicTensorError) as error:
            raise NotDifferentiableError(
                f"{name} has no derivative: {_INSTEAD[name].replace('A.toarray()', 'A')}"
            ) from error
        return theirs(*args, **kwargs)

    function.refuses_tensors = True
    return function


globals().update({name: _refusing(name) for name in _INSTEAD if hasattr(sparse_linalg, name)})
__all__ = [name for name in __all__ if name in globals()]
