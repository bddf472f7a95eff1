"""Functions that write to their first argument: NumPy's result, and a derivative."""

import re
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, SymbolicTensorError, TapeStateError
from cytape.testing import check_grads
from tests.cases import each
from tests.ways import watching

RNG = np.random.default_rng(5)
X, SQUARE, TALL = RNG.uniform(0.3, 1.7, (3, 4)), RNG.uniform(size=(3, 3)), RNG.uniform(size=(7, 3))
V, PLACES = RNG.uniform(0.4, 1.6, 4), np.array([[0, 2], [1, 3], [2, 0]])
WRITES = {
    "fill_diagonal": (lambda n, y, v: n.fill_diagonal(y, v), SQUARE, np.array(2.0)),
    "fill_diagonal, cut off": (lambda n, y, v: n.fill_diagonal(y, v), SQUARE, V),
    "fill_diagonal, wrapped": (lambda n, y, v: n.fill_diagonal(y, v, wrap=True), TALL, V[:2]),
    "put": (lambda n, y, v: n.put(y, [0, 5, 0, 2, -1], v), X, V[:3]),
    "put, a row": (lambda n, y, v: n.put(y, [[0, 1], [2, 3]], v), X, V),
    "put, wrapped": (lambda n, y, v: n.put(y, [0, 15, -20], v, mode="wrap"), X, V),
    "put, clipped": (lambda n, y, v: n.put(y, [0, 15, -20], v, "clip"), X, V[:1]),
    "place": (lambda n, y, v: n.place(y, X > 0.8, v), X, V),
    "place, by values": (lambda n, y, v: n.place(y, y > 0.8, v), X, V[:1]),
    "putmask": (lambda n, y, v: n.putmask(y, X > 0.8, v), X, X**2),
    "putmask, repeated": (lambda n, y, v: n.putmask(y, y > 0.8, v), X, V[:3]),
    "copyto": (lambda n, y, v: n.copyto(y, v), X, V),
    "copyto, masked": (lambda n, y, v: n.copyto(y, v, where=[True, False, True, True]), X, V),
    "put_along_axis": (lambda n, y, v: n.put_along_axis(y, PLACES, v, 1), X, V[:2]),
    "put_along_axis, flat": (
        lambda n, y, v: n.put_along_axis(y, np.array([0, 7, 7]), v, None), X, V[:3]),
    "put_along_axis, by values": (
        lambda n, y, v: n.put_along_axis(y, n.argmax(y, 0, keepdims=True), v, 0), X, V),
    "add.at": (lambda n, y, v: n.add.at(y, ([0, 2, 0], [1, 1, 1]), v), X, V[:3]),
    "divide.at": (lambda n, y, v: n.divide.at(y, [0, 2, 0], v), X, V),
    "minimum.at": (lambda n, y, v: n.minimum.at(y, (slice(None), [0, 0]), v), X, V[:2]),
    "arctan2.at": (lambda n, y, v: n.arctan2.at(y, [0, 2, 0], v), X, V),
    "exp.at": (lambda n, y, v: n.exp.at(y, (0, [1, 3, 1])), X, V)}


def after(name, namespace):
    """Return the function of what is written to, and with, that returns the former."""
    def f(x, v):
        y = namespace.array(x) if isinstance(x, np.ndarray) and namespace is np else x * 1
        WRITES[name][0](namespace, y, v)
        return y
    return f


@each("name", WRITES)
def test_they_write_to_tensors(name):
    _, x, v = WRITES[name]
    expected = after(name, np)(x, v)
    for namespace in np, cnp:
        tensors = cytape.constant(x), cytape.constant(v)
        assert WRITES[name][0](namespace, target := tensors[0] * 1, tensors[1]) is None
        np.testing.assert_allclose(target, expected, rtol=1e-14)
        np.testing.assert_array_equal(tensors[0], x)
        traced = cytape.function(after(name, namespace))
        np.testing.assert_allclose(traced(*tensors), expected, rtol=1e-14)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cytape.errors.UnconnectedGradientWarning)
        for f in after(name, cnp), cytape.function(after(name, cnp)):
            check_grads(lambda x, v, f=f: f(cytape.convert_to_tensor(x), v), [x, v], order=2)


@each("name", WRITES)
def test_of_arrays_they_are_numpys(name):
    write, x, v = WRITES[name]
    array = x.copy()
    assert write(cnp, array, v) is None
    np.testing.assert_array_equal(array, after(name, np)(x, v))


@each("name", WRITES)
def test_an_array_holds_no_derivative(name):
    write, x, v = WRITES[name]
    if name in ("exp.at", "place, by values", "putmask, repeated"):
        return
    for namespace in np, cnp:
        array = x.copy()
        with watching(tensor := cytape.constant(v)):
            with pytest.raises((DetachedError, TypeError), match=r"cytape\.constant|full"):
                write(namespace, array, tensor)
        np.testing.assert_array_equal(array, x)


def test_they_follow_the_rules_of_assignments():
    x, variable = cytape.constant(SQUARE), cytape.Variable(SQUARE)
    same = x
    np.fill_diagonal(x, 0.0)
    assert not np.diagonal(same.numpy()).any()
    array = x.numpy().copy()
    for written in x, array:  # by views of them
        np.copyto(written[0], 1.0)
        np.add.at(written.T, [0, 0], 1.0)
        row = written[1]
        np.put(row, [1], 7.0)
    np.testing.assert_array_equal(x, array)
    with watching(x):
        for write in (lambda: np.put(x, [0], 1.0), lambda: np.add.at(x, [0], 1.0)):
            with pytest.raises(TapeStateError, match="watches"):
                write()
    np.add.at(variable, [0, 0], 1.0)
    np.fill_diagonal(variable, 5.0)
    expected = SQUARE.copy()
    expected[0] += 2
    np.fill_diagonal(expected, 5.0)
    np.testing.assert_allclose(variable.numpy(), expected)


