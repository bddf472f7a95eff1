"""Gradients of loops with checkpoints in plans, which run without Python."""

import _thread
import threading
import time

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core.schedules import fewest_advances
from cytape.errors import GraphError
from cytape.graph.run import reference
from cytape.ops.engine.declare import general
from tests.graph.plans import plan_of

taken = {"steps": 0}


def step_counted(x):
    taken["steps"] += 1
    return np.sin(x)


counted = general("DeclaredCountedStep", step_counted, vjp=lambda op, g: g * cnp.cos(op.inputs[0]),
                  shape_rule=lambda x: x)


def loop_of(step, n, **options):
    def program(*inputs):
        x, *others = inputs
        _, y = cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, step(i, y, *others)), (0, x), **options)
        return cytape.gradients(cnp.sum(cnp.real(y * y)), list(inputs))

    return program


def built(program, *arrays):
    graph = cytape.Graph()
    with graph.as_default():
        inputs = [graph.placeholder(x.dtype, x.shape) for x in arrays]
        outputs = program(*inputs)
    return graph, inputs, outputs


STEPS = {
    "of numbers": (lambda i, y, a: cnp.sin(y * a), 1),
    "of short arrays": (lambda i, y, a: cnp.sin(y * a) + 0.1 * y[::-1], 8),
    "of long arrays": (lambda i, y, a: cnp.sin(y * a) + 0.1 * y[::-1], 500),
    "branches": (lambda i, y, a: cytape.cond(i % 3 == 0, lambda: cnp.sin(y * a), lambda: a - y), 3),
}


@pytest.mark.parametrize("options", [
    {"checkpoints": 1}, {"checkpoints": 3}, {"checkpoints": 10**20}, {"checkpoints": "auto"},
    {"memory_budget": 33_000}, {"memory_budget": 60_000}], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("name", STEPS)
def test_the_gradient_is_the_plain_one(name, dtype, options):
    step, size = STEPS[name]
    arrays = [np.linspace(0.1, 1.0, size).astype(dtype), np.linspace(1.0, 0.5, size).astype(dtype)]
    for n in (0, 1, 2, 11):
        graph, inputs, outputs = built(loop_of(step, n, **options), *arrays)
        plan = plan_of(graph, inputs, outputs)
        assert bool(plan.n_calls) == (dtype == "complex128")  # whose conjugates Python computes
        _, _, plain = expected = built(loop_of(step, n), *arrays)
        wanted = reference.run(
            expected[0], [expected[0].symbol_of(x) for x in plain],
            {expected[0].symbol_of(x): array for x, array in zip(expected[1], arrays, strict=True)})
        by_op = reference.run(
            graph, [graph.symbol_of(x) for x in outputs],
            {graph.symbol_of(x): array for x, array in zip(inputs, arrays, strict=True)})
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        for _ in range(2):
            for found, in_python, right in zip(plan.run(arrays), by_op, wanted, strict=True):
                np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
                np.testing.assert_allclose(in_python, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("options", [{}, {"checkpoints": 1}, {"checkpoints": "auto"}], ids=str)
def test_what_was_drawn_is_sliced(options):
    @cytape.function
    def f(x):
        def body(i, y):
            return i + 1, cnp.hypot(y[::-1], y * cnp.random.normal(size=3))

        _, y = cytape.while_loop(lambda i, y: i < 13, body, (0, x), **options)
        return cnp.sum(y)

    x = np.array([0.2, 0.7, 1.3])
    for _ in range(3):
        value, gradient = cytape.value_and_grad(f)(x)
        # A function that grows as its argument does is the product of this and its gradient.
        np.testing.assert_allclose(gradient @ x, value, rtol=1e-12)


@pytest.mark.parametrize(("n", "states"), [(30, 1), (40, 4), (10_000, 100)])
def test_steps_are_taken_as_often_as_the_schedule_says(n, states):
    gradient = cytape.function(cytape.grad(lambda x: cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, counted(y)), (0, x), checkpoints=states)[1]))
    gradient(np.array(0.3))
    taken["steps"] = 0
    gradient(np.array(0.3))
    # Once by the loop, and once more of each step for what its gradient reads.
    assert taken["steps"] == 2 * n + fewest_advances(n, states)


def test_too_small_a_budget_is_an_error_when_the_number_of_iterations_is_known():
    graph, inputs, outputs = built(
        loop_of(lambda i, y, a: cnp.sin(y * a), 11, memory_budget=40), np.ones(8), np.ones(8))
    plan = plan_of(graph, inputs, outputs)
    assert plan.n_calls == 0
    for _ in range(2):
        with pytest.raises(GraphError, match="bytes at the least.*memory_budget is 40"):
            plan.run([np.ones(8), np.ones(8)])


def test_trouble_is_reported():
    gradient = cytape.function(cytape.grad(lambda x: cytape.while_loop(
        lambda i, y: i < 9, lambda i, y: (i + 1, y / (y - y)), (0, x), checkpoints=2)[1]))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="invalid value|divide by zero"):
            assert np.isnan(gradient(np.array(2.0)))


def test_it_can_be_interrupted():
    n = 10**7
    gradient = cytape.function(cytape.grad(lambda x: cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, cnp.sin(y)), (0, x), checkpoints=2)[1]))
    start = time.monotonic()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gradient(np.array(1.0))
    timer.join()
    assert time.monotonic() - start < 60  # it would take hours
