"""The backward pass where a graph has captured tensors of graphs around it."""

import numpy as np
import pytest

import cytape
from cytape.ops.engine.op_kinds import general
from cytape.tensor.recording.state import building_into


class Inner(cytape.Graph):
    """A graph inside another one, whose tensors it takes in by placeholders."""

    def __init__(self, outer_graph):
        super().__init__()
        self.outer_graph = outer_graph
        self.captures = []

    def capture(self, tensor):
        for outer, symbol in self.captures:
            if outer.id == tensor.id:
                return self.tensor_at(symbol)
        if tensor.graph is not self.outer_graph and tensor.graph is not None:
            tensor = self.outer_graph.capture(tensor)
        placeholder = self.placeholder(tensor.dtype, tensor.shape)
        self.captures.append((tensor, self.symbol_of(placeholder)))
        return placeholder

    def variable_handle(self, variable):
        return self.capture(self.outer_graph.variable_handle(variable))


def evaluate(tensor, feeds):
    """Run a tensor, after all that its graph has captured."""
    if tensor.graph is None:
        return tensor.numpy()
    own = [pair for pair in feeds if pair[0].graph is tensor.graph]
    own += [(tensor.graph.tensor_at(symbol), evaluate(outer, feeds))
            for outer, symbol in getattr(tensor.graph, "captures", ())]
    return cytape.Session(tensor.graph).run(tensor, own)


@pytest.fixture
def outer():
    with cytape.Graph().as_default() as graph:
        yield graph


def test_d_4b_03_with_respect_to_what_was_captured(outer):
    x = cytape.placeholder("float64", ())
    with Inner(outer).as_default():
        [dx] = cytape.gradients(x * x * 3.0, x)
        assert evaluate(dx, [(x, 2.0)]) == 12.0


def test_d_4b_03_with_respect_to_what_the_captured_was_made_of(outer):
    x = cytape.placeholder("float64", ())
    y = np.sin(x)
    before = outer.n_nodes
    inner = Inner(outer)
    with inner.as_default():
        dx, dy = cytape.gradients(y * y * x, [x, y])
        assert dx.graph is dy.graph is inner
        np.testing.assert_allclose(
            [evaluate(dx, [(x, 0.5)]), evaluate(dy, [(x, 0.5)])],
            [2 * np.sin(0.5) * np.cos(0.5) * 0.5 + np.sin(0.5) ** 2, np.sin(0.5)])
    assert outer.n_nodes == before


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_d_4b_03_through_any_depth(outer, depth):
    x = cytape.placeholder("float64", ())
    y = np.exp(x)

    def nested(graph, level, y):
        with Inner(graph).as_default() as inner:
            z = y * np.cos(x)
            if level:
                return nested(inner, level - 1, z)
            return cytape.gradients(z, [x, y])

    def program(x):
        y = cytape.numpy.exp(x)
        for _ in range(depth):
            y = y * cytape.numpy.cos(x)
        return y

    dx, dy = nested(outer, depth - 1, y)
    with building_into(None):
        expected = cytape.grad(program)(0.5)
    np.testing.assert_allclose(evaluate(dx, [(x, 0.5)]), expected)
    np.testing.assert_allclose(evaluate(dy, [(x, 0.5)]), np.cos(0.5))


def test_d_4b_03_the_captured_tensor_and_what_stands_for_it(outer):
    x = cytape.placeholder("float64", ())
    y = x * x
    inner = Inner(outer)
    with inner.as_default():
        here = inner.capture(y)
        results = cytape.gradients(here * 5.0, [here, y, x])
        assert [evaluate(result, [(x, 2.0)]) for result in results] == [5.0, 5.0, 20.0]


def test_d_4b_03_a_target_around_the_graph(outer):
    x = cytape.placeholder("float64", ())
    y = x * x
    with Inner(outer).as_default():
        [dx] = cytape.gradients(y, x)
        assert evaluate(dx, [(x, 2.0)]) == 4.0


def test_d_4b_03_a_captured_constant_that_is_not_on_the_path_is_ignored(outer):
    x = cytape.placeholder("float64", ())
    other = general_opaque(x)
    with Inner(outer).as_default() as inner:
        eager = inner.capture(EAGER)
        z = x * eager + other
        [dx] = cytape.gradients(z, x, stop_gradients=other)
        assert evaluate(dx, [(x, 2.0)]) == 7.0
        assert cytape.gradients(x * 2.0, EAGER) == [None]
        [d_eager] = cytape.gradients(z, EAGER)
        assert evaluate(d_eager, [(x, 2.0)]) == 2.0


EAGER = cytape.constant(7.0)
general_opaque = general("DeclaredOpaqueOutside", lambda x: x)


