"""Derivatives of traces: what is kept for them, and how often anything is computed."""

import gc
import sys

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.trace_derivatives import MOST_PARTIAL
from cytape.ops.engine.op_kinds import general
from cytape.tensor.recording.state import FIRST_ORDER, HIGHER_ORDER
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each
from tests.threads import in_threads
from tests.ways import MODES, PLACES

calls = []
counted = general(
    "DeclaredCountedSine", lambda x: calls.append(1) or np.sin(x),
    vjp=lambda op, g: g * np.cos(op.inputs[0]), jvp=lambda op, t: t * np.cos(op.inputs[0]))


def derivatives_of(f):
    (trace,) = f._traces.by_key.values()
    return trace.derivatives


def test_nothing_is_computed_twice():
    f = cytape.function(lambda x: counted(x) * counted(x * 2.0))
    x = cytape.constant(0.5)
    f(x)
    calls.clear()
    tape, y = ways.taped(f, x)
    assert len(calls) == 2
    slope = tape.gradient(y, x)
    assert len(calls) == 2
    expected = np.cos(0.5) * np.sin(1.0) + 2 * np.sin(0.5) * np.cos(1.0)
    np.testing.assert_allclose(float(slope), expected, rtol=1e-15)


@each("persistent, order", [(False, FIRST_ORDER), (True, HIGHER_ORDER)])
def test_prepared_derivatives_depend_on_the_recorders(persistent, order):
    f = cytape.function(lambda x: cnp.sin(x) ** 3)
    x = cytape.constant(0.5)
    f(x)
    assert not derivatives_of(f)
    tape, y = ways.taped(f, x, persistent=persistent)
    assert list(derivatives_of(f)) == [(order, (True, False))]
    np.testing.assert_allclose(
        float(tape.gradient(y, x)), 3 * np.sin(0.5) ** 2 * np.cos(0.5), rtol=1e-15)


def test_intermediates_are_let_go_with_the_result():
    n = 1 << 16
    f = cytape.function(lambda x: cnp.sum(cnp.exp(cnp.sin(x))))
    x = cytape.constant(np.zeros(n))
    live = []
    for _ in range(3):
        with ways.watching(x, persistent=True) as tape:
            y = f(x)
            del y
            assert tape._recorder.num_ops == 0
            gc.collect()
            live.append(live_tensors())
    assert live[1] == live[2]  # the first call also made the traces, and what they hold


def test_random_draws_are_the_same_in_the_backward_pass():
    cytape.numpy.random.seed(3)
    f = cytape.function(lambda x: cnp.sum(x * cytape.numpy.random.normal(size=4)))
    x = cytape.constant(np.ones(4))
    for _ in range(2):
        tape, y = ways.taped(f, x)
        np.testing.assert_allclose(tape.gradient(y, x).numpy().sum(), float(y), rtol=1e-12)


def test_integer_and_unused_outputs():
    f = cytape.function(lambda x, y: (cnp.argmax(x), x * 2.0, y))
    x, y = cytape.constant([1.0, 3.0]), cytape.constant(1.0)
    tape, (place, twice, _) = ways.taped(f, x, y)
    assert int(place) == 1
    dx, dy = tape.gradient(twice, [x, y])
    np.testing.assert_array_equal(dx, [2.0, 2.0])
    assert dy is None  # as in eager code


def test_batches_of_tangents():
    f = cytape.function(lambda x: cnp.sin(x) * x)
    x = cytape.constant([0.5, 2.0])
    batch = np.arange(6.0).reshape(3, 2)
    with cytape.ForwardAccumulator(x, batch, use_batch=True) as accumulator:
        y = f(x)
    slope = np.sin(x.numpy()) + x.numpy() * np.cos(x.numpy())
    np.testing.assert_allclose(accumulator.jvp(y), batch * slope, rtol=1e-14)


