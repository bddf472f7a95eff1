"""Products of sparse and dense matrices: in both operands, in batches, all ways."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
sparse = pytest.importorskip("cytape.scipy.sparse")

DENSE = np.array([[0.0, 1.5, 0], [2.0, 0, -1.0], [0, 0, 0], [0.5, 0, 3.0]])
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 2.5]])
CLASSES = [f"{kind}_{form}" for form in ("array", "matrix")
           for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")]


@each("name", CLASSES)
def test_products_of_scipys_matrices_and_tensors(name):
    a = getattr(scipys, name)(DENSE)
    for f in (lambda x: a @ x, lambda x: x.T @ a.T, lambda x: a @ x[:, 0], lambda x: x[:, 0] @ a.T):
        for trace in (lambda f: f, cytape.function):
            found = trace(f)(cytape.constant(X))
            assert isinstance(found, cytape.Tensor)
            np.testing.assert_allclose(found, f(X), 1e-14)
        check_grads(f, [X], order=1)
        assert isinstance(f(X), np.ndarray)


def test_other_forms_of_products():
    a, x = scipys.csr_array(DENSE), cytape.constant(X)
    np.testing.assert_array_equal(a.dot(x), DENSE @ X)
    np.testing.assert_array_equal(a.astype(int) @ x, DENSE.astype(int) @ X)
    assert (a.astype("f") @ x.astype("f")).dtype == np.float32
    assert (a @ (1j * x)).dtype == np.complex128
    duplicated = scipys.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 3))
    np.testing.assert_array_equal(duplicated @ x, duplicated @ X)
    with pytest.raises(ValueError, match="dimension mismatch"):
        a @ cytape.constant(X[:2])
    with pytest.raises(ValueError, match="dimensions"):
        a @ cytape.constant(X[None])


@each("turn", [0, 0.5j])
def test_in_the_values_and_the_operand(turn):
    rows, cols = np.nonzero(DENSE)
    data = DENSE[rows, cols] * (1 + turn)

    def f(data, x):
        return sparse.coo_array((data, (rows, cols)), shape=DENSE.shape) @ x

    check_grads(f, [data, X * (1 + turn)])
    check_grads(lambda data, x: f(data, x).T @ f(data, x[:, 0]), [data, X])


def test_all_ways():
    rows, cols = np.nonzero(DENSE)

    def f(data):
        a = sparse.coo_array((data, (rows, cols)), shape=DENSE.shape)
        return np.sum((a @ (a.T @ DENSE)) ** 2)

    def plain(data):
        a = cytape.ops.indexing.scatter_add(data, rows * 3 + cols, (12,)).reshape(4, 3)
        return np.sum((a @ (a.T @ DENSE)) ** 2)

    ways.check(f, plain, DENSE[rows, cols], ways=ways.OF_KNOWN_EXTENTS)
    a = scipys.csc_array(DENSE)
    ways.check(lambda x: np.sum((a @ x) ** 3), lambda x: np.sum((DENSE @ x) ** 3), X)


def test_vmap_and_batches_of_directions_are_one_product():
    a = scipys.csr_array(DENSE)
    stack = np.stack([X, 2 * X])
    for axes in (3, 2):
        x = stack if axes == 3 else stack[..., 0]
        np.testing.assert_allclose(
            cytape.vmap(lambda x: a @ x)(x), [DENSE @ one for one in x], 1e-14)
    np.testing.assert_allclose(cytape.jacfwd(lambda x: a @ x)(X[:, 0]), DENSE, 1e-14)


@each("dtype", ["f2", "f4", "c8"])
def test_dtypes_in_functions(dtype):
    a = scipys.csr_array(DENSE)

    def product(module, values, x):
        return module.csr_array((values, a.indices, a.indptr), a.shape) @ x

    values, x = a.data.astype(dtype), X.astype(dtype)
    found = cytape.function(lambda v, x: product(sparse, v, x))(
        cytape.constant(values), cytape.constant(x))
    assert found.dtype == product(scipys, values, x).dtype
    gradient = cytape.grad(lambda v: np.sum(np.real(product(sparse, v, x))))(values)
    assert gradient.dtype == dtype
