"""Traced functions of arrays return arrays; of tensors and variables, tensors."""

import functools

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests.cases import each

X = np.array([1.0, 2.0, 3.0])
W = cytape.constant(X)
V = cytape.Variable(X)


class Model:
    def __init__(self, w):
        self.w = w

    @cytape.function
    def __call__(self, x):
        return cnp.sum(self.w * x)


@each("arguments", [
    (X,), (np.float32([1.0, 2.0]),), (np.arange(3),), (2.0,), (3,), (np.float64(2.0),), (1 + 2j,),
    (np.array(2.0),), (X[::2],), (np.asfortranarray(np.ones((2, 3))),), (np.zeros((0, 2)),),
], ids=repr)
def test_results_of_arrays_are_those_of_numpy(arguments):
    def f(x):
        return {"y": (2 * x + 1, [x]), "sum": cnp.sum(x), "max": cnp.size(x)}

    for traced in (cytape.function(f), cytape.function(f, reduce_retracing=True)):
        for _ in range(3):  # traced, optimised, and run again
            found, (x,) = traced(*arguments)["y"]
            expected = 2 * np.asarray(arguments[0]) + 1
            expected = expected if expected.ndim else expected[()]
            assert type(found) is type(expected) and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            assert isinstance(traced(*arguments)["sum"], np.generic)
            assert isinstance(x, (np.ndarray, np.generic))


def test_the_arrays_are_the_callers():
    f = cytape.function(lambda x: (x, x + 1.0, cnp.ones(3), x[:2]))
    x = X.copy()
    first = f(x)
    for found in first:
        assert found.flags.writeable
        found += 100.0
    assert np.array_equal(x, X)
    for found, expected in zip(f(x), (X, X + 1.0, np.ones(3), X[:2]), strict=True):
        assert np.array_equal(found, expected)


@each("f, arguments", [
    (lambda x, y: x + y, (X, W)), (lambda x, y: x + y, (X, V)),
    (lambda x, y: x, (X, W)),  # used or not
    (lambda x, y: x, (X, V)), (lambda x, d: x, (X, {"a": [1.0, (W,)]})),
    (lambda x, d: x, (X, [V])),
    (lambda x, s: x, (X, cytape.IndexedSlices(np.ones(2), np.array([0, 1])))),
    (lambda x: x + W, (X,)), (lambda x: x * V, (X,)),
    (lambda x: cytape.function(lambda y: y * V)(x), (X,)),
    (lambda x: cytape.cond(x[0] > 0.0, lambda: W, lambda: x), (X,)),
    (Model(W), (X,)), (Model(V), (X,)), (lambda: 2.0 * W, ()),
])
def test_a_tensor_among_what_is_passed_or_used_makes_tensors(f, arguments):
    f = f if isinstance(f, Model) else cytape.function(f)
    for _ in range(3):
        assert type(f(*arguments)) is cytape.Tensor


@each("f, arguments", [
    (Model(X), (X,)), (lambda: cnp.ones(3), ()), (lambda x: cnp.random.normal(size=3) * x, (X,)),
    (lambda x: cytape.function(lambda y: 2.0 * y)(x), (X,)),
    (functools.partial(lambda scale, x: scale * x, 2.0), (X,)),
    (lambda x: cytape.while_loop(lambda y: cnp.sum(y) < 100.0, lambda y: 2.0 * y, [x])[0], (X,)),
])
def test_none_makes_arrays(f, arguments):
    f = f if isinstance(f, Model) else cytape.function(f)
    for _ in range(3):
        assert isinstance(f(*arguments), (np.ndarray, np.generic))


def test_it_is_decided_call_by_call_not_by_the_trace():
    f = cytape.function(lambda x: 2.0 * x)
    kinds = [type(f(x)) for x in (X, W, X, W, X)]
    assert kinds == [np.ndarray, cytape.Tensor] * 2 + [np.ndarray]
    assert f.experimental_get_tracing_count() == 1


