"""Constructors: SciPy's for arrays, SparseTensors for tensors, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

scipys = pytest.importorskip("scipy.sparse")
sparse = pytest.importorskip("cytape.scipy.sparse")

VALUES = np.array([1.5, 2.0, -1.0, 3.0])
CALLS = {
    "coo": ("coo_array", ([0, 2, 0, 2], [1, 1, 1, 0]), {"shape": (3, 4)}),
    "coo_matrix": ("coo_matrix", ([0, 2, 0, 2], [1, 1, 1, 0]), {}),
    "csr": ("csr_array", ([1, 0, 2, 1], [0, 2, 2, 4]), {}),  # unsorted
    "csr of positions": ("csr_matrix", (([0, 2, 1, 2], [1, 1, 1, 0]),), {"dtype": "float32"}),
    "csr with duplicates": ("csr_array", ([1, 1, 2, 0], [0, 2, 2, 4]), {"shape": (3, 4)}),
    "csc": ("csc_array", ([1, 0, 2, 1], [0, 2, 2, 4]), {"shape": (3, 3)}),
    "csc_matrix": ("csc_matrix", ([0, 1, 2, 1], [0, 2, 2, 4]), {})}


@each("case", CALLS)
def test_values_and_positions(case):
    name, positions, options = CALLS[case]
    rest = (positions,) if name.startswith("coo") else positions

    def f(values, of=sparse):
        return getattr(of, name)((values, *rest), **options)

    theirs = f(VALUES)
    assert type(theirs) is getattr(scipys, name)
    found = f(cytape.constant(VALUES))
    assert found.shape == theirs.shape and found.dtype == theirs.dtype
    np.testing.assert_array_equal(found.toarray(), theirs.toarray())
    if found.dtype == np.float64:
        check_grads(lambda values: f(values).toarray() ** 2, [VALUES])


DIAGONALS = {
    "one": (lambda v: v, {}), "shifted": (lambda v: v, {"offsets": -1}),
    "two": (lambda v: [v, v[1:]], {"offsets": [0, 1]}),
    "numbers": (lambda v: [v[0], v[1], v[2]], {"offsets": [-1, 0, 1], "shape": (4, 5)}),
    "listed": (lambda v: [v[0], v[1]], {}), "mixed": (lambda v: [v, [1.0]], {
        "offsets": [0, 2], "shape": (4, 4), "dtype": "float32"})}


@each("case", DIAGONALS)
def test_diagonals(case):
    make, options = DIAGONALS[case]
    given = make(VALUES)
    for name in ("diags", "diags_array"):
        theirs = getattr(sparse, name)(given, **options)
        np.testing.assert_array_equal(
            theirs.toarray(), getattr(scipys, name)(given, **options).toarray())
        found = getattr(sparse, name)(make(cytape.constant(VALUES)), **options)
        assert found.dtype == theirs.dtype
        np.testing.assert_array_equal(found.toarray(), theirs.toarray())


def test_a_sparse_tensor_is_taken_as_it_is():
    a = sparse.csr_array((cytape.constant(VALUES[:2]), [0, 1], [0, 1, 2]))
    assert sparse.csc_array(a) is a and sparse.csr_array(a, dtype="f").dtype == np.float32
    assert sparse.eye_array is scipys.eye_array and "csr_array" in dir(sparse)


def test_errors():
    v = cytape.constant(VALUES)
    for call, error, message in [
            (lambda: sparse.csr_array(v.reshape(2, 2)), TypeError, "dense tensor"),
            (lambda: sparse.csr_array((VALUES, (v, v))), TypeError, "positions"),
            (lambda: sparse.coo_array((v, ([0], [1])), shape=(2, 2)), ValueError, "same length"),
            (lambda: sparse.csr_array((v, [0, 1, 2, 9], [0, 2, 4]), shape=(2, 3)), ValueError,
             "out of bounds"),
            (lambda: sparse.csr_array((v, [0, 1, 2, 0], [0, 3, 2]), shape=(2, 3)), ValueError,
             "index pointer"),
            (lambda: sparse.coo_array((v.reshape(2, 2), ([0], [1]))), ValueError, "vector"),
            (lambda: sparse.diags_array([v], offsets=[0, 1]), ValueError, "diagonals and offsets"),
            (lambda: sparse.diags_array([v], shape=(2, 2)), ValueError, "does not agree")]:
        with pytest.raises(error, match=message):
            call()
