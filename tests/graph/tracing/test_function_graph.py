"""The body of a trace: captures, variables, and what happens once it is complete."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import GraphError, SymbolicTensorError
from cytape.graph.run.interpreter import run
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into
from tests import ways
from tests.cases import each


@pytest.fixture
def graph():
    return FunctionGraph("body", None)


def test_a_tensor_is_captured_once(graph):
    x, y = cytape.constant(2.0), cytape.constant(3.0)
    with building_into(graph):
        z = x * y + x
    assert [tensor.id for tensor, _ in graph.captures] == [x.id, y.id]
    assert graph.spec_of(graph.captures[0][1]) is x.spec
    feeds = {symbol: tensor.numpy() for tensor, symbol in graph.captures}
    assert run(graph, [graph.symbol_of(z)], feeds) == [8.0]


def test_constants_of_an_outer_graph_are_captured(graph):
    inner = FunctionGraph("inner", graph)
    with building_into(graph):
        c, x = cytape.constant(5.0), graph.argument((), "float64")
        with building_into(inner):
            y = c * x
    assert [tensor.id for tensor, _ in inner.captures] == [c.id, x.id]
    (_, of_c), (_, of_x) = inner.captures
    feeds = {of_c: np.array(5.0), of_x: np.array(2.0)}
    assert run(inner, [inner.symbol_of(y)], feeds) == [10.0]


def test_a_variable_is_its_value_at_the_call_until_it_is_assigned_to(graph):
    v = cytape.Variable(3.0)
    with building_into(graph):
        first, second = v + 0.0, v + 1.0
        v.assign(10.0)
        third = v + 2.0
    assert [tensor for tensor, _ in graph.captures] == [v]
    assert [op.name for op in graph.ops].count("ReadVariable") == 1
    symbols = [graph.symbol_of(t) for t in (first, second, third)]
    feeds = {graph.captures[0][1]: v.numpy()}
    assert run(graph, symbols, feeds, graph.stateful) == [3.0, 4.0, 12.0]


def test_a_complete_trace_takes_no_more_ops(graph):
    with building_into(graph):
        x = graph.argument((2,), "float64")
        y = x * 2.0
    graph.finalize()
    for attempt in (lambda: y + 1.0, lambda: np.sin(y), lambda: y[0]):
        n_nodes = graph.n_nodes
        with pytest.raises(RuntimeError, match="trace of body, which is complete"):
            attempt()
        assert graph.n_nodes == n_nodes


def test_variables_made_in_attempts_count_when_these_succeed():
    outer = FunctionGraph("outer", None)
    graph = FunctionGraph("f", outer)
    v, w = cytape.Variable(1.0), cytape.Variable(2.0)
    graph.begin_attempt()
    graph.variable_made(v)
    graph.assigned[w.id] = w
    graph.end_attempt(False)
    assert (graph.n_variables_made, graph.assigned) == (0, {})
    graph.begin_attempt()
    graph.begin_attempt()
    graph.variable_made(v)
    graph.assigned[w.id] = w
    graph.end_attempt(True)
    assert graph.n_variables_made == outer.n_variables_made == 0
    graph.end_attempt(True)
    assert graph.n_variables_made == outer.n_variables_made == 1
    assert list(graph.assigned) == [w.id]
    graph.may_make_variables = lambda: False
    graph.begin_attempt()
    graph.variable_made(v)
    with pytest.raises(GraphError, match="made a variable"):
        graph.end_attempt(True)


def test_variables_that_a_function_with_a_derivative_makes_in_each_trace_are_an_error():
    f = cytape.custom_gradient(lambda x: (cytape.Variable(2.0, trainable=False) * x, lambda dy: dy))
    with pytest.raises(GraphError, match="made a variable"):
        cytape.function(lambda x: f(x))(cytape.constant(1.0))


OPEN = [cytape.Spec.of((None,), float)]


@each("make", [
    lambda x: np.random.normal(size=x.shape), lambda x: np.zeros(x.shape),
    lambda x: cnp.eye(x.shape[0]), lambda x: np.zeros(cnp.size(x, 0)),
    lambda x: list(range(x.shape[0]))])
def test_numbers_that_open_extents_are_not_are_errors_that_say_what_to_write(make):
    with pytest.raises(TypeError) as raised:
        cytape.function(make, input_signature=OPEN)(np.ones(3))
    assert r"random.normal(size=x.shape)" in raised.value.__notes__[0]
    with pytest.raises(TypeError) as raised:  # of another kind
        cytape.function(lambda x: len(3) + x, input_signature=OPEN)(np.ones(3))
    assert not hasattr(raised.value, "__notes__")
    with pytest.raises(TypeError) as raised:  # where all extents are known
        cytape.function(lambda x: x + np.zeros((None,)))(np.ones(3))
    assert not hasattr(raised.value, "__notes__")


@each("make", [
    cnp.eye, cnp.identity, cnp.tri, np.hanning, lambda n: cnp.linspace(0.0, 1.0, num=n),
    lambda n: cnp.fft.irfft(np.ones(3), n=n), lambda n: cnp.logspace(0.0, 1.0, n),
    lambda n: cnp.geomspace(1.0, 2.0, n), lambda n: np.random.normal(size=(n, 2)),
    lambda n: cnp.vander(np.ones(2), n), lambda n: cnp.tile(np.ones(2), n),
    lambda n: [0, 1, 2, 3, 4][n], lambda n: np.random.default_rng(0).normal(size=n)])
def test_an_extent_that_is_a_tensor_is_a_number_if_it_has_a_value(make):
    assert np.shape(make(cytape.constant(3))) == np.shape(make(3))
    with pytest.raises(TypeError) as raised:
        cytape.function(lambda x: make(cnp.size(x, 0)), input_signature=OPEN)(np.ones(3))
    if isinstance(raised.value, SymbolicTensorError):
        assert r"random.normal(size=x.shape)" in str(raised.value) and __file__ in str(raised.value)
    else:
        assert r"random.normal(size=x.shape)" in raised.value.__notes__[0]


def test_constants_of_calls_outside_are_captured_each_on_its_own(tmp_path):
    rng = np.random.default_rng(0)
    a, b, x = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), cytape.constant(rng.normal(size=3))
    tape, y = ways.taped(lambda x: b @ (a @ x), x, persistent=True)

    def back(seed):
        return tape.gradient(y, x, output_gradients=seed)

    def in_a_loop(seed):
        return cytape.while_loop(lambda i, g: i < 1, lambda i, g: (i + 1, back(seed)), (0, seed))[1]

    expected, seeds = b @ a, np.eye(3)
    for rows in (cytape.vmap(back), cytape.function(cytape.vmap(back))):
        np.testing.assert_allclose(np.asarray(rows(seeds)), expected)
    for row in (back, cytape.function(back), in_a_loop, cytape.function(in_a_loop)):
        for i in range(3):
            np.testing.assert_allclose(np.asarray(row(cytape.constant(seeds[i]))), expected[i])


def test_later_calls_in_a_trace_pass_what_a_captured_tensor_is_then():
    def outer(a):
        w = a * 1.0
        inner = cytape.function(lambda b: b * w)
        first = inner(a)
        w[0] = 5.0
        return first, inner(a)

    first, second = cytape.function(outer)(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(first, [4.0, 9.0])
    np.testing.assert_array_equal(second, [10.0, 9.0])


def test_changes_of_an_inner_body_are_known_in_the_outer_one(graph):
    v = cytape.Variable(3.0)
    with building_into(graph):
        x = graph.argument((), "float64")
        cytape.cond(x > 0.0, lambda: v.assign_add(1.0) * 1.0, lambda: x)
        y = v * 2.0
    assert list(graph.assigned) == [v.id]
    feeds = {symbol: t.numpy() for t, symbol in graph.captures}
    assert run(graph, [graph.symbol_of(y)], {**feeds, graph.symbol_of(x): np.array(1.0)},
               graph.stateful) == [8.0]
