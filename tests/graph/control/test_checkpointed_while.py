"""Gradients of loops that keep few of their states are those that keep all."""

import subprocess
import sys

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from tests import ways
from tests.cases import each, sampled

X, A = np.linspace(0.1, 1.0, 8), np.linspace(0.5, 1.0, 8)
CHOICES = [{"checkpoints": 1}, {"checkpoints": 3}, {"checkpoints": "auto"},
           {"memory_budget": 2000}, {"memory_budget": 400}]


def loop_of(n, **options):
    """Return a function of a start value and of what is the same in all iterations."""
    def f(x, a):
        scale = cnp.asarray(0.1)

        def body(i, v):
            return i + 1, cytape.cond(
                i % 2 == 0, lambda: cnp.sin(v * a) + scale * v, lambda: v * cnp.cos(a))

        _, v = cytape.while_loop(lambda i, v: i < n, body, (0, x), **options)
        return cnp.sum(v * v)

    return f


def close(found, expected):
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


@sampled(4, options=CHOICES, n=[0, 1, 2, 7, 50])
def test_first_order(n, options):
    expected = cytape.grad(cytape.function(loop_of(n)), (0, 1))(X, A)
    f = loop_of(n, **options)
    close(cytape.grad(f, (0, 1))(X, A), expected)
    close(cytape.grad(cytape.function(f), (0, 1))(X, A), expected)
    close(cytape.function(cytape.grad(f, (0, 1)))(X, A), expected)


@each("options", CHOICES, ids=str)
def test_derivatives_of_any_order_and_kind(options):
    plain, f = loop_of(6), loop_of(6, **options)
    ways.check(lambda x: f(x, x * A), lambda x: plain(x, x * A), X)
    close([cytape.hessian(cytape.function(f))(X, A)], [cytape.hessian(plain)(X, A)])


@each("options", [
    {"memory_budget": 1e6}, {"memory_budget": np.float32(4096)}, {"checkpoints": 3.0},
    {"checkpoints": np.int8(3)}], ids=str)
def test_integral_numbers_of_any_type(options):
    close([cytape.grad(loop_of(5, **options))(X, A)], [cytape.grad(loop_of(5))(X, A)])


def test_a_persistent_tape_asks_twice():
    f = cytape.function(loop_of(9, checkpoints=2))
    x = cytape.constant(X)
    tape, y = ways.taped(lambda x: f(x, A), x, persistent=True)
    first, second = tape.gradient(y, x), tape.gradient(y, x)
    np.testing.assert_array_equal(first, second)
    close([first], [cytape.grad(loop_of(9))(X, A)])


def test_in_a_graph_whose_bound_is_fed():
    with cytape.Graph().as_default() as graph:
        x, n = cytape.placeholder("float64", (8,)), cytape.placeholder("int64", ())
        y = loop_of(n, checkpoints="auto")(x, cytape.constant(A))
        gradient = cytape.gradients(y, x)
    session = cytape.Session(graph)
    for bound in (0, 3, 10):
        expected = cytape.grad(cytape.function(loop_of(bound)))(X, A)
        close(session.run(gradient, {x: X, n: bound}), [expected])


def test_random_numbers_and_counters_are_those_of_the_loop():
    counter = cytape.Variable(np.int64(0))

    def f(x, **options):
        def body(i, v):
            counter.assign_add(1)
            return i + 1, v * (1 + 0.1 * cnp.random.normal(size=8))

        _, v = cytape.while_loop(lambda i, v: i < 12, body, (0, x), **options)
        return cnp.sum(v)

    found = {}
    for name, options in (("plain", {}), ("few", {"checkpoints": 2})):
        counter.assign(0)
        cnp.random.seed(3)
        value, gradient = cytape.function(cytape.value_and_grad(lambda x, o=options: f(x, **o)))(X)
        np.testing.assert_allclose(np.sum(gradient * X), value)  # linear in x
        found[name] = int(counter)
    assert found == {"plain": 12, "few": 12}


@each(("options", "error", "message"), [
    ({"checkpoints": 0}, ValueError, "at least 1"),
    ({"checkpoints": "all"}, ValueError, "'auto'"),
    ({"checkpoints": 2.5}, TypeError, "an integer or 'auto'"),
    ({"checkpoints": True}, TypeError, "an integer or 'auto'"),
    ({"memory_budget": 0}, ValueError, "at least 1"),
    ({"memory_budget": 0.0}, ValueError, "at least 1"),
    ({"memory_budget": 1e3 + 0.5}, TypeError, "memory_budget must be an integer, got 1000.5"),
    ({"memory_budget": float("inf")}, TypeError, "must be an integer, got inf"),
    ({"memory_budget": float("nan")}, TypeError, "must be an integer, got nan"),
    ({"checkpoints": 2, "memory_budget": 5}, ValueError, "not both"),
])
def test_invalid_choices(options, error, message):
    with pytest.raises(error, match=message):
        cytape.while_loop(lambda v: v < 3, lambda v: v + 1, [0], **options)


PEAK = """
import numpy as np
import cytape, cytape.numpy as cnp
def f(x):
    def body(i, v):
        for _ in range(5):
            v = cnp.tanh(v) * 1.01
        return i + 1, v
    return cnp.sum(cytape.while_loop(lambda i, v: i < n, body, (0, x), {options})[1])
for n in (10, {n}):
    gradient = cytape.function(cytape.grad(f))
    gradient(np.ones(16))
    with open("/proc/self/status") as status:  # getrusage knows what the parent had, too
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_a_hundredth_of_the_memory():
    grown = {}
    for options in ("", "checkpoints='auto'"):
        program = PEAK.format(options=options, n=100_000)
        output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True,
                                text=True).stdout
        before, after = map(int, output.split())
        grown[options] = after - before
    assert grown[""] > 10_000  # KiB: there is something to save
    assert grown["checkpoints='auto'"] <= grown[""] / 100 + 2048