def test_an_input_signature_changes_nothing():
    f = cytape.function(lambda x, n: x * n, input_signature=[
        cytape.Spec.of((None,), float), cytape.Spec.of((), float)])
    assert type(f(X, 2.0)) is np.ndarray and type(f(X, cytape.constant(2.0))) is cytape.Tensor
    assert type(f(n=2.0, x=X)) is np.ndarray and type(f(W, 2.0)) is cytape.Tensor


def test_in_traces_and_graphs_there_are_tensors():
    f = cytape.function(lambda x: 2.0 * x)
    seen = []
    outer = cytape.function(lambda x: seen.append(type(f(X))) or x)
    assert type(outer(X)) is np.ndarray and seen == [cytape.Tensor]
    with cytape.Graph().as_default():
        assert type(f(X)) is cytape.Tensor
    assert type(f.get_concrete_function(X)(X)) is cytape.Tensor


def test_sparse_results_and_what_is_no_number_stay_as_they_are():
    slices, word, nothing, flag = cytape.function(
        lambda x: (cytape.IndexedSlices(x, np.array([0, 1, 2])), "word", None, True))(X)
    assert type(slices) is cytape.IndexedSlices and np.array_equal(slices.values, X)
    assert (word, nothing, flag) == ("word", None, True)


def test_derivatives_of_arrays_are_arrays():
    def f(x):
        return cnp.sum(x**3)

    value, gradient = cytape.function(cytape.value_and_grad(f))(X)
    assert type(value) is np.float64 and type(gradient) is np.ndarray
    assert value == 36.0 and np.array_equal(gradient, 3 * X**2)
    assert np.allclose(cytape.function(cytape.hessian(f))(X), np.diag(6 * X))
    inner = cytape.grad(cytape.function(f))
    assert np.array_equal(inner(X), 3 * X**2) and type(inner(X)) is np.ndarray


@each("f", [
    cytape.hessian(lambda x: cnp.sum(x * x)),  # of zeros and ones that are made inside
    lambda x: cytape.TensorArray("float64", size=2).write(0, x).stack(),
    lambda x: cytape.constant(2.0) * x,
])
def test_tensors_that_are_made_inside_are_nobodys(f):
    function = cytape.function(f)
    for _ in range(2):
        assert type(function(X)) is np.ndarray
    assert type(function(cytape.constant(X))) is cytape.Tensor


def test_gradients_of_what_does_not_matter_are_arrays():
    f = cytape.function(cytape.value_and_grad(lambda p: cnp.sum(p["a"] ** 2)))
    value, gradients = f({"a": X, "b": X})
    assert type(value) is np.float64
    assert type(gradients["a"]) is type(gradients["b"]) is np.ndarray
    assert not gradients["b"].any()


def rosenbrock(x):
    return cnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@each("method", [
    "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "dogleg", "trust-ncg", "trust-krylov",
    "trust-exact", "trust-constr",
])
def test_the_optimisers_of_scipy(method):
    optimize = pytest.importorskip("scipy.optimize")
    options = {}
    if method in ("dogleg", "trust-ncg", "trust-krylov", "trust-exact"):
        options["hess"] = cytape.function(cytape.hessian(rosenbrock))
    start = np.array([1.1, 1.2, 1.4, 1.9])  # where the Hessian is positive definite, for dogleg
    found = optimize.minimize(
        cytape.function(cytape.value_and_grad(rosenbrock)), start, jac=True, method=method,
        **options)
    expected = optimize.minimize(
        optimize.rosen, start, jac=optimize.rosen_der, method=method,
        **{name: optimize.rosen_hess for name in options})
    assert type(found.x) is np.ndarray and found.fun < 1e-6
    np.testing.assert_allclose(found.x, np.ones(4), atol=2e-3)
    np.testing.assert_allclose(found.x, expected.x, atol=2e-3)
