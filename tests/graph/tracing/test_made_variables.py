"""Variables that a traced function makes when it is traced first."""

import gc
import itertools
import weakref

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError
from tests.cases import each
from tests.graph.tracing.objects import layer_class

X = np.array([0.3, -1.2, 2.0])
outside, variable_outside = cytape.constant([1.0, 2.0, 3.0]), cytape.Variable([1.0, 2.0, 3.0])


@each("initial", [
    lambda: [1.0, 2.0, 3.0], lambda: np.array([1.0, 2.0, 3.0]),
    lambda: cnp.cumsum(cnp.ones(3)), lambda: outside * 1.0, lambda: variable_outside * 1.0,
    lambda: lambda: outside * 1.0, lambda: cytape.function(lambda: outside * 1.0)(),
], ids=["list", "array", "ops", "captured", "variable", "callable", "function"])
@each("use", ["eager", "tape", "trace", "graph"])
def test_variables_are_made_once_and_for_each_object(initial, use):
    Layer = layer_class()
    for _ in range(2):
        layer = Layer(initial)
        for x in X, 2 * X:
            if use == "tape":
                with cytape.GradientTape() as tape:
                    y = layer(x)
                np.testing.assert_array_equal(tape.gradient(y, layer.w), x)
            elif use == "trace":
                y = cytape.function(lambda x, layer=layer: layer(x))(x)
            elif use == "graph":
                with cytape.Graph().as_default() as graph:
                    y = layer(cytape.constant(x))
                y = cytape.Session(graph).run(y)
            else:
                y = layer(x)
            np.testing.assert_allclose(float(y), np.dot([1.0, 2.0, 3.0], x))
            layer.w.assign([1.0, 2.0, 3.0])
        assert layer.n_traces == 2  # the second to see that it makes no more
        layer(np.ones((2, 3)))
        assert layer.n_traces == 3


def test_random_initial_values_are_drawn_once():
    layer = layer_class()(lambda: cnp.random.normal(size=(3,)))
    y = layer(X)
    np.testing.assert_allclose(float(y), np.dot(layer.w.numpy(), X))
    assert len(set(layer.w.numpy())) == 3


def test_initial_values_that_depend_on_arguments_are_errors_and_nothing_stays():
    store = {}

    @cytape.function
    def f(x, how):
        if "v" not in store:
            store["v"] = cytape.Variable(how(x))
        return store["v"] * x

    for how in (lambda x: x, lambda x: x + 1.0, lambda x: lambda: x * 2.0):
        with pytest.raises(TypeError, match="symbolic, and was asked for its value"):
            f(X, how)
        assert f.cache_info().traces == 0 and not store
    f(X, lambda x: np.ones(3))


@each("n_objects", [1, 2, 3, 5])
def test_many_traces_are_told_of_once_however_many_were_made_twice_for_variables(n_objects):
    kind = layer_class()
    layers = [kind(lambda: [1.0, 2.0, 3.0]) for _ in range(n_objects)]
    calls = itertools.product(range(1, 5), layers)
    for n, layer in itertools.islice(calls, 4):
        layer(np.ones((n, 3)))
    n, layer = next(calls, (5, layers[0]))
    with pytest.warns(UserWarning, match="traced for the 5th time"):
        layer(np.ones((n, 3)))
    for n, layer in calls:
        layer(np.ones((n, 3)))


def test_values_after_an_assignment_are_no_initial_values():
    v = cytape.Variable(1.0)

    @cytape.function
    def f():
        v.assign_add(1.0)
        return cytape.Variable(v * 2.0) * 1.0

    with pytest.raises(TypeError, match="symbolic"):
        f()
    assert float(v) == 1.0


@each("around", [
    lambda f: f, cytape.grad, lambda f: lambda x: cytape.function(f)(x),
    lambda f: cytape.function(lambda x: cytape.cond(x > 0, lambda: f(x), lambda: x)),
])
def test_a_variable_for_each_trace_is_an_error(around):
    made = []

    @cytape.function
    def f(x):
        v = cytape.Variable(2.0)
        made.append(weakref.ref(v))
        return v * x

    for _ in range(2):
        with pytest.raises(GraphError, match="f made a variable, .* not for the first time"):
            around(f)(np.array(1.0))
    gc.collect()
    assert all(reference() is None for reference in made)
    assert f.cache_info().traces == f.experimental_get_tracing_count() - 2 == 0


def test_a_variable_of_a_later_trace_is_an_error_and_the_first_goes_on():
    store = {}

    @cytape.function
    def f(x):
        if x.shape not in store:
            store[x.shape] = cytape.Variable(2.0)
        return store[x.shape] * x

    np.testing.assert_array_equal(f(X), 2 * X)
    with pytest.raises(GraphError, match="not for the first time"):
        f(np.array(1.0))
    assert list(store) == [(3,)]
    np.testing.assert_array_equal(f(X), 2 * X)
    assert f.cache_info().traces == 1


def test_variables_of_functions_in_functions_count_for_the_outer_one():
    @cytape.function
    def outer(x):
        store = {}

        @cytape.function
        def inner(x):
            if not store:
                store["v"] = cytape.Variable(1.0)
            return store["v"] * x

        return inner(x)

    with pytest.raises(GraphError, match="outer made a variable"):
        outer(X)


def test_a_first_trace_that_fails_half_way_leaves_nothing_behind():
    layers = []

    class Failing:
        v = w = None

        @cytape.function
        def __call__(self, x):
            if self.v is None:
                self.v = cytape.Variable(1.0)
            if not layers:
                layers.append(1)
                raise KeyError("once")
            if self.w is None:
                self.w = cytape.Variable(2.0)
            return self.v * self.w * x

    f = Failing()
    with cytape.GradientTape() as tape:
        x = cytape.constant(3.0)
        tape.watch(x)
        with pytest.raises(KeyError):
            f(x)
        assert Failing.__call__.cache_info().traces == 0
        assert cytape.constant(1.0).graph is None
        y = f(x)
    assert (float(y), float(tape.gradient(y, x))) == (6.0, 2.0)


def test_a_derivative_that_makes_variables_is_an_error():
    @cytape.custom_gradient
    def twice(x):
        return x * 2.0, lambda g: g * cytape.Variable(2.0)

    f = cytape.function(lambda x: twice(x))
    with pytest.raises(GraphError, match="made a variable"):
        cytape.grad(f)(2.0)
    np.testing.assert_array_equal(f(X), 2 * X)


def test_variables_by_name_are_those_of_the_graph_around():
    f = cytape.function(lambda x: cytape.get_variable("w", (), initializer=2.0) * x)
    with pytest.raises(RuntimeError, match="asks for variable 'w'"):
        f(X)
    graphs = cytape.Graph(), cytape.Graph()
    for graph in (*graphs, *graphs):
        with graph.as_default():
            y = f(cytape.constant(3.0))
            w = cytape.get_variable("w")
            z = cytape.cond(y > 0, lambda: cytape.get_variable("w") * 5.0, lambda y=y: y)
        value = 4.0 + graphs.index(graph)
        w.assign(value)
        assert cytape.Session(graph).run([y, z]) == [3.0 * value, 5.0 * value]
