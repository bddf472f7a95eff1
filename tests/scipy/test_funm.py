"""`funm`: SciPy's values, derivatives by divided differences, functions that read tensors."""

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError
from cytape.testing import check_grads
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

A = np.array([[0.4, 0.3, -0.2], [0.1, 1.1, 0.3], [-0.3, 0.2, 2.0]])
TURNING = np.array([[0.3, -1.0, 0.1], [0.8, 0.2, 0.2], [0.1, -0.1, 1.5]])
FUNCTIONS = {"exp": np.exp, "cube": lambda z: z**3, "ratio": lambda z: np.sin(z) / (z + 20)}


@each(name=FUNCTIONS, a=[A, TURNING, A + 0.2j * TURNING])
def test_values_and_derivatives(name, a):
    f, expected = FUNCTIONS[name], linalg.funm(a, FUNCTIONS[name])
    np.testing.assert_array_equal(ours.funm(a, f), expected)
    found = ours.funm(cytape.constant(a), f)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-13)
    check_grads(lambda a: ours.funm(a, f), [a], order=2 if name == "cube" else 1)
    np.testing.assert_allclose(cytape.function(lambda a: ours.funm(a, f))(a), expected, 1e-13)


def test_equal_eigenvalues():
    check_grads(lambda a: ours.funm(a, np.exp), [np.diag([1.0, 1.0, 2.0])], order=1)


def test_dependent_eigenvectors():
    for d in (0.0, 1e-4):
        a = np.array([[1.0, 1.0, 0.3], [0.0, 1.0 + d, 0.5], [0.0, 0.0, 2.0]])
        with pytest.raises(np.linalg.LinAlgError, match="eigenvectors are almost dependent"):
            cytape.grad(lambda a: np.sum(ours.funm(a, np.exp)))(a)


def test_tensors_that_the_function_reads_and_other_errors():
    for a in (lambda t: A, lambda t: t * A):
        with pytest.raises(DetachedError, match="funm: func reads a tensor"):
            cytape.grad(lambda t: np.sum(ours.funm(
                a(t), lambda z: np.exp(t * z))))(2.0)  # noqa: B023
    with pytest.raises(TypeError, match="disp"):
        ours.funm(cytape.constant(A), np.exp, disp=False)
    with pytest.raises(ValueError, match="funm of this real matrix is complex"):
        cytape.function(lambda a: ours.funm(a, np.sqrt))(-A)


def test_a_name_that_is_bound_anew():
    def total(c):
        found = 0.0
        for k in (1.0, 2.0):
            found = found + ours.funm(c * np.eye(1), lambda z: k * z)[0, 0]  # noqa: B023
        return found

    assert cytape.grad(total)(0.7) == 3


def test_batches_of_batches():
    slope = cytape.grad(lambda a: np.sum(ours.funm(a, np.exp)))
    batch = np.array([[[2.0, 0.3], [0.1, 3.0]], [[1.0, 0.2], [0.5, 4.0]]])
    found = cytape.vmap(cytape.vmap(slope))(batch[None])
    np.testing.assert_allclose(found, [[slope(a) for a in batch]], 1e-10)
