"""Linear algebra, differentiable: `cytape.numpy.linalg` with autograd's `eigh`."""

import cytape.numpy as _functions
from cytape.numpy import linalg as _linalg
from cytape.numpy.linalg import *  # noqa: F403
from cytape.tensor.tensor import Tensor

__getattr__ = _linalg.__getattr__
__all__ = [*_linalg.__all__, "T"]
_dot = _functions.matmul


def T(x):
    """Exchange the last two axes."""
    return _functions.swapaxes(x, -1, -2)


def eigh(a, UPLO="L"):
    """Return eigenvalues and eigenvectors, as `numpy.linalg.eigh`.

    The derivative is that of the elements that are read: those of one triangle.

    Examples
    --------
    >>> import cytape
    >>> cytape.grad(lambda a: eigh(a)[0][1])(_functions.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[0.5, 0. ],
           [1. , 0.5]])
    """
    if isinstance(a, Tensor):
        triangle = _functions.tril(a, -1) if UPLO.upper() == "L" else _functions.triu(a, 1)
        diagonal = _functions.eye(a.shape[-1]) * _functions.real(a)
        a = triangle + diagonal + T(_functions.conj(triangle))
    return _linalg.eigh(a, UPLO)