CUBE = cytape.constant(3.0)
CUBES = {
    "captured": lambda x: x**CUBE,
    "passed": cytape.function(lambda x: cytape.function(lambda x, y: x**y)(x, CUBE)),
    "branch": lambda x: cytape.cond(np.sum(x) < 100.0, lambda: x**CUBE, lambda: x),
    "loop": lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, x: (i + 1, x**CUBE), (0, x))[1],
}


@each("f", CUBES.values(), ids=CUBES)
@each("mode", MODES)
def test_unneeded_values_are_not_computed(f, mode):
    """The derivative in an exponent takes the logarithm of the base, which has none below 0."""
    x, t = np.array([-2.0, 3.0]), np.array([1.0, -0.5])
    expected = {"reverse": 3 * x**2, "forward": 3 * x**2 * t}.get(mode, 6 * x * t)
    (found,) = PLACES["around_function"](MODES[mode], f, [x], [t])
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_there_are_gradients_for_those_who_need_them():
    f = cytape.function(lambda x, y: cnp.sin(x) * y)
    x, y = cytape.constant(0.5), cytape.constant(2.0)
    expected = {x.id: 2 * np.cos(0.5), y.id: np.sin(0.5)}
    for sources in [x], [y], [x, y], [x]:
        tape, z = ways.taped(lambda sources: f(x, y), sources)
        for source, gradient in zip(sources, tape.gradient(z, sources), strict=True):
            assert float(gradient) == pytest.approx(expected[source.id])
    (derivatives,) = derivatives_of(f).values()
    assert len(derivatives._traces._backward_from) == 3


@each("exponent", [cytape.constant(3.0), cytape.constant(np.float16(3.0))])
def test_inputs_that_stand_still_have_no_tangents(exponent):
    """The derivative in an exponent is NaN at negative numbers, and so is zero times that."""
    power = cytape.function(lambda x: x**exponent)
    x, t = np.array([-1.0, 2.0]), np.array([1.0, 0.5])
    for _ in range(2):
        np.testing.assert_allclose(cytape.jvp(power, (x,), (t,))[1], 3 * x**2 * t)
        total = cytape.hessian_vector_product(lambda x: np.sum(power(x)))
        np.testing.assert_allclose(total(x, t), 6 * x * t)
        with np.errstate(invalid="ignore"):
            assert np.isnan(cytape.jvp(lambda y: x**y, (np.array([3.0, 3.0]),), (t,))[1][0])
        with ways.watching(variable := cytape.constant(x)) as outer:
            inner, y = ways.taped(power, variable)
            first = inner.gradient(y, variable)
        np.testing.assert_allclose(outer.gradient(first, variable).numpy(), 6 * x)
    both = cytape.function(lambda x, y: x**y)
    y = cytape.constant(np.array([3.0, 3.0]))
    np.testing.assert_allclose(cytape.jvp(lambda x: both(x, y), (x,), (t,))[1], 3 * x**2 * t)
    tangent = cytape.jvp(both, (x[1:], y.numpy()[1:]), (t[1:], t[1:]))[1]
    np.testing.assert_allclose(tangent, 3 * 4 * 0.5 + 8 * np.log(2) * 0.5)


@each("n_others", [1, 100])
def test_outputs_that_no_gradient_reaches_have_none(n_others):
    """The gradient of the root at 0 is infinite, and zero times that is NaN."""
    f = cytape.function(lambda x: [x * x] + [cytape.numpy.sqrt(x)] * n_others)
    assert cytape.grad(lambda x: f(x)[0])(0.0) == 0.0
    assert cytape.grad(cytape.grad(lambda x: f(x)[0]))(0.0) == 2.0
    square, grad = cytape.value_and_grad(cytape.function(lambda x: f(x)[0]))(0.0)
    assert (square, grad) == (0.0, 0.0)


def some_of_both(a, b):
    return cnp.concatenate([a[a > 0.3], b[b > 0.3]])


