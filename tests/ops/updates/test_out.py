"""out=, a tensor: of NumPy's functions and cytape's, of arrays and tensors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp

SMALL = np.array([1.0, 2.0, 3.0])
ROWS = np.arange(6.0).reshape(2, 3)


def test_ufuncs_write_to_tensors():
    x, out = cytape.constant(SMALL), cnp.empty(3)
    assert np.add(x, 1.0, out=out) is out
    assert out.numpy().tolist() == [2.0, 3.0, 4.0]
    cnp.multiply(x, 2.0, out=out, where=np.array([True, False, True]))
    assert out.numpy().tolist() == [2.0, 3.0, 6.0]

    def f(x):
        out = cnp.zeros(3)
        np.multiply(x, x, out=out)
        np.sin(out, out=out, where=[True, True, False])
        return cnp.sum(out)

    expected = 2 * SMALL * [*np.cos(SMALL[:2] ** 2), 1.0]
    np.testing.assert_allclose(cytape.grad(f)(SMALL), expected)
    np.testing.assert_allclose(cytape.grad(cytape.function(f))(SMALL), expected)
    with pytest.raises(TypeError, match="where"):
        np.add(x, 1.0, where=[True, False, True])
    with pytest.raises(TypeError, match="'float64'.*same_kind"):
        np.add(x, 1.0, out=cnp.zeros(3, int))
    with pytest.raises(TypeError, match="cytape.numpy.empty"):
        cnp.add(x, 1.0, out=np.zeros(3))


@pytest.mark.parametrize("where", [True, np.array([True, False, True])], ids=["all", "some"])
@pytest.mark.parametrize("ufunc", [np.exp, np.add, np.multiply, np.ldexp, np.arctan2])
def test_ufuncs_of_arrays_write_to_tensors(ufunc, where):
    operands = (SMALL, np.array([1, 2, 3]))[: ufunc.nin]
    x, expected = cnp.zeros(3), np.zeros(3)
    assert ufunc(*operands, out=x, where=where) is x
    np.testing.assert_array_equal(x.numpy(), ufunc(*operands, out=expected, where=where))
    if ufunc is not np.ldexp:
        y = cnp.zeros(3)
        assert getattr(cnp, ufunc.__name__)(*operands, out=y, where=where) is y
        np.testing.assert_array_equal(y.numpy(), expected)


def test_a_ufunc_of_two_results_is_told_to_use_what_it_returns():
    for x in (SMALL, cytape.constant(SMALL)):
        with pytest.raises(TypeError, match="out must be a tensor.*what is returned"):
            np.modf(x, out=(cnp.zeros(3), cnp.zeros(3)))


def test_results_are_broadcast_to_what_they_are_written_to():
    for x in (SMALL, cytape.constant(SMALL)):
        out = cnp.zeros((2, 3))
        np.add(x, 1, out=out)
        assert out.numpy().tolist() == [[2.0, 3.0, 4.0]] * 2
        with pytest.raises(ValueError, match="non-broadcastable"):
            np.add(np.ones((2, 1)) * x, 1, out=cnp.zeros(3))

    def f(x):
        out = cnp.zeros((2, 3))
        np.multiply(x, x, out=out)
        return cnp.sum(out)

    np.testing.assert_allclose(cytape.grad(f)(SMALL), 4 * SMALL)
    np.testing.assert_allclose(cytape.grad(cytape.function(f))(SMALL), 4 * SMALL)


@pytest.mark.parametrize("function", [
    np.sum, np.prod, np.mean, np.max,
    lambda a, axis, out: np.add.reduce(a, axis, out=out),
    lambda a, axis, out: np.cumsum(a[1], out=out),
    lambda a, axis, out: np.concatenate([a[0, :2], a[1, :1]], out=out),
    lambda a, axis, out: np.clip(a[1], 0, 4, out=out)])
def test_functions_of_numpy_write_to_tensors(function):
    expected = function(ROWS, axis=0, out=np.zeros(3))
    for a in (ROWS, cytape.constant(ROWS)):
        out = cnp.zeros(3)
        assert function(a, axis=0, out=out) is out
        np.testing.assert_array_equal(out.numpy(), expected)

    def f(a):
        out = cnp.zeros(3)
        function(a, axis=0, out=out)
        return cnp.sum(out * SMALL)

    direct = cytape.grad(lambda a: cnp.sum(function(a, axis=0, out=None) * SMALL))(ROWS)
    np.testing.assert_allclose(cytape.grad(f)(ROWS), direct)


@pytest.mark.parametrize("write", [
    lambda x: np.copyto(x, 1.0), lambda x: np.put(x, [0], 1.0),
    lambda x: np.fill_diagonal(x, 1.0), lambda x: np.place(x, ROWS > 1, 1.0),
    lambda x: np.putmask(x, ROWS > 1, 1.0)])
def test_functions_that_write_to_arrays_only_say_what_to_do(write):
    with pytest.raises(TypeError, match="x\\[index\\] = values"):
        write(cytape.constant(ROWS))
