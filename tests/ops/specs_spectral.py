"""Records of eigenvalues and singular values."""

import numpy as np

from cytape.ops.submodules import equal_values, spectral
from tests.ops.matrices import hermitian, regular, turning
from tests.ops.op_specs import OpSpec, case

DTYPES = ("float64", "float32", "complex128", "complex64")
REAL, COMPLEX = DTYPES[:2], DTYPES[2:]


def of_hermitian(function):
    return lambda a, *args, **options: function(hermitian(a), *args, **options)


def without_phases(function):
    """Return values and the magnitudes of vectors: whatever the phases are, these are unique."""

    def call(a, *args, **options):
        values, vectors = function(a, *args, **options)
        return values, np.abs(vectors) ** 2

    return call


def without_phases_of_both(function):
    """Return singular values, magnitudes of vectors, and the product of both factors."""

    def call(a, **options):
        u, s, vh = function(a, **options)
        return s, np.abs(u) ** 2, np.abs(vh) ** 2, np.matmul(u, vh)

    return call


def with_projectors(function):
    """Return values and vectors; of the vectors that are added to two the projector."""

    def call(a):
        u, s, vh = function(a)
        left, right = u[..., 2:], vh[..., 2:, :]
        return (
            u[..., :2], s, vh[..., :2, :], np.matmul(left, np.swapaxes(left, -1, -2)),
            np.matmul(np.swapaxes(right, -1, -2), right))

    return call


SPECS = [
    OpSpec(
        "HermitianEig", of_hermitian(spectral.eigh), of_hermitian(np.linalg.eigh),
        [
            case((3, 3)), case((2, 2, 2)), case((3, 3), UPLO="U"), case((0, 0)), case((0, 2, 2)),
            case((1, 1))], domain=regular, dtypes=REAL),
    OpSpec(
        "eigh", of_hermitian(without_phases(spectral.eigh)),
        of_hermitian(without_phases(np.linalg.eigh)), [case((3, 3)), case((2, 2, 2), UPLO="u")],
        domain=regular, dtypes=COMPLEX),
    OpSpec(
        "eigvalsh", of_hermitian(spectral.eigvalsh), of_hermitian(np.linalg.eigvalsh),
        [case((3, 3)), case((2, 2, 2), UPLO="U"), case((0, 0))], domain=regular, dtypes=DTYPES),
    OpSpec(
        "Eig", lambda a: spectral.eig(a)[0], lambda a: np.linalg.eig(a)[0],
        [case((2, 2)), case((4, 4)), case((3, 2, 2))], domain=turning, dtypes=DTYPES, tolerance=10),
    OpSpec(
        "eig", without_phases(spectral.eig), without_phases(np.linalg.eig),
        [case((4, 4)), case((2, 2, 2))], domain=turning, dtypes=DTYPES, tolerance=10),
    OpSpec(
        "eigvals", spectral.eigvals, np.linalg.eigvals, [case((4, 4)), case((2, 2, 2))],
        domain=turning, dtypes=DTYPES, tolerance=10),
    OpSpec(
        "SVD", spectral.svd, np.linalg.svd,
        [
            case((4, 3), full_matrices=False), case((3, 4), full_matrices=False), case((2, 3, 3)),
            case((2, 1, 3), full_matrices=False), case((0, 3), full_matrices=False),
            case((0, 2, 2)), case((3, 4), compute_uv=False), case((1, 1))], domain=regular,
        dtypes=REAL, tolerance=10),
    OpSpec(
        "svd", without_phases_of_both(spectral.svd), without_phases_of_both(np.linalg.svd),
        [
            case((4, 3), full_matrices=False), case((3, 4), full_matrices=False), case((2, 3, 3)),
            case((2, 2, 3), full_matrices=False)], domain=regular, dtypes=COMPLEX, tolerance=10),
    OpSpec(
        "svd", with_projectors(spectral.svd), with_projectors(np.linalg.svd),
        [case((4, 2)), case((3, 2, 3))], domain=regular, dtypes=REAL, tolerance=10),
    OpSpec(
        "svd", of_hermitian(spectral.svd), of_hermitian(np.linalg.svd),
        [case((3, 3), hermitian=True), case((2, 2, 2), hermitian=True, compute_uv=False)],
        domain=lambda rng, shape: regular(rng, shape) * [1.0, -1.0, 1.0][: shape[-1]], dtypes=REAL,
        tolerance=10),
    OpSpec(
        "svdvals", spectral.svdvals, np.linalg.svdvals, [case((4, 3)), case((2, 3, 4))],
        domain=regular, dtypes=DTYPES),
    OpSpec(
        "MatrixRank", spectral.matrix_rank, np.linalg.matrix_rank,
        [case((3, 4)), case((2, 3, 3)), case((3,)), case((2, 3, 3), tol=3.0)], domain=regular,
        dtypes=DTYPES, differentiable=False)]


def _split(u, vh, w, t, kind):
    return tuple(np.broadcast_to(x, (*t.shape[:-2], *x.shape[-2:])).copy() for x in (u, vh))


# Of values that differ.
MATRICES = [case((3, 3), (3,), (3, 3), (3, 3), (3,), kind="eigh"),
            case((2, 3, 2), (2, 2), (2, 3, 2), (2, 2, 2), (2, 2), kind="svd")]
SPECS += [
    OpSpec("GradientOfValues", equal_values.gradient_of_values_op,
           lambda a, w, u, vh, g, kind: (u * g[..., None, :]) @ vh, MATRICES,
           dtypes=REAL, differentiable=(False, False, True, True, True)),
    OpSpec("SplitVectors", equal_values.split_op, _split,
           [case((3, 3), (3, 3), (3,), (3, 3), kind="eigh"),
            case((3, 2), (2, 2), (2,), (2, 3, 2), kind="svd")],
           dtypes=REAL, differentiable=(True, True, False, False)),
    OpSpec("TurningVectors", equal_values.turning_op, lambda u, a, w, vh, t, **_: u,
           [case((3, 3), (3, 3), (3,), (3, 3), (3, 3), kind="eigh", values_only=True)],
           dtypes=REAL, differentiable=(True, False, False, False, False)),
    OpSpec("ValuesOfBlocks", equal_values.values_of_blocks_op,
           lambda w, inner, kind: np.diagonal(inner, 0, -2, -1),
           [case((3,), (3, 3), kind="eigh"), case((2,), (3, 2, 2), kind="svd")],
           dtypes=REAL, differentiable=(False, True)),
    OpSpec("BasisOfBlocks", equal_values.basis_of_blocks_op,
           lambda w, inner, kind: np.eye(3, dtype=inner.dtype),
           [case((3,), (3, 3), kind="eigh")], dtypes=REAL, differentiable=False),
    OpSpec("CheckedEqualValues", equal_values.checked_op, lambda x, *rest, **options: x,
           [case((4,), (3,), (3, 3), (3, 3), (3, 3), kind="eigh")],
           dtypes=REAL, differentiable=(True, False, False, False, False)),
]