@each("f", [
    some_of_both, cytape.recompute_grad(some_of_both),
    lambda a, b: some_of_both(a, cnp.random.normal(b, 0.1)),
    lambda a, b: some_of_both(a, b + cnp.random.normal(9.0, 0.1, (4,))),
    lambda a, b: cnp.concatenate(cnp.modf(a[a > 0.3]) + cnp.modf(b[b > 0.3])),
])  # fmt: skip
@each("checkpoints", [None, "auto"])
def test_zeros_for_what_stands_still_are_shaped_as_a_run_tells(f, checkpoints):
    f = cytape.function(f, checkpoints=checkpoints)
    a, b = map(cytape.constant, ([0.1, 0.5, 0.75, 2.0], [7.0, 8.0, 9.0, 10.0]))
    moving = [0.0, 1.0, 1.0, 1.0]
    for _ in range(2):
        y, t = cytape.jvp(lambda a: f(a, b), (a,), (a,))
        assert y.shape == t.shape
        assert sorted(set(t.numpy())) == [0.0, 0.5, 0.75, 2.0]
        np.testing.assert_allclose(cytape.grad(lambda a: np.sum(f(a, b)))(a), moving)
        np.testing.assert_allclose(cytape.grad(cytape.grad(lambda s: np.sum(
            f(a * s * s, b))))(1.0), 2 * 3.25)
        *_, t = cytape.jvp(lambda b: f(a, b), (b,), (b,))
        assert sorted(set(t.numpy())) == [0.0, 7.0, 8.0, 9.0, 10.0]


def test_outputs_that_no_gradient_reaches_are_shaped_as_a_run_tells():
    f = cytape.function(lambda a: cnp.modf(a[a > 0.3]))
    a = cytape.constant([0.1, 0.5, 0.75, 2.25])
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(f(a)[0] ** 2))(a), [0, 1, 1.5, 0.5])
    np.testing.assert_allclose(cytape.grad(lambda a: np.sum(f(a)[1] ** 2))(a), np.zeros(4))


def test_only_the_modes_that_may_be_asked_for_are_prepared():
    f = cytape.function(lambda x: cnp.sin(x) ** 3)
    x = cytape.constant(0.5)
    cytape.grad(f)(x)
    cytape.jvp(f, (x,), (1.0,))
    cytape.jvp(cytape.grad(f), (x,), (1.0,))
    made = [(bool(x._traces._backward_from), bool(x._traces._jvp_of))
            for x in derivatives_of(f).values()]
    assert made == [(True, False), (False, True), (True, True)]


def subsets_of_outputs(f, n, subsets):
    x = cytape.constant(np.ones(3))
    for chosen in subsets:
        with ways.watching(x) as tape:
            outputs = f(x)
            y = sum(np.sum(outputs[i]) for i in range(n) if chosen >> i & 1)
        expected = sum(i * np.cos(i) for i in range(n) if chosen >> i & 1)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected)


def test_traces_for_some_of_the_outputs_are_bounded():
    f = cytape.function(lambda x: [cnp.sin(x * i) for i in range(6)])
    for _ in range(2):
        subsets_of_outputs(f, 6, range(1, 64))
    assert f.cache_info().plans < 64
    (derivatives,) = derivatives_of(f).values()
    assert len(derivatives._traces._backward_from) == MOST_PARTIAL


def test_threads_that_use_different_outputs():
    f = cytape.function(lambda x: [cnp.sin(x * i) for i in range(8)])

    def work(seed):
        subsets_of_outputs(f, 8, np.random.default_rng(seed).integers(1, 256, 60).tolist())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        in_threads(work, *range(4))
    finally:
        sys.setswitchinterval(interval)


def test_derivatives_are_of_what_a_call_was_given():
    def f(w):
        c, q = w * 2.0, w * 1.0
        y = cytape.function(lambda q: cnp.exp(q) * c)(q)
        c[0], q[1] = 9.0, 8.0
        return cnp.sum(y)

    w = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(cytape.grad(f)(w), np.exp(w) * (2.0 * w + 2.0), rtol=1e-14)
    np.testing.assert_allclose(
        cytape.jvp(f, (w,), (np.ones(3),))[1], np.sum(np.exp(w) * (2.0 * w + 2.0)), rtol=1e-14)
