"""Records of the factors of Cholesky and QR."""

import numpy as np

from cytape.ops import OPS
from cytape.ops.submodules import factorizations
from tests.ops.matrices import regular, squared
from tests.ops.op_specs import OpSpec, case, uniform

DTYPES = ("float64", "float32", "complex128", "complex64")


def of_squared(function):
    return lambda a, **options: function(squared(a), **options)


def with_projector(function):
    """Return the factors; of the columns that "complete" adds to two of Q the projector."""

    def call(a):
        q, r = function(a, "complete")
        added = q[..., 2:]
        return q[..., :2], r, np.matmul(added, np.conj(np.swapaxes(added, -1, -2)))

    return call


SPECS = [
    OpSpec(
        "Cholesky", of_squared(factorizations.cholesky), of_squared(np.linalg.cholesky),
        [case((3, 3)), case((2, 2, 2), upper=True), case((0, 0)), case((0, 2, 2)), case((1, 1))],
        domain=regular, dtypes=DTYPES, tolerance=10,
    ),
    OpSpec(
        "QR", factorizations.qr, np.linalg.qr,
        [
            case((4, 3)), case((3, 4)), case((2, 3, 3)), case((2, 2, 4)), case((3, 3), mode="r"),
            case((2, 4, 3), mode="r"), case((2, 3), mode="complete"), case((0, 3, 2)),
            case((3, 3), mode="complete"), case((3, 0)), case((0, 3)),
        ],
        domain=regular, dtypes=DTYPES, tolerance=10,
    ),
    OpSpec("qr", with_projector(factorizations.qr), with_projector(np.linalg.qr),
           [case((4, 2)), case((2, 3, 2))], domain=regular, dtypes=DTYPES, tolerance=10),
]


def _triangle(rng, shape):
    return np.tril(rng.uniform(-1, 1, shape)) / shape[-1] + 2 * np.eye(shape[-1])


def _cholesky_back(lower, g):
    lower = np.tril(lower)
    adjoint = np.conj(np.swapaxes(lower, -1, -2))
    half = np.tril(adjoint @ g) - (adjoint @ g) * np.eye(lower.shape[-1], dtype=g.dtype) / 2
    inverse = np.linalg.inv(lower)
    result = np.conj(np.swapaxes(inverse, -1, -2)) @ half @ inverse
    return (result + np.conj(np.swapaxes(result, -1, -2))) / 2


SPECS += [
    OpSpec(
        "CholeskyBack", OPS["CholeskyBack"], _cholesky_back,
        [case((3, 3), (3, 3)), case((2, 2, 2), (2, 2, 2)), case((70, 70), (70, 70))],
        (_triangle, uniform(-2, 2)), ("float64", "float32"), tolerance=20)]