def test_dtypes_stay():
    x = cytape.constant(np.ones(3, np.float32))
    np.copyto(x, 2.5)
    np.add.at(x, [0], 1.0)
    np.hypot.at(x, [1], 2.0)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, [3.5, np.hypot(2.5, 2), 2.5], rtol=1e-6)


@each("write", [
    lambda n, y: n.fill_diagonal(y[0] * 1, 1.0), lambda n, y: n.put(y, [99], 1.0),
    lambda n, y: n.place(y, [True], 1.0), lambda n, y: n.place(y, X > 0, []),
    lambda n, y: n.putmask(y, [True], 1.0), lambda n, y: n.copyto(y, np.ones(3)),
    lambda n, y: n.copyto(y, 1j), lambda n, y: n.copyto(y, np.ones(4, np.float32), casting="no"),
    lambda n, y: n.put_along_axis(y, np.array([0]), 1.0, 1),
    lambda n, y: n.put_along_axis(y, np.array([[0.5]]), 1.0, 1),
    lambda n, y: n.put_along_axis(y, np.array([[0]]), 1.0, 3), lambda n, y: n.add.at(y, [0]),
    lambda n, y: n.add.at(y, [9], 1.0), lambda n, y: n.exp.at(y, [0], 1.0),
    lambda n, y: n.hypot.at(y, [0], 1j), lambda n, y: n.add.at(y, [0, 1], np.ones(7))])
def test_refused_arguments_raise_the_error_of_numpy(write):
    with pytest.raises(Exception) as expected:  # noqa: B017 (of which type it is, NumPy knows)
        write(np, X.copy())
    def written(x):
        write(cnp, y := x * 1)
        return y

    for f in written, cytape.function(written):
        with pytest.raises(expected.type):
            f(cytape.constant(X))


def test_extents_must_be_known():
    signature = [cytape.Spec.of((None, 3), float)]
    for write in (lambda y: np.fill_diagonal(y, 0.0), lambda y: np.put(y, [0], 1.0)):
        def f(x, write=write):
            write(y := x * 1)
            return y

        with pytest.raises(SymbolicTensorError, match="has to know the shape"):
            cytape.function(f, input_signature=signature)(SQUARE)


def test_positions_from_the_end_of_the_flattened_array():
    expected, x = X.copy(), cytape.constant(X)
    np.put_along_axis(expected, np.array([0, -1]), 9.0, None)
    np.put_along_axis(x, np.array([0, -1]), 9.0, None)
    np.testing.assert_array_equal(x, expected)


BY_NAME = {
    "copyto": lambda y, v: np.copyto(src=v, dst=y),
    "copyto, masked": lambda y, v: np.copyto(where=[True, False, True], src=v, dst=y),
    "put": lambda y, v: np.put(v=v, ind=[2, 0, 1], a=y),
    "put_along_axis": lambda y, v: np.put_along_axis(
        values=v, indices=np.array([2, 0, 1]), axis=0, arr=y),
    "place": lambda y, v: np.place(vals=v, mask=[True, False, True], arr=y),
}


@each("traced", [False, True])
@each("write", BY_NAME.values(), ids=BY_NAME)
def test_the_written_argument_is_found_by_name(write, traced):
    def f(v):
        y = v * 2.0
        write(y, v)
        return y

    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal((cytape.function(f) if traced else f)(cytape.constant(v)), f(v))
    check_grads(cytape.function(f) if traced else f, (v,), order=2)


ARRAY = np.array([1.0, 2.0, 3.0])


@each("bounds", [lambda t: (t, 2.5), lambda t: (None, t), lambda t: (0.0, t), lambda t: (t, None)])
def test_the_method_clip_of_arrays_takes_tensors(bounds):
    def by_method(t):
        return np.sum(ARRAY.clip(*bounds(t)) ** 2)

    def by_function(t):
        return np.sum(np.clip(ARRAY, *bounds(t)) ** 2)

    expected = cytape.value_and_grad(by_function)(1.5)
    assert cytape.value_and_grad(by_method)(1.5) == expected
    assert cytape.function(cytape.value_and_grad(by_method))(np.array(1.5)) == expected


TO_ARRAYS = {
    "put": lambda a, t: np.put(a, [0], t[0]), "copyto": np.copyto,
    "copyto by name": lambda a, t: np.copyto(src=t, dst=a),
    "place": lambda a, t: np.place(a, a == 0, t), "putmask": lambda a, t: np.putmask(a, a == 0, t),
    "put_along_axis": lambda a, t: np.put_along_axis(a, np.arange(3), t, 0),
    "full_like": lambda a, t: np.full_like(a, t),
    "fill_diagonal": lambda a, t: np.fill_diagonal(a[:, None], t[:1]),
    "full": lambda a, t: np.full(3, t)}


@each("name", TO_ARRAYS)
def test_writes_of_a_tensor_to_an_array_are_refused(name):
    write, array = TO_ARRAYS[name], np.zeros(3)
    named = rf"(?s)numpy\.{name.split()[0]}.* in {re.escape(__file__)}, line"
    instead = r".*cytape\.(constant|numpy\.full)"
    with pytest.raises(DetachedError, match=named + instead) as caught:
        cytape.grad(lambda t: np.sum(t) + write(array, t))(ARRAY)
    assert "no derivative in cytape" not in str(caught.value)
    if name not in ("full", "fill_diagonal"):  # which ask for its value
        with pytest.raises(SymbolicTensorError, match=named + instead):
            cytape.function(lambda t: write(array, t))(ARRAY)
    np.testing.assert_array_equal(array, np.zeros(3))
