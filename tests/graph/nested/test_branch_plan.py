"""Branches in plans, which run without Python."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.control.cond_op import call_branch
from cytape.graph.control.while_op import Loop
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into
from tests.cases import each
from tests.graph.plans import plan_of


def branch_plan(program, *shapes):
    with cytape.Graph().as_default() as graph:
        inputs = [graph.placeholder("float64", shape) for shape in shapes]
        outputs = program(*inputs)
    plan = plan_of(graph, inputs, outputs)
    assert plan.n_calls == 0
    return plan


@each(size=[1, 3, 500], sign=[1.0, -1.0])
def test_one_of_two_is_run(sign, size):
    plan = branch_plan(lambda x, y: cytape.cond(
        cnp.sum(x) > 0, lambda: (x * y, y, x), lambda: (x, y[::-1] + 1.0, x)), (size,), (size,))
    x, y = sign * np.arange(1.0, size + 1), np.linspace(0, 1, size)
    expected = (x * y, y, x) if sign > 0 else (x, y[::-1] + 1.0, x)
    for _ in range(3):
        for found, wanted in zip(plan.run([x, y]), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_branches_of_several_shapes_are_left_to_python():
    @cytape.function
    def f(x):
        return cytape.cond(cnp.sum(x) > 0, lambda: x, lambda: x[:1])

    for _ in range(3):
        assert f(np.ones(3)).shape == (3,)
        assert f(-np.ones(3)).shape == (1,)


@each(size=[1, 3, 500], sign=[1.0, -1.0])
def test_memory_of_the_iterations_of_a_loop_is_released(sign, size):
    def program(x):
        y = cytape.cond(cnp.sum(x) > 0, lambda: cnp.sum(rows(x, 5)), lambda: cnp.sum(x * x))
        return [y, *cytape.gradients(y, [x])]

    def rows(x, n):
        _, y = cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, cnp.sin(y * 1.5) * x),
            (cytape.constant(0), x))
        return y

    plan = branch_plan(program, (size,))
    x = sign * np.linspace(0.1, 1.0, size)
    expected = cytape.grad(
        (lambda x: cnp.sum(rows(x, 5))) if sign > 0 else lambda x: cnp.sum(x * x))(x)
    for _ in range(3):
        np.testing.assert_allclose(plan.run([x])[1], expected, rtol=1e-13)


@each("which", [True, False])
def test_stacks_are_returned_from_both_branches_more_than_once(which):
    body = cytape.function(lambda y: (cnp.sin(y), y * 2.0)).get_concrete_function(
        cytape.Spec.of((2,), float))
    parts = []
    for k in range(2):
        graph = FunctionGraph("branch", None)
        with building_into(graph):
            x = graph.argument((2,), "float64")
            limit = graph.constant(np.asarray(2 + k, np.int64))
            _, last, rows = Loop(body, limit, [x], [], []).call()
            outputs = [rows, graph.constant(np.full((k, 2), 7.0)), rows, last]
        parts.append(ConcreteFunction("branch", graph, [graph.symbol_of(x)], outputs))
    with cytape.Graph().as_default() as outer:
        p, x = outer.placeholder("bool", ()), outer.placeholder("float64", (2,))
        results = call_branch(p, parts, [[x], [x]])
    plan = plan_of(outer, [p, x], results)
    assert plan.n_calls == 0
    start = np.array([0.5, -1.0])
    values = [start, np.sin(start), np.sin(np.sin(start))][: 2 if which else 3]
    for _ in range(2):
        rows, sevens, again, last = plan.run([np.bool_(which), start])
        np.testing.assert_allclose(rows, 2.0 * np.array(values))
        np.testing.assert_array_equal(again, rows)
        np.testing.assert_array_equal(sevens, np.full((0 if which else 1, 2), 7.0))
        np.testing.assert_allclose(last, np.sin(values[-1]))


def test_branches_have_any_number_of_outputs_and_gradients():
    n = 1100

    @cytape.function
    def f(x):
        return sum(cytape.cond(
            x[0] > 0, lambda: [x[k % 3] * float(k) for k in range(n)],
            lambda: [x[k % 3] for k in range(n)]))

    x = np.array([1.0, 2.0, 3.0])
    weights = [sum(range(k, n, 3)) for k in range(3)]
    np.testing.assert_allclose(float(f(x)), x @ weights)
    np.testing.assert_allclose(cytape.grad(f)(x), weights)
    np.testing.assert_allclose(cytape.grad(f)(-x), [len(range(k, n, 3)) for k in range(3)])


def test_trouble_is_reported_of_the_branch_that_ran():
    @cytape.function
    def f(x):
        return cytape.cond(x > 0, lambda: x, lambda: 1.0 / x)

    for _ in range(3):
        assert float(f(np.array(2.0))) == 2.0
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert float(f(np.array(0.0))) == np.inf
