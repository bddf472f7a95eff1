"""Derivatives of traced functions, and the arguments that these change."""

import copy
import gc
import warnings
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each
from tests.graph.tracing.test_functions import X
from tests.threads import in_threads


def composed(x, w):
    return cnp.sum(cnp.tanh(x @ w) ** 2) + cnp.sum(cnp.sin(x[1:]) * x[:-1])


def test_derivatives_through_a_function_and_inside():
    w = np.random.default_rng(1).normal(size=(2, 4))

    def f(x):
        return composed(x, w)

    def third(f):
        for _ in range(3):
            f = lambda x, f=f: cnp.sum(cytape.grad(f)(x) ** 2)  # noqa: E731
        return f

    x = np.random.default_rng(0).normal(size=(3, 2))
    ways.check(f, f, x, rtol=1e-10, ways=["function", "derivative in a function", "graph"])
    ways.check(third(cytape.function(f)), third(f), x, ways=["eager", "function"], modes=["value"])


def test_a_call_is_one_op_that_keeps_what_its_gradient_needs_and_no_more():
    f = cytape.function(lambda x: cnp.sum(cnp.exp(cnp.sin(x) + x * 2.0)))
    x = cytape.constant(X)
    with ways.watching(x) as tape:
        y = f(x)
        assert tape._recorder.num_ops == 1
    np.testing.assert_allclose(
        tape.gradient(y, x), np.exp(np.sin(X) + 2 * X) * (np.cos(X) + 2), rtol=1e-14)
    del y
    (trace,) = f._traces.by_key.values()
    (derivatives,) = trace.derivatives.values()
    assert [trace.graph.ops[trace.graph.node_of(s)].name for s in derivatives.saved] == ["Exp"]


def test_a_call_whose_result_is_dropped_leaves_the_tape():
    f = cytape.function(lambda x: cnp.sin(x))
    x = cytape.constant(1.0)
    with ways.watching(x, persistent=True) as tape:
        y = f(x)
        assert tape._recorder.num_ops == 1
        del y
        assert tape._recorder.num_ops == 0


def test_functions_in_several_threads():
    f = cytape.function(lambda x: cnp.sum(cnp.sin(x) * x))

    def work(i):
        for n in [1, 2, 3, 4] * 5:
            result = cytape.grad(f)(np.full(n, float(i)))
        return result

    for i, result in enumerate(in_threads(work, *range(4))):
        np.testing.assert_allclose(result, np.sin(i) + i * np.cos(i), rtol=1e-14)


def test_nothing_is_left_of_a_function_that_was_differentiated():
    def reference():
        f, x = cytape.function(cnp.sin), cytape.constant(2.0)
        ways.gradient(f, x)
        return weakref.ref(f.get_concrete_function(x))

    trace = reference()
    gc.collect()
    assert trace() is None


def test_a_copied_object_has_a_function_of_its_own():
    class Model:
        def __init__(self, checkpoints):
            self.factor = 2.0
            self.step = cytape.function(lambda x: x * self.factor)
            self.bound = cytape.function(self.times, checkpoints=checkpoints)

        def times(self, x):
            return x * self.factor

    for checkpoints in None, "auto":
        model = Model(checkpoints)
        assert model.bound(1.5) == 3.0
        other = copy.deepcopy(model)
        other.factor = 4.0
        assert other.bound(1.5) == 6.0
        assert other.bound.__name__ == "times"
        assert model.bound.experimental_get_tracing_count() == 1
        assert model.step(1.5) == other.step(1.5) == 3.0  # a lambda is shared


@each("transform", [cytape.grad, cytape.value_and_grad, cytape.hessian, cytape.implicit_grad])
def test_checkpoints_of_a_derivative_itself_draw_a_warning(transform):
    with pytest.warns(UserWarning, match="it is a derivative itself") as caught:
        cytape.function(transform(cnp.sin), checkpoints="auto", memory_budget=10)
    assert [warning.filename for warning in caught] == [__file__]  # it points at the caller


def change(x):
    x[1:] += x[:-1].copy()


def change_by_a_view(x):
    row = x[0]
    row *= 2.0
    return np.sum(x)


def change_and_return(x):
    x *= 2.0
    return {"x": x}


@each("f", [change, change_by_a_view])
def test_a_change_of_an_argument_that_the_caller_does_not_see_draws_a_warning(f):
    function = cytape.function(f)
    with pytest.warns(UserWarning, match="changes an argument .*return it"):
        function(np.ones((3, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(np.ones((3, 2)))  # of the trace, not of each call


def test_a_change_of_an_argument_that_is_returned_or_a_variable_draws_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cytape.function(change_and_return)(np.ones(3))
        cytape.function(change)(cytape.Variable(np.ones(3)))


@each("number", [np.float64, np.float32, np.int64, np.bool_])
def test_a_number_of_numpy_is_an_argument(number):
    f = cytape.function(lambda x: cnp.where(x, 2.0, 3.0))
    assert [float(f(number(x))) for x in (0, 1)] == [3.0, 2.0]
    assert f.experimental_get_tracing_count() == 1