def test_d_4b_03_stops_are_honoured_in_every_graph(outer):
    x = cytape.placeholder("float64", ())
    y = x * x
    inner = Inner(outer)
    with inner.as_default():
        z = y * x
        for stop in (y, inner.capture(y)):
            [dx] = cytape.gradients(z, x, stop_gradients=stop)
            assert evaluate(dx, [(x, 3.0)]) == 9.0


def test_d_4b_03_a_variable_is_the_same_in_every_graph(outer):
    v = cytape.Variable(3.0)
    y = v * v
    with Inner(outer).as_default():
        [dv] = cytape.gradients(y * v, v)
        assert evaluate(dv, []) == 27.0
    with Inner(outer).as_default():
        [dv] = cytape.gradients(y * 5.0, v)
        assert evaluate(dv, []) == 30.0


def test_d_4b_03_unconnected_is_zero_on_demand(outer):
    x, y = cytape.placeholder("float64", (None,)), cytape.placeholder("float64", ())
    with Inner(outer).as_default():
        [dx] = cytape.gradients(y * 2.0, x, unconnected_gradients="zero")
        feeds = [(x, [1.0, 2.0]), (y, 1.0)]
        np.testing.assert_array_equal(evaluate(dx, feeds), [0.0, 0.0])


def test_d_4b_03_unknown_shapes_of_captured_tensors(outer):
    x = cytape.placeholder("float64", (None, 2))
    y = np.sum(x * x, axis=0)
    with Inner(outer).as_default():
        [dx] = cytape.gradients(np.sum(y * y), x)
        value = np.arange(6.0).reshape(3, 2)
        np.testing.assert_array_equal(
            evaluate(dx, [(x, value)]), 4 * (value**2).sum(axis=0) * value)


def test_second_order_across_graphs(outer):
    x = cytape.placeholder("float64", ())
    y = x * x * x
    with Inner(outer).as_default():
        [dx] = cytape.gradients(y * 2.0, x)
        [second] = cytape.gradients(dx, x)
        assert evaluate(second, [(x, 2.0)]) == 24.0


def test_a_tensor_of_a_graph_inside_is_an_error(outer):
    x = cytape.placeholder("float64", ())
    with Inner(outer).as_default():
        y = x * 2.0
    with pytest.raises(ValueError, match="ys must belong to the graph being built"):
        cytape.gradients(y, x)


# ---- the graphs of functions


def run(results):
    return [float(result) for result in cytape.Session(results[0].graph).run(list(results))]


def test_d_4b_03_in_functions(outer):
    v = cytape.Variable(3.0)
    x = cytape.constant(2.0)
    y = np.sin(x) * v

    @cytape.function
    def gradients(z):
        @cytape.function
        def nested(z):
            return cytape.gradients(y * y * z * v, [x, v, z, y])

        return nested(z * 1.0)

    sin, cos = np.sin(2.0), np.cos(2.0)
    np.testing.assert_allclose(
        run(gradients(x)), [2 * sin * cos * 27 * 2, 3 * 9 * sin**2 * 2, sin**2 * 27, 2 * sin * 18])


def test_d_4b_03_captured_constants_are_the_same_in_every_graph(outer):
    x = cytape.constant(3.0)
    y = x * x

    @cytape.function
    def gradients():
        return cytape.gradients(y * x, [x, y])

    assert run(gradients()) == [27.0, 3.0]


def test_a_call_is_differentiated_as_one_op(outer):
    v = cytape.Variable(3.0)

    @cytape.function
    def scaled_square(x):
        return x * x * v

    x = cytape.constant(2.0)
    y = scaled_square(x)
    assert run(cytape.gradients(y * x, [x, v])) == [36.0, 8.0]
    assert run(cytape.hessians(y * x, x)) == [36.0]


def test_in_a_function_that_is_called_with_values():
    v, eager = cytape.Variable(3.0), cytape.constant(7.0)

    @cytape.function
    def gradients(x):
        return cytape.gradients(x * x * v + eager * x, [x, v, eager])

    assert [float(g) for g in gradients(cytape.constant(2.0))] == [19.0, 4.0, 2.0]


def test_a_target_of_unknown_shape_in_a_graph_around():
    """Its seed, ones of that shape, captures it only once the differentiation has begun."""
    @cytape.function(input_signature=[cytape.Spec.of((None,), float)])
    def slope(x):
        y = np.tanh(x)
        return cytape.cond(np.sum(x) > 0, lambda: cytape.gradients(y, x)[0], lambda: x)

    x = np.array([0.5, 1.0])
    assert np.allclose(slope(x), 1 - np.tanh(x) ** 2)
