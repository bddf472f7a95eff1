"""Gradients of loops with checkpoints in plans, which run without Python."""

import _thread
import signal
import threading
import time

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.core.schedules import FirstPass, Kind, fewest_advances, reversal
from cytape.errors import GraphError
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.run import interpreter
from cytape.graph.run.plan import Plan
from cytape.ops.engine.op_kinds import general
from cytape.tensor.values.spec import Spec
from tests.cases import each, grouped
from tests.graph.plans import plan_of, symbols

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
    with cytape.Graph().as_default() as graph:
        inputs = [graph.placeholder(x.dtype, x.shape) for x in arrays]
        outputs = program(*inputs)
    return graph, inputs, outputs


STEPS = {
    "of numbers": (lambda i, y, a: cnp.sin(y * a), 1),
    "of short arrays": (lambda i, y, a: cnp.sin(y * a) + 0.1 * y[::-1], 8),
    "of long arrays": (lambda i, y, a: cnp.sin(y * a) + 0.1 * y[::-1], 500),
    "branches": (lambda i, y, a: cytape.cond(i % 3 == 0, lambda: cnp.sin(y * a), lambda: a - y), 3),
}


OPTIONS = [
    {"checkpoints": 1}, {"checkpoints": 3}, {"checkpoints": 10**20}, {"checkpoints": "auto"},
    {"memory_budget": 33_000}, {"memory_budget": 60_000}]


@grouped("name, dtype, options", [
    (name, f"{name}, {dtype}, {options}", (name, dtype, options), (i + j + k) % 3 > 0)
    for i, name in enumerate(STEPS) for j, dtype in enumerate(["float64", "float32", "complex128"])
    for k, options in enumerate(OPTIONS)])
def test_the_gradient_is_the_plain_one(name, dtype, options):
    step, size = STEPS[name]
    arrays = [np.linspace(0.1, 1.0, size).astype(dtype), np.linspace(1.0, 0.5, size).astype(dtype)]
    for n in (0, 1, 2, 11):
        graph, inputs, outputs = built(loop_of(step, n, **options), *arrays)
        plan = plan_of(graph, inputs, outputs)
        assert plan.n_calls == 0
        _, _, plain = expected = built(loop_of(step, n), *arrays)
        wanted = interpreter.run(
            expected[0], [expected[0].symbol_of(x) for x in plain],
            {expected[0].symbol_of(x): array for x, array in zip(expected[1], arrays, strict=True)})
        by_op = interpreter.run(
            graph, [graph.symbol_of(x) for x in outputs],
            {graph.symbol_of(x): array for x, array in zip(inputs, arrays, strict=True)})
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        for _ in range(2):
            for found, in_python, right in zip(plan.run(arrays), by_op, wanted, strict=True):
                np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
                np.testing.assert_allclose(in_python, right, rtol=tolerance, atol=tolerance)


@each("options", [{}, {"checkpoints": 1}, {"checkpoints": "auto"}], ids=str)
def test_draws_are_sliced(options):
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


def steps_of(n, **options):
    return lambda x: cytape.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, counted(y)), (0, x), **options)[1]


def steps_taken(gradient, x=0.3):
    expected = gradient(np.array(x))
    taken["steps"] = 0
    np.testing.assert_array_equal(gradient(np.array(x)), expected)
    return taken["steps"]


many_steps = pytest.mark.parametrize(("n", "states"), [
    (30, 1), (40, 4), (2000, 40), pytest.param(10_000, 100, marks=pytest.mark.exhaustive)])


def advances_of_unknown(n, states):
    """Return the number of steps taken where their number is unknown beforehand."""
    first_pass = FirstPass(None, states, None, 8, 8)
    for step in range(n):
        first_pass.slot_for(step)
    return n + sum(action.stop - action.step for action in reversal(
        first_pass.index()[1::2], n, states) if action.kind is Kind.ADVANCE)


@many_steps
def test_the_loop_stores_the_snapshots_that_its_gradient_begins_with(n, states):
    found = steps_taken(cytape.function(cytape.grad(steps_of(n, checkpoints=states))))
    # By the schedule, and one more run of each step for the operands of its gradient.
    assert found == advances_of_unknown(n, states) + n
    assert found <= 1.16 * fewest_advances(n, states) + 2 * n


@each(("n", "states"), [(30, 1), (40, 4), (1000, 10)])
def test_a_gradient_from_outside_takes_the_fewest_steps(n, states):
    # The loop has been taken; then it is known how many steps there are.
    found = steps_taken(cytape.grad(cytape.function(steps_of(n, checkpoints=states))))
    assert found == n + fewest_advances(n + 1, states) + n


