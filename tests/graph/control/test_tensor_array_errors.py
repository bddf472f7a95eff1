"""TensorArrays of sizes and shapes that only a run tells, and their errors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from tests.cases import each
from tests.graph.control.test_tensor_array import X, array, index
from tests.ways import BODIES, run_in_graph

# ---- sizes and shapes that a run tells


@each(dynamic=[False, True], shape=[None, ()])
def test_a_size_that_a_run_tells(dynamic, shape):
    @cytape.function(input_signature=[cytape.Spec.of((None,), "float64")])
    def f(x):
        n = cnp.size(x)
        start = cytape.TensorArray("float64", n, dynamic_size=dynamic, element_shape=shape)
        _, ta = cytape.while_loop(
            lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, x[i] ** 2)),
            (cytape.constant(0), start))
        unstacked = cytape.TensorArray("float64", n).unstack(x)
        return ta.stack() * unstacked.stack(), ta.size()

    for n in (1, 3, 4):
        x = np.arange(1.0, 1.0 + n)
        found, size = f(x)
        np.testing.assert_allclose(found, x**3)
        assert int(size) == n
        np.testing.assert_allclose(cytape.grad(lambda x: cnp.sum(f(x)[0]))(x), 3 * x**2)
    assert f(np.zeros(0))[0].shape == (0,)


def test_elements_of_a_shape_that_a_run_tells():
    @cytape.function(input_signature=[cytape.Spec.of((None,), "float64")])
    def f(x):
        ta = array(3).write(0, x)
        return cytape.while_loop(
            lambda i, ta: i < 3, lambda i, ta: (i + 1, ta.write(i, ta.read(i - 1) * x)),
            (1, ta))[1].stack()

    np.testing.assert_allclose(f(X), np.stack([X, X**2, X**3]))
    np.testing.assert_allclose(cytape.grad(lambda x: cnp.sum(f(x)))(X), 1 + 2 * X + 3 * X**2)

    @cytape.function(input_signature=[cytape.Spec.of((None,), "float64")])
    def first_write_in_the_loop(x):
        return cytape.while_loop(
            lambda i, ta: i < 3, lambda i, ta: (i + 1, ta.write(i, x)), (0, array(3)))

    with pytest.raises(ValueError, match=r"loop_vars\[1\] needs the shape .*element_shape"):
        first_write_in_the_loop(X)


@each("write", [
    lambda ta, x: cytape.while_loop(
        lambda i, ta: i < 2, lambda i, ta: (i + 1, ta.write(i, x)), (0, ta))[1],
    lambda ta, x: cytape.cond(cnp.sum(x) > 0, lambda: ta.write(0, x), lambda: ta)])
def test_elements_under_reduced_retracing(write):
    f = cytape.function(lambda ta, x: write(ta, x).stack(), reduce_retracing=True)
    assert f(array(2), np.ones(3)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"needs the shape .* have shape \(None,\), where None "
                                         "is an extent that only a run knows .*reduce_retracing"):
        f(array(2), np.ones(2))


# ---- errors


@each("way", [name for name in BODIES if name != "eager"])
@each("error, match, f", [
    (ValueError, "index 1 is written a second time",
     lambda x: array().write(index(x, 1), x).write(index(x, 1), x).stack()),
    (ValueError, "index 1 is written a second time",
     lambda x: array().write(1, x).write(index(x, 1), x).read(index(x, 1))),
    (ValueError, "index 0 is written a second time", lambda x: cytape.while_loop(
        lambda i, ta: i < 2, lambda i, ta: (i + 1, ta.write(i * 0, x)), (0, array()))[1].stack()),
    (ValueError, "index 2 is written a second time", lambda x: array(3).scatter(
        cnp.stack([index(x, 2), index(x, 2)]), x[:2]).stack()),
    (IndexError, "index 3 is out of range for size 3",
     lambda x: array().write(index(x, 3), x).stack()),
    (IndexError, "index -1 is out of range for size 3",
     lambda x: array().write(index(x, -1), x).stack()),
    (IndexError, "index -1 is out of range for size 3",
     lambda x: array().write(0, x).read(index(x, -1))),
    (IndexError, "index -2 is out of range for size 3",
     lambda x: array().write(0, x).gather(cnp.stack([index(x, -2)]))),
    (IndexError, "index 3 is out of range for size 3",
     lambda x: array().write(0, x).read(index(x, 3))),
    (IndexError, "index 3 is out of range for size 3", lambda x: array(
        0, dynamic_size=True).write(index(x, 2), x).read(index(x, 3))),
])
def test_errors_when_a_graph_runs(way, error, match, f):
    g = BODIES[way](lambda x: cnp.sum(f(x)))
    for _ in range(2):
        with pytest.raises(error, match=match):
            g(cytape.constant(X))


@each("traced", [False, True])
@each("error, match, f", [
    (ValueError, "index 1 is written a second time", lambda x: array().write(1, x).write(1, x)),
    (ValueError, "index 1 is written a second time",
     lambda x: array().write(1, x[0]).unstack(x)),
    (ValueError, "index 0 is written a second time", lambda x: array().scatter([0, 0], x[:2])),
    (IndexError, "index 3 is out of range for size 3 .*dynamic_size=True",
     lambda x: array().write(3, x)),
    (IndexError, "index -1 is out of range", lambda x: array(dynamic_size=True).write(-1, x)),
    (IndexError, "index 3 is out of range", lambda x: array().write(0, x).read(3)),
    (IndexError, "index 3 is out of range", lambda x: array().write(0, x).gather([3])),
    (IndexError, "index 2 is out of range", lambda x: array(2).unstack(x)),
    (ValueError, "index 0 was not written, .*element_shape", lambda x: array().read(0)),
    (ValueError, "nothing was written", lambda x: array().stack()),
    (ValueError, "index 0 was not written", lambda x: array(infer_shape=False).write(1, x).stack()),
    (TypeError, "of float64 takes no int64: .*astype",
     lambda x: array().write(0, x.astype("int64"))),
    (ValueError, r"shape \(2,\) does not take one of shape \(3,\); .*infer_shape",
     lambda x: array(element_shape=(2,)).write(0, x)),
    (ValueError, r"shape \(3,\) does not take one of shape \(2,\)",
     lambda x: array().write(0, x).write(1, x[:2])),
    (ValueError, "got 3 slices and 2 indices", lambda x: array().scatter([0, 1], x)),
    (ValueError, "what is unstacked must have a first axis", lambda x: array().unstack(x[0])),
    (ValueError, "but the split tensor has 3", lambda x: array().split(x, [1, 1])),
    (TypeError, "lengths must be integers", lambda x: array().split(x, [1.5, 1.5])),
    (ValueError, "got scalars", lambda x: array().unstack(x).concat()),
    (TypeError, "an index of a TensorArray must be an integer, got float64",
     lambda x: array().write(x[0], x)),
    (ValueError, "must not be negative, got -1", lambda x: array(-1)),
])
def test_errors_at_once(traced, error, match, f):
    f = cytape.function(f) if traced else f
    with pytest.raises(error, match=match):
        f(cytape.constant(X))


def test_elements_of_different_shapes():
    ta = array(2, infer_shape=False).write(0, X).write(1, X[:2])
    assert ta.read(1).shape == (2,)
    assert ta.concat().shape == (5,)
    assert repr(ta) == "TensorArray(float64, size=2, element_shape=None)"


def test_weak_numbers_take_its_dtype():
    ta = cytape.TensorArray("float32", 2).write(np.int32(0), 1).write(np.array(1), 2.5)
    assert (ta.stack().dtype, ta.stack().numpy().tolist()) == (np.float32, [1.0, 2.5])


@each("use", [np.sum, cnp.sum, np.max, np.asarray, np.mean])
def test_functions_of_numpy_ask_for_the_stacked_array(use):
    array = cytape.TensorArray("float64", size=2).write(0, 1.0).write(1, 2.0)
    with pytest.raises(TypeError, match=r"stack\(\)"):
        use(array)


def test_extents_known_only_when_run_are_not_broadcast():
    def scattered(x, places):
        empty = cytape.TensorArray("float64", size=3, element_shape=())
        return empty.scatter(places, x).stack()

    f = cytape.function(scattered, input_signature=[
        cytape.Spec.of((None,), float), cytape.Spec.of((None,), int)])
    places = np.array([0, 2])
    assert f(np.array([1.0, 2.0]), places).tolist() == [1.0, 0.0, 2.0]
    with pytest.raises(ValueError, match=r"expected 2 elements .* of shape \(1,\)"):
        f(np.ones(1), places)


@each("n", [2, 4])
@each("batched", [False, True])
@each("match, f", [
    (r"one slice for each index, got {} slices and 3 indices",
     lambda x: array(3).scatter([2, 0, 1], x).stack()),
    (r"lengths sum to 3, but the split tensor has {} slices",
     lambda x: array(2, infer_shape=False).split(x, [1, 2]).read(1))])
def test_a_run_raises_the_errors_of_eager_calls(n, batched, match, f):
    def of_all(x):
        return cytape.vmap(f)(cnp.stack([x, x, x])) if batched else f(x)

    traced = cytape.function(of_all, input_signature=[cytape.Spec.of((None,), float)])
    np.testing.assert_array_equal(traced(X), of_all(cytape.constant(X)))
    for function in (of_all, traced):
        with pytest.raises(ValueError, match=match.format(n)):
            function(cytape.constant(np.ones(n)))


@each("where", ["graph", "function", "branch", "loop"])
def test_lengths_of_parts_may_be_a_constant_of_the_graph(where):
    def second(x, lengths):
        array = cytape.TensorArray("float64", size=2, infer_shape=False)
        return cnp.sum(array.split(x, lengths).read(1))

    def of_constant(x):
        return second(x, cytape.constant([1, 3]))

    x = np.arange(4.0)
    if where == "graph":
        assert run_in_graph(of_constant, x) == 6.0
        return

    def captured(x):
        lengths = cytape.constant([1, 3])
        if where == "branch":
            return cytape.cond(x[1] > 0, lambda: second(x, lengths), lambda: 0.0)
        return cytape.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, second(x, lengths)), (0, 0.0))[1]

    f = cytape.function(of_constant if where == "function" else captured)
    assert f(x) == 6.0
    np.testing.assert_array_equal(cytape.grad(f)(x), [0.0, 1.0, 1.0, 1.0])
    with pytest.raises(SymbolicTensorError, match="symbolic"):
        cytape.function(second)(x, np.array([1, 3]))
