"""The op that runs a body again and again, called as `while_loop` and derivatives call it."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.control.while_op import Loop
from cytape.graph.run import interpreter
from cytape.graph.tracing.body_tools import given_symbols
from cytape.ops.engine.op_kinds import OPS
from tests.cases import each

STACK = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def recurrence(reverse):
    """v <- v * a + the slice; what is stacked is v times the slice."""
    body = cytape.function(lambda v, x, a: (v * a + x, v * x)).get_concrete_function(
        *[cytape.Spec.of((2,), float)] * 3)
    with cytape.Graph().as_default() as graph:
        v, a = graph.placeholder("float64", (2,)), graph.placeholder("float64", (2,))
        stack = graph.placeholder("float64", (None, 2))
        n = cytape.identity(cnp.shape(STACK)[0] * cytape.constant(1))
        count, last, stacked = Loop(body, n, [v], [stack], [a], reverse=reverse).call()
    return graph, (v, a, stack), (count, last, stacked)


def in_numpy(v, a, stack, reverse):
    rows = []
    for x in stack[::-1] if reverse else stack:
        rows.append(v * x)
        v = v * a + x
    return v, np.array(rows[::-1] if reverse else rows)


@each("reverse", [False, True])
def test_slices_are_taken_and_stacked(reverse):
    graph, inputs, outputs = recurrence(reverse)
    values = [np.array([1.0, -1.0]), np.array([0.5, 2.0]), STACK]
    found = cytape.Session(graph).run(list(outputs), dict(zip(inputs, values, strict=True)))
    last, stacked = in_numpy(*values, reverse)
    assert found[0] == 3
    assert np.array_equal(found[1], last)
    assert np.array_equal(found[2], stacked)
    told = {graph.symbol_of(t): v for t, v in zip(inputs, values, strict=True)}
    for x, y in zip(interpreter.run(graph, list(map(graph.symbol_of, outputs)), told), found,
                    strict=True):
        assert np.array_equal(x, y)


@each(reverse=[False, True], which=[1, 2])
def test_gradients_with_respect_to_start_values_invariants_and_stacks(reverse, which):
    graph, inputs, outputs = recurrence(reverse)
    values = [np.array([1.0, -1.0]), np.array([0.5, 2.0]), STACK]
    with graph.as_default():
        first = cytape.gradients(cnp.sum(outputs[which] ** 2), list(inputs))
        second = cytape.gradients(cnp.sum(first[1] ** 2), list(inputs))
    session = cytape.Session(graph)
    feeds = dict(zip(inputs, values, strict=True))

    def of_numpy(*values):
        return np.sum(in_numpy(*values, reverse)[which - 1] ** 2)

    for i, gradient in enumerate(session.run(first, feeds)):
        np.testing.assert_allclose(gradient, by_differences(of_numpy, values, i), rtol=1e-6)

    def of_first(*values):
        feeds = dict(zip(inputs, values, strict=True))
        return np.sum(session.run(first[1], feeds) ** 2)

    for i, gradient in enumerate(session.run(second, feeds)):
        np.testing.assert_allclose(
            gradient, by_differences(of_first, values, i), rtol=1e-5, atol=1e-6)


def by_differences(f, values, i, step=1e-6):
    gradient = np.zeros(values[i].shape)
    for place in np.ndindex(gradient.shape):
        ends = []
        for sign in (1, -1):
            moved = [value.copy() for value in values]
            moved[i][place] += sign * step
            ends.append(f(*moved))
        gradient[place] = (ends[0] - ends[1]) / (2 * step)
    return gradient


def test_the_gradient_goes_forward_once_and_backward_once():
    graph, inputs, (_, last, _) = recurrence(False)
    n_before = graph.n_nodes
    with graph.as_default():
        cytape.gradients(last, list(inputs))
    loops = [graph.attrs[node] for node in range(n_before, graph.n_nodes)
             if graph.ops[node].name == "While"]
    assert [attrs["reverse"] for attrs in loops] == [False, True]
    assert all(attrs["condition"] is None for attrs in loops)


def test_the_stateful_one_counts_every_call():
    assert OPS["StatefulWhile"].stateful
    assert not OPS["While"].stateful


def beside_a_steep_one(x, options):
    """Return 8x; beside it a variable that no gradient reaches, with an infinite slope."""
    return cytape.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, np.sqrt(a * 0.0), b * 2.0), (0, x, x),
        **options)[2]


@each("options", [{}, {"checkpoints": 2}])
def test_unreached_values_have_no_gradient_or_tangent(options):
    f = cytape.function(lambda x: beside_a_steep_one(x, options))
    assert cytape.grad(f)(2.0) == 8.0
    assert cytape.function(cytape.grad(f))(2.0) == 8.0
    assert cytape.grad(lambda x: cytape.grad(f)(x) * x)(2.0) == 8.0

    def constant_start(x, steep):
        return cytape.while_loop(
            lambda i, a, b: i < 3, lambda i, a, b: (i + 1, np.sqrt(a * 0.0), b * x + a),
            (0, steep, x), **options)[2]

    steep = np.array(1.0)
    f = cytape.function(lambda x: constant_start(x, steep))  # x^4 + x^2
    assert cytape.jvp(f, (2.0,), (1.0,))[1] == 36.0


def test_gradients_in_a_graph_are_right_beside_and_behind_what_is_steep():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        y = beside_a_steep_one(x, {})
        z = cytape.while_loop(
            lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a, b * 2.0), (0, np.sqrt(x * 0.0), x))[2]
        steep = np.sqrt(x - 2.0)
        with_captured = cytape.while_loop(
            lambda b, s: b < 9.0, lambda b, s: (b * 2.0, s * steep), (x, x))[0]
        found = [cytape.gradients(of, x)[0] for of in (y, z, with_captured)]
        a = graph.placeholder("float64", ())
        unused = cytape.while_loop(
            lambda b, s: b < 9.0, lambda b, s: (b * 2.0, s * a), (cytape.constant(1.0), x * 2.0))[0]
        found += cytape.gradients(unused, [x, a])
    assert cytape.Session(graph).run(found, {x: 2.0, a: 1.0}) == [8.0, 8.0, 8.0, 0.0, 0.0]


def test_of_stacks_with_as_many_rows_a_repetition_is_given_the_lengths_once():
    def drawn(x, depth):
        return cytape.while_loop(
            lambda i, _: i < 2,
            lambda i, y: (i + 1, (drawn(y, depth - 1) if depth else y) * cnp.random.normal()
                          + cnp.random.uniform()),
            (cytape.constant(0), x))[1]

    body = cytape.function(lambda x: drawn(x, 3)).get_concrete_function(1.0)
    given = []
    while body.graph.stateful:
        given.append(len(given_symbols(body.graph)))
        inner = [attrs["body"] for attrs in body.graph.attrs if "body" in attrs]
        if not inner:
            break
        [body] = inner
    differences = np.diff(given[::-1])
    assert max(differences) <= 8, given


@each("n", [0, 2])
def test_gradients_of_slices_with_other_numbers_of_rows_may_have_a_known_number(n):
    v = cytape.Variable([1.0, 2.0, 3.0])

    def f(x, y):
        def assigning(row):
            v.assign_sub(cnp.tanh(row))
            return row * v

        def step(s, e):
            inner = cytape.recompute_grad(lambda: cnp.sin(cnp.sum(
                cytape.map_fn(assigning, cnp.stack([s, s * e])), axis=0)))
            return inner()

        return cnp.sum(cytape.scan(step, cnp.stack([x, y, x * y])[:n], x))

    def twice(x, y):
        return cytape.grad(lambda x, y: cnp.sum(cytape.grad(f)(x, y) ** 2), argnums=(0, 1))(x, y)

    results, function = [], cytape.function(twice)
    for take in twice, function, function:
        v.assign([1.0, 2.0, 3.0])
        results.append(take(np.array([1.0, 2.0, -0.5]), np.array([0.3, 0.7, 1.2])))
    np.testing.assert_allclose(results[1:], [results[0]] * 2, rtol=1e-11)


@each("n", [0, 2])
def test_without_iterations_gradients_of_stacks_have_the_extents_of_these(n):
    def f(x, y):
        def step(s, e):
            return cytape.while_loop(
                lambda i, _: i < 1, lambda i, a: (i + 1, cnp.sin(a) * e), (0, s))[1]

        return cytape.foldl(step, cnp.stack([x, y, x * y])[:n], x)

    s, t = cytape.constant([1.0, 0.5, 2.0]), cytape.constant([0.1, 0.2, 0.3])

    def twice(x, y):
        with cytape.GradientTape() as tape:
            tape.watch([x, y])
            with cytape.ForwardAccumulator([x, y], [s, t]) as accumulator:
                result = f(x, y)
            tangent = accumulator.jvp(result)
        return tape.gradient(tangent, [x, y], unconnected_gradients="zero")

    x, y = cytape.constant([1.0, 2.0, -0.5]), cytape.constant([0.3, 0.7, 1.2])
    function = cytape.function(twice, input_signature=[cytape.Spec.of((None,), float)] * 2)
    for _ in range(2):
        np.testing.assert_allclose(function(x, y), twice(x, y), rtol=1e-11)