@many_steps
def test_a_loop_that_says_how_long_it_is_takes_the_fewest_steps(n, states):
    for f in (lambda x: cytape.checkpointed_scan(counted, x, n, states),
              lambda x: cytape.while_loop(lambda y: True, counted, x, maximum_iterations=n,
                                          checkpoints=states)):
        found = steps_taken(cytape.function(cytape.grad(f)))
        assert found == fewest_advances(n + 1, states) + n


@each("options", [{"checkpoints": "auto"}, {"memory_budget": 4000}], ids=str)
def test_blocks_take_every_step_twice(options):
    assert steps_taken(cytape.function(cytape.grad(steps_of(500, **options)))) == 2 * 500


@each("options", [{"checkpoints": 3}, {"checkpoints": "auto"}], ids=str)
def test_an_inner_loop_keeps_the_snapshots_of_one_iteration(options):
    n, m = 5, 12

    def f(x):
        return cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, steps_of(m, **options)(y) + 0.1 * y),
            (0, x))[1]

    gradient = cytape.function(cytape.grad(f))
    again = m + fewest_advances(m + 1, 3) + m if options["checkpoints"] == 3 else 3 * m
    assert steps_taken(gradient) == n * again
    np.testing.assert_allclose(gradient(np.array(0.3)), cytape.grad(f)(0.3), rtol=1e-12)


def test_snapshots_in_loops_with_snapshots():
    def f(x, a, **options):
        def outer(i, y):
            _, y = cytape.while_loop(
                lambda k, y: k < i, lambda k, y: (k + 1, cnp.sin(y * a)), (0, y), **options)
            return i + 1, y + 0.1 * a

        return cnp.sum(cytape.while_loop(lambda i, y: i < 9, outer, (0, x), **options)[1])

    arrays = np.linspace(0.1, 1.0, 3), np.linspace(1.0, 0.5, 3)
    expected = cytape.function(cytape.grad(f, (0, 1)))(*arrays)
    for options in ({"checkpoints": 2}, {"checkpoints": "auto"}, {"memory_budget": 500}):
        gradient = cytape.grad(lambda x, a, o=options: f(x, a, **o), (0, 1))
        for _ in range(2):
            for found, right in zip(cytape.function(gradient)(*arrays), expected, strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-12)


@each("maximum", [4, 11, 50])
def test_a_limit_and_a_condition(maximum):
    def program(x, a, **options):
        y, _ = cytape.while_loop(
            lambda y, i: cnp.sum(y) < 40.0, lambda y, i: (y * a + 0.1 * y[::-1], i + 1), (x, 0),
            maximum_iterations=maximum, **options)
        return cnp.sum(y * y)

    for start in (1.0, 1.2, 60.0):  # the last one takes no step
        arrays = np.full(3, start), np.array([1.1, 1.2, 1.3])
        expected = cytape.function(cytape.grad(program, (0, 1)))(*arrays)
        for states in (1, 2, 5):
            found = cytape.function(cytape.grad(
                lambda x, a, k=states: program(x, a, checkpoints=k), (0, 1)))(*arrays)
            for x, right in zip(found, expected, strict=True):
                np.testing.assert_array_equal(x, right)


@each("options", [
    {"checkpoints": 2}, {"checkpoints": 5}, {"checkpoints": "auto"}, {"memory_budget": 600}],
    ids=str)
def test_wherever_a_loop_ends(options):
    def program(x, a, n, **options):
        return cnp.sum(cytape.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, cnp.sin(y * a) + 0.1 * y[::-1]), (0, x),
            **options)[1])

    plain = cytape.function(cytape.grad(program, (0, 1)))
    few = cytape.function(cytape.grad(lambda x, a, n: program(x, a, n, **options), (0, 1)))
    x, a = np.linspace(0.1, 1.0, 3), np.linspace(1.0, 0.5, 3)
    for n in map(cytape.constant, range(40)):
        for found, right in zip(few(x, a, n), plain(x, a, n), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-13, atol=1e-15)


