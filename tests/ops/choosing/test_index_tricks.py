"""Arrays written as indices: what they join, in which directions, and what NumPy refuses."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from cytape.testing import check_grads
from tests.cases import each, sampled

V, M = np.array([0.5, 1.5, -2.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
KEYS = {
    "numbers": lambda n, v, m: n.r_[v[0], 1.0, v[1]],
    "pieces": lambda n, v, m: n.r_[v, 0, 2, [v[0], 3.0], m[:, 0]], "one": lambda n, v, m: n.r_[v],
    "ranges": lambda n, v, m: n.r_[0:3, v, 5:1:-2, :2],
    "steps": lambda n, v, m: n.r_[v[0] : v[1] : 4j, 0:1:3j],
    "columns": lambda n, v, m: n.c_[v, m, v * 2],
    "columns of ranges": lambda n, v, m: n.c_[v, 0:3, 1:3:3j],
    "the last axis of all": lambda n, v, m: n.r_["1", m, m],
    "an axis": lambda n, v, m: n.r_["-1", m, m], "axes": lambda n, v, m: n.r_["0,2", v, v],
    "directions": lambda n, v, m: n.r_["1,2,0", v, m[:, :1], 4:7],
    "more directions": lambda n, v, m: n.r_["0,3,0", v[:2], m[:, :1]],
    "directions of columns": lambda n, v, m: n.c_["0,2,-1", v[:2], m],
    "nested": lambda n, v, m: n.c_[[v[0], v[1], 3.0], [[v[0]], [1.0], [v[2]]]]}


@sampled(2, key=KEYS, place=["eager", "function"])
def test_keys(key, place):
    def f(v, m):
        return KEYS[key](cnp, v, m)

    if place == "function":
        f = cytape.function(f)
    expected = KEYS[key](np, V, M)
    found = f(cytape.constant(V), cytape.constant(M))
    assert type(found) is cytape.Tensor and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    check_grads(f, [V, M], order=2)


def test_dtypes_are_numpys():
    v = np.float32([1, 2])
    for call in (lambda n, v: n.r_[v, 1.0], lambda n, v: n.r_[v, 1], lambda n, v: n.r_[v, 1j],
                 lambda n, v: n.r_[v, np.float64(2)], lambda n, v: n.c_[v, [1, 2]]):
        found, expected = call(cnp, cytape.constant(v)), call(np, v)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_number_that_the_dtype_does_not_hold():
    x = cytape.constant([1, 2], np.int8)
    assert cnp.r_[x, 100].dtype == np.int8
    with pytest.raises(OverflowError, match="300"):
        cnp.r_[x, 300]


def test_plain_arrays_are_numpys_business():
    assert type(cnp.r_[V, 0:3]) is np.ndarray
    np.testing.assert_array_equal(cnp.c_[V, V], np.c_[V, V])
    assert len(cnp.r_) == len(np.r_) == 0


@each("call", [
    lambda x: cnp.r_[x, "0"], lambda x: cnp.r_["nonsense", x], lambda x: cnp.r_[x, M],
    lambda x: cnp.c_[x, x[:2]], lambda x: cnp.r_["3", x, x]])
def test_invalid_arguments_raise_the_error_of_numpy(call):
    for x in V, cytape.constant(V):
        with pytest.raises(ValueError):
            call(x)


def test_a_matrix_is_refused():
    with pytest.raises(TypeError, match="'r' makes a numpy.matrix"):
        cnp.r_["r", cytape.constant(V)]


def test_numpys_own_refuse_what_is_recorded_and_never_make_objects():
    x = cytape.constant(V)
    for call in (lambda t: np.r_[t, 1.0], lambda t: np.r_[t[0], t[1]], lambda t: np.c_[t, t],
                 lambda t: np.r_[t[0] : t[1] : 3j], lambda t: np.array([[t[0], 1.0], [0.0, t[1]]])):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(DetachedError):
                call(x * x)
        with pytest.raises(cytape.errors.SymbolicTensorError):
            cytape.function(call)(V)
        assert call(x).dtype == np.float64
