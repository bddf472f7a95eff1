"""Loops in plans, which run without Python: the same numbers, and as few copies as there can be."""

import signal

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.run import interpreter
from tests.cases import each
from tests.graph.plans import plan_of
from tests.threads import in_threads

LARGE = 500  # elements: more than what is copied into a frame


def built(program, *specs):
    """A graph of a program, and its plan, which calls no Python."""
    with cytape.Graph().as_default() as graph:
        inputs = [graph.placeholder(dtype, shape) for dtype, shape in specs]
        outputs = program(*inputs)
    plan = plan_of(graph, inputs, outputs)
    assert plan.n_calls == 0
    return graph, inputs, outputs, plan


def check(program, *arrays):
    graph, inputs, outputs, plan = built(program, *[(x.dtype, x.shape) for x in arrays])
    expected = interpreter.run(
        graph, [graph.symbol_of(x) for x in outputs],
        {graph.symbol_of(x): array for x, array in zip(inputs, arrays, strict=True)})
    for _ in range(3):
        for found, wanted in zip(plan.run(arrays), expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
    return plan


def looped(step, n=7):
    def program(*variables):
        return cytape.while_loop(
            lambda i, *_: i < n, lambda i, *v: (i + 1, *step(i, *v)),
            (cytape.constant(0), *variables))

    return program


STEPS = {
    "new values": lambda i, x, y: (x * 0.5 + y, cnp.sin(x)),
    "change places": lambda i, x, y: (y, x),
    "rotate": lambda i, x, y: (y, x + y),
    "written over": lambda i, x, y: (x * 0.5, y + x),
    "one value twice": lambda i, x, y: (x + y, x + y),
    "one variable twice": lambda i, x, y: (x, x),
    "unchanged": lambda i, x, y: (x, y),
    "views": lambda i, x, y: (y[::-1], x * 2.0),
    "constants": lambda i, x, y: (cnp.zeros(x.shape), cnp.ones(x.shape)),
    "counted": lambda i, x, y: (x * i, cnp.where(i % 2 == 0, x, y)),
}


@each(size=[1, 3, LARGE], n=[0, 1, 2, 7], name=STEPS)
def test_values_of_variables_after_a_loop(name, n, size):
    rng = np.random.default_rng(0)
    check(looped(STEPS[name], n), rng.normal(size=size), rng.normal(size=size))


def test_three_large_variables_rotate():
    x, y, z = np.random.default_rng(0).normal(size=(3, LARGE))
    check(looped(lambda i, x, y, z: (y, z, x + y)), x, y, z)
    check(looped(lambda i, x, y, z: (z, x * 2.0, y)), x, y, z)


def test_start_values_are_not_written_over():
    x = np.ones(LARGE)
    check(lambda x: [*looped(lambda i, x: (x * 0.5,))(x), x + 1.0], x)
    assert np.array_equal(x, np.ones(LARGE))


def test_captured_values_outlast_the_iterations():
    for size in (3, LARGE):
        a, x = np.random.default_rng(0).normal(size=(2, size))
        check(lambda a, x: looped(lambda i, x: (cnp.tanh(a * x) + a,))(x), a, x)


def test_loops_and_branches_within_loops():
    def step(i, x):
        _, y = cytape.while_loop(
            lambda j, y: j < i, lambda j, y: (j + 1, y * 1.1), (cytape.constant(0), x))
        return (cytape.cond(cnp.sum(y) > 3.0, lambda: y - 1.0, lambda: y + x),)

    for size in (1, LARGE):
        check(looped(step), np.random.default_rng(0).normal(size=size))


def test_gradients_run_without_python_too():
    @cytape.function
    def f(x):
        return cnp.sum(looped(lambda i, x: (cnp.sin(x) * 1.1,), 5)(x)[1])

    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (3,))
        (gradient,) = cytape.gradients(f(x), [x])
    plan = plan_of(graph, [x], [gradient])
    assert plan.n_calls == 0
    value = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(plan.run([value])[0], cytape.grad(f)(value), rtol=1e-13)


def test_nodes_that_need_python_are_run_by_it():
    seen = []

    def seen_by_python(x):
        seen.append(float(x))
        return x

    @cytape.function
    def f(x):
        def step(i, x):
            return (cytape.numpy_function(seen_by_python, x, specs=cytape.Spec.of((), float)),)

        return looped(step, 3)(x)[1]

    assert float(f(np.array(2.0))) == 2.0
    assert seen == [2.0] * 3


def test_limits():
    for n, limit in ((0, -1), (0, 0), (3, 3), (7, 9)):
        @cytape.function
        def f(x, limit=limit):
            return cytape.while_loop(
                lambda i, x: i < 7, lambda i, x: (i + 1, x * 2.0), (cytape.constant(0), x),
                maximum_iterations=cytape.constant(limit))

        for _ in range(3):
            assert [float(y) for y in f(np.array(1.0))] == [n, 2.0**n]


def test_floating_point_trouble_is_reported():
    @cytape.function
    def f(x):
        return looped(lambda i, x: (1.0 / (x - 2.0),), 1)(x)[1]

    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            f(np.array(2.0))
        with np.errstate(all="raise"), pytest.raises(FloatingPointError) as raised:
            f(np.array(2.0))
        assert any("Divide" in note for note in raised.value.__notes__)
        with np.errstate(all="ignore"):
            assert float(f(np.array(2.0))) == np.inf
        assert float(f(np.array(3.0))) == 1.0


def test_trouble_in_a_backward_loop_is_reported_from_what_was_kept():
    @cytape.function
    def f(x):
        return cnp.sum(looped(lambda i, x: (cnp.sqrt(x) * 2.0,), 2)(x)[1])

    gradient = cytape.function(cytape.grad(f))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            found = gradient(np.array([0.0, 1.0]))
        assert not np.isfinite(found[0])
        np.testing.assert_allclose(found[1], 2.0**1.5 / 4)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_signals_are_looked_at():
    def raised(*_):
        raise KeyboardInterrupt

    @cytape.function
    def f(x):
        return looped(lambda i, x: (x * 1.0,), 1 << 60)(x)[1]

    before = signal.signal(signal.SIGALRM, raised)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            f(np.array(1.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_run_one_loop_side_by_side():
    @cytape.function
    def f(x):
        return looped(lambda i, x: (x * 1.0001 + 0.001,), 20_000)(x)[1]

    gradient = cytape.function(cytape.grad(lambda x: cnp.sum(f(x))))
    starts = [np.full(LARGE if k % 2 else LARGE, 1.0 + k) for k in range(4)]
    expected = [(f(x), gradient(x)) for x in starts]
    found = in_threads(lambda x: (f(x), gradient(x)), *starts)
    for (value, slope), (other, other_slope) in zip(found, expected, strict=True):
        assert np.array_equal(value, other)
        assert np.array_equal(slope, other_slope)


def test_the_memory_of_a_loop_counts():
    small, large = [
        built(looped(lambda i, x: (cnp.sin(x)[::-1] * cnp.cos(x)[::-1] + x,)), ("float64", (n,)))[3]
        for n in (1000, 10_000)]
    assert large.nbytes - small.nbytes >= 2 * 8 * 9000
    assert large.peak_bytes - small.peak_bytes >= 2 * 8 * 9000
