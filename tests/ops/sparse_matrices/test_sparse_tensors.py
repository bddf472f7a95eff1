"""`SparseTensor`: operations, conversions, refusals."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
sparse = pytest.importorskip("cytape.scipy.sparse")

ROWS, COLS = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 2])
DATA = np.array([1.5, 2.0, -1.0, 3.0])


def matrix(data, of=sparse):
    data = cytape.convert_to_tensor(data) if of is sparse else data
    return of.coo_array((data, (ROWS, COLS)), shape=(3, 3))


OPERATIONS = {
    "scaled": lambda a: 2 * a * 3.0 / 4 - a, "negative": lambda a: -a, "transpose": lambda a: a.T,
    "sums": lambda a: a + a.T - 2 * a, "conj": lambda a: a.conj(),
    "constant": lambda a: a + scipys.eye_array(3) - (scipys.eye_array(3) - a),
    "copies": lambda a: a.copy().tocsr().tocsc().tocoo()}
RESULTS = {
    "diagonal": lambda a: a.diagonal(), "upper": lambda a: a.diagonal(1),
    "lower": lambda a: a.diagonal(-1), "none": lambda a: a.diagonal(3), "sum": lambda a: a.sum(),
    "format": lambda a: a.asformat("csc").sum(), "np.sum": lambda a: np.sum(a),
    "rows": lambda a: a.sum(0), "columns": lambda a: a.sum(1),
    "dot": lambda a: a.dot(np.arange(3.0)),
    "array": lambda a: np.arange(3.0) @ a, "left": lambda a: np.arange(6.0).reshape(2, 3) @ a}


@each(name=[*OPERATIONS, *RESULTS], turn=[0, 0.5j])
def test_operations(name, turn):
    def f(data, of=sparse):
        a = OPERATIONS.get(name, lambda a: a)(matrix(data, of))
        if of is sparse:
            assert isinstance(a, sparse.SparseTensor)
        return RESULTS.get(name, lambda a: a.toarray())(a)

    data = DATA * (1 + turn)
    np.testing.assert_allclose(f(cytape.constant(data)), f(data, scipys), 1e-14)
    check_grads(f, [data])


def test_scaling_by_a_tensor_and_attributes():
    check_grads(lambda data, s: (s * matrix(data) / (s + 1)).toarray(), [DATA, 2.0])
    a = matrix(cytape.constant(DATA))
    assert (a.shape, a.nnz, a.dtype, a.format, a.ndim) == ((3, 3), 4, np.float64, "csr", 2)
    assert a.indices.tolist() == [1, 0, 2, 2] and a.indptr.tolist() == [0, 1, 3, 4]
    assert repr(a) == "<SparseTensor of shape (3, 3) and dtype float64 with 4 stored values>"


def test_missing_operations_name_a_replacement():
    a = matrix(cytape.constant(DATA))
    for call in (lambda: a @ a, lambda: a @ scipys.eye_array(3)):
        with pytest.raises(TypeError, match=r"toarray\(\), or with a vector"):
            call()
    with pytest.raises(TypeError, match="toarray"):
        np.asarray(a)
    with pytest.raises(TypeError, match="SparseTensor"):
        a * np.ones((3, 3))
    with pytest.raises(ValueError, match="inconsistent shapes"):
        a + scipys.eye_array(4)
    for call in (lambda: a.power(2), lambda: a.multiply(2.0), lambda: a.tolil()):
        with pytest.raises(AttributeError, match="call toarray"):
            call()
    with pytest.raises(AttributeError, match="has no 'colour'$"):
        a.colour  # noqa: B018
    for call in (lambda: sparse.hstack([a, a]), lambda: sparse.block_diag([a]),
                 lambda: sparse.kron(a, np.eye(2)), lambda: sparse.tril(a)):
        with pytest.raises(TypeError, match=r"takes no SparseTensor: call its toarray\(\)"):
            call()
    assert sparse.kron(scipys.eye_array(2), scipys.eye_array(2)).shape == (4, 4)
