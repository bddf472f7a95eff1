"""A trace, and calls of it: at once, in other graphs, and with a gradient of its own."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import InvalidGradientError
from cytape.tensor.making import convert_to_tensor
from tests import ways
from tests.cases import each

X = np.array([0.5, -2.0])


def trace_of(f, *arguments, **options):
    return cytape.function(f, **options).get_concrete_function(*arguments)


def test_attributes_of_a_concrete_function():
    w = cytape.constant(3.0)
    trace = trace_of(lambda x, y: (x * w, [y, None]), X, np.float32(1.0))
    assert repr(trace) == "<ConcreteFunction <lambda>(float64[2], float32[])>"
    assert [t.id for t in trace.captured_inputs] == [w.id]
    assert [t.shape for t in trace.inputs] == [(2,), (), ()]
    product, (same, none) = trace.structured_outputs
    assert product.op.type == "Multiply" and same.op.type == "Placeholder" and none is None


ROWS = [lambda x: cytape.gather(x, [0, 0]), lambda x: cnp.take(x, np.array([0, 0]), axis=0)]


@each(rows=ROWS, shape=[(None,), (None, 2), (None, None), (3, None)])
def test_sparse_gradients_of_arguments_with_unknown_extents(shape, rows):
    specs = [cytape.Spec.of(shape, float)]
    f = cytape.function(lambda x: cnp.sum(rows(x) ** 2), input_signature=specs)
    sparse = cytape.function(lambda x: cytape.gradients_function(f)(x)[0], input_signature=specs)
    gradients = [
        sparse, cytape.function(sparse), cytape.function(lambda x: convert_to_tensor(sparse(x)))]
    for n in (2, 3) if shape[0] is None else (3,):
        x = cytape.constant(np.arange(1.0, 7.0).reshape(3, 2)[(slice(n), 0)[:3 - len(shape)]])
        expected, second = np.zeros(x.shape), np.zeros(x.shape)
        expected[0], second[0] = 4.0 * x.numpy()[0], 4.0
        np.testing.assert_array_equal(cytape.grad(f)(x), expected)
        outer, gradient = ways.taped(lambda x: convert_to_tensor(ways.gradient(f, x)), x)
        np.testing.assert_array_equal(convert_to_tensor(outer.gradient(gradient, x)), second)
        for g in gradients:
            gradient = g(x)
            if isinstance(gradient, cytape.IndexedSlices):
                assert gradient.dense_shape == x.shape
            np.testing.assert_array_equal(convert_to_tensor(gradient), expected)


def test_inputs_that_are_returned_and_results_that_are_returned_twice():
    trace = trace_of(lambda x: (x, x * 2.0, x), X)
    first, twice, again = trace(X)
    np.testing.assert_array_equal([first, twice, again], [X, 2 * X, X])
    z = cytape.constant(X)
    with ways.watching(z) as tape:
        first, twice, again = trace(z)
        total = cnp.sum(first + twice + again)
    np.testing.assert_array_equal(tape.gradient(total, z), [4.0, 4.0])


def test_results_are_not_overwritten_by_later_calls():
    trace = trace_of(lambda x: x * 2.0, np.zeros(1000))
    kept = [trace(np.full(1000, float(i))) for i in range(5)]
    for i, result in enumerate(kept):
        np.testing.assert_array_equal(result, np.full(1000, 2.0 * i))


def test_a_call_in_a_graph_is_its_body_under_a_scope():
    trace = trace_of(lambda x: cnp.tanh(x) * 2.0, X, name="layer")
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (2,), name="x")
        y = trace(trace(x))
    names = [op.name for op in graph.get_operations()]
    assert "layer/Tanh" in names and "layer_1/Multiply" in names
    expected = 2 * np.tanh(2 * np.tanh(X))
    np.testing.assert_array_equal(cytape.Session(graph).run(y, {x: X}), expected)


def test_nodes_that_run_for_side_effects_are_copied_too():
    v = cytape.Variable(1.0)
    trace = trace_of(lambda x: x * v.assign_add(1.0), np.array(1.0))
    outer = cytape.function(lambda x: trace(x) + trace(x) * 10.0)
    assert float(outer(np.array(1.0))) == 2.0 + 30.0
    assert float(v) == 3.0


def test_a_wrong_number_of_own_gradients():
    f = cytape.function(lambda x, y: x * y, grad_func=lambda x, y, g: g)
    with pytest.raises(InvalidGradientError, match="must return 2 gradients.*got 1"):
        cytape.grad(f)(2.0, np.array(3.0))


def test_own_gradients_in_forward_mode_are_transposed():
    f = cytape.function(lambda x: x * x, grad_func=lambda x, g: 5.0 * g)
    value, tangent = cytape.jvp(f, (3.0,), (2.0,))
    assert (value, tangent) == (9.0, 10.0)


def test_one_that_skipped_its_making_is_an_error():
    with pytest.raises(TypeError, match="argument"):
        cytape.ConcreteFunction.__new__(cytape.ConcreteFunction)


def test_a_history_does_not_keep_the_body_of_its_loop():
    body, history = trace_of(cnp.sin, X), trace_of(cnp.cos, X)
    assert history.history_of is None
    history.history_of = body
    assert history.history_of is body
    del body
    assert history.history_of is None