def test_gradients_of_one_loop_share_its_snapshots_or_have_their_own():
    def program(x, a, **options):
        _, y = cytape.while_loop(
            lambda i, y: i < 13, lambda i, y: (i + 1, STEPS["branches"][0](i, y, a)), (0, x),
            **options)
        return [y, *cytape.gradients(cnp.sum(y), [x]), *cytape.gradients(cnp.sin(y), [x]),
                *cytape.gradients(cnp.sum(y * y), [x, a])]

    arrays, found = [np.linspace(0.1, 1.0, 3), np.linspace(1.0, 0.5, 3)], []
    for options in ({}, {"checkpoints": 3}):
        graph, inputs, outputs = built(lambda x, a, o=options: program(x, a, **o), *arrays)
        plan = plan_of(graph, inputs, outputs)
        assert plan.n_calls == 0
        found.append(plan.run(arrays))
    for plain, few in zip(*found, strict=True):
        np.testing.assert_allclose(few, plain, rtol=1e-12)


def test_states_of_other_shapes_than_the_first_are_not_stored():
    def longer(x, n, **options):
        def body(i, v):
            return i + 1, cytape.cond(
                i < 5, lambda: cnp.sin(v), lambda: cnp.concatenate([v, v[-1:]]))

        return cnp.sum(cytape.while_loop(
            lambda i, v: i < n, body, (0, x), shape_invariants=[(), (None,)], **options)[1] ** 2)

    x = np.array([0.1, 0.4])
    plain = cytape.function(cytape.grad(longer))
    for options in ({"checkpoints": 4}, {"checkpoints": "auto"}):
        few = cytape.function(cytape.grad(lambda x, n, o=options: longer(x, n, **o)))
        for n in map(cytape.constant, (0, 1, 4, 9)):
            np.testing.assert_allclose(few(x, n), plain(x, n), rtol=1e-14)


@each("traced", [counted, cnp.sin])
def test_snapshots_of_shapes_that_only_a_run_knows(traced):
    def program(x, **options):
        return cnp.sum(cytape.while_loop(
            lambda i, y: i < 40, lambda i, y: (i + 1, traced(y)), (0, x), **options)[1])

    plain, few = [
        cytape.function(cytape.grad(lambda x, o=options: program(x, **o)),
                        input_signature=[Spec.of((None,), float)])
        for options in ({}, {"checkpoints": 4})]
    for size in (3, 1, 5):
        x = np.linspace(0.1, 1.0, size)
        np.testing.assert_array_equal(few(x), plain(x))
        if traced is counted:
            taken["steps"] = 0
            few(x)
            assert taken["steps"] == advances_of_unknown(40, 4) + 40


def test_snapshots_that_are_fed():
    graph, inputs, outputs = built(
        loop_of(lambda i, y, a: cnp.sin(y * a), 7, checkpoints=3), np.ones(2), np.ones(2))
    node = next(i for i, op in enumerate(graph.ops) if op.name == "WhileSnapshots")
    fed = list(map(graph.tensor_at, graph.outputs_of(node)))[-3:]
    arrays = [np.array([0.3, 0.4]), np.array([0.9, 0.8])]
    stacks = [x.numpy() for x in plan_of(graph, inputs, fed).run(arrays)]
    assert stacks[-1].tolist() == [1, 0, 0, 4, 1, 6, 2]
    plan = Plan(optimise(
        Subgraph(graph, symbols(graph, [*inputs, *fed]), symbols(graph, outputs)),
        [Spec.of(x.shape, x.dtype) for x in (*arrays, *stacks)]))
    assert plan.n_calls == 0
    expected = plan_of(graph, inputs, outputs).run(arrays)
    for _ in range(2):
        for found, right in zip(plan.run(arrays + stacks), expected, strict=True):
            np.testing.assert_array_equal(found, right)
    for wrong in ([1, 0, 0, 4, 1, 7, 2], [1, 0, 0, 4, 1, 6, 3], [1, 0, 0, 6, 1, 4, 2],
                  [1, 0, 0, 4, 1, 6, -1], [3, 0, 0, 4, 1, 6, 2], [0, 0, 0, 4, 1, 6, 2],
                  [1, 1, 0, 4, 1, 6, 2], [-1, 0, 0, 4, 1, 6, 2]):
        with pytest.raises(GraphError, match="not those of a loop of so many iterations"):
            plan.run([*arrays, *stacks[:-1], np.array(wrong)])


def test_too_small_a_budget_is_an_error_when_the_number_of_iterations_is_known():
    graph, inputs, outputs = built(
        loop_of(lambda i, y, a: cnp.sin(y * a), 11, memory_budget=40), np.ones(8), np.ones(8))
    plan = plan_of(graph, inputs, outputs)
    assert plan.n_calls == 0
    for _ in range(2):
        with pytest.raises(GraphError, match="needs at least .* bytes.*memory_budget is 40"):
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
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    start = time.monotonic()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            gradient(np.array(1.0))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 60  # it would take hours
