"""Gradients of elementwise ops in graphs: a node for each step of the partials' programs."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.ops.engine.op_kinds import elementwise
from tests.cases import each
from tests.graph.programs import evaluate, types_of


def gradients_in_a_graph(f, *inputs, seed=(1.0, 10.0)):
    """Return the values of the gradients, and which nodes they are made of."""
    with cytape.Graph().as_default() as graph:
        inputs = [cytape.constant(x) for x in inputs]
        with cytape.GradientTape() as tape:
            tape.watch(inputs)
            y = f(*inputs)
        seed = cytape.constant(seed)
        before = graph.n_nodes
        gradients = tape.gradient(y, inputs, output_gradients=seed)
        nodes = types_of(graph, before)
        return [None if g is None else evaluate(g) for g in gradients], nodes


def test_each_step_of_a_program_is_a_node():
    x, y = np.array([3.0, 1.0]), np.array([5.0, 2.0])
    (dx, dy), nodes = gradients_in_a_graph(lambda x, y: x * y, x, y)
    np.testing.assert_array_equal(dx, [5.0, 20.0])
    np.testing.assert_array_equal(dy, [3.0, 10.0])
    assert nodes == ["Multiply", "Multiply"]


def test_a_gradient_that_is_passed_on_takes_no_node():
    (dx, dy), nodes = gradients_in_a_graph(lambda x, y: x + y, np.ones(2), np.ones(2))
    assert nodes == []
    np.testing.assert_array_equal([dx, dy], [[1.0, 10.0]] * 2)


def test_broadcast_operands_are_summed_by_another_node():
    (dx, dy), nodes = gradients_in_a_graph(lambda x, y: x * y, 3.0, np.array([5.0, 2.0]))
    assert (dx, dy.tolist()) == (25.0, [3.0, 30.0])
    assert nodes == ["Multiply", "Multiply", "SumTo"]


@each("dtype", ["float16", "complex128"])
def test_gradients_beyond_programs_are_computed_by_ops(dtype):
    x = np.array([0.5, 2.0], dtype)
    (dx,), _ = gradients_in_a_graph(cnp.sin, x, seed=np.ones(2, dtype))
    np.testing.assert_allclose(dx, np.conj(np.cos(x)), 1e-3 if dtype == "float16" else 1e-12)


def test_a_partial_that_calls_what_graphs_have_no_op_for_says_so():
    op = elementwise("DeclaredSpacing", lambda x: 3.0 * x, lambda y, x: 3.0 + 0.0 * np.spacing(x))
    assert cytape.grad(op)(0.5) == 3.0
    with pytest.raises(SymbolicTensorError, match="numpy.spacing has no version in cytape"):
        gradients_in_a_graph(op, np.array([0.5, 2.0]))
