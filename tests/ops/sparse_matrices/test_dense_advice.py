"""Functions of `scipy.sparse.linalg` without derivatives: SciPy's of arrays, errors of tensors."""

import numpy as np
import pytest

import cytape
from cytape.errors import NotDifferentiableError
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
scipys_linalg = pytest.importorskip("scipy.sparse.linalg")
sparse = pytest.importorskip("cytape.scipy.sparse")
linalg = pytest.importorskip("cytape.scipy.sparse.linalg")
advice = pytest.importorskip("cytape.ops.sparse_matrices.dense_advice")

MATRIX = scipys.csr_array(np.diag([2.0, 3.0, 4.0]))


@each("name", advice.__all__)
def test_errors_name_a_replacement(name):
    a = sparse.csr_array((cytape.constant(MATRIX.data), MATRIX.indices, MATRIX.indptr))
    with pytest.raises(NotDifferentiableError, match=f"{name} has no derivative.*A"):
        getattr(linalg, name)(a, np.ones(3))
    with pytest.raises(NotDifferentiableError, match=f"{name} has no derivative: "):
        cytape.grad(lambda a: np.sum(getattr(linalg, name)(a, 1.0)))(np.eye(3))


@each("name", ["spsolve", "splu", "factorized"])
def test_dense_matrices_are_refused(name):
    arguments = (np.ones(3),) if name == "spsolve" else ()
    with pytest.raises(TypeError, match=r"call|by cytape.scipy.linalg.solve"):
        getattr(linalg, name)(cytape.constant(np.eye(3)), *arguments)


def test_arrays_are_scipys():
    np.testing.assert_array_equal(
        linalg.expm_multiply(MATRIX, np.ones(3)), scipys_linalg.expm_multiply(MATRIX, np.ones(3)))
    assert linalg.norm(MATRIX) == scipys_linalg.norm(MATRIX)
