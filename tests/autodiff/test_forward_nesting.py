"""Accumulators and tapes within each other, on several threads, and what they keep."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cytape
from cytape.ops.engine.general_op import GeneralOp
from cytape.tensor.recording.state import Recorder, is_recorded
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each
from tests.threads import in_threads


@pytest.fixture(autouse=True, scope="module")
def _no_garbage_of_other_tests():
    gc.collect()


def collected_live_tensors():
    """Count the tensors that are left when the garbage collector has been there."""
    gc.collect()
    return live_tensors()


# -- strict nesting --------------------------------------------------------------------------------

# A function and its derivatives, up to the fourth.
FUNCTIONS = {
    "x**5": [lambda x: x**5, lambda x: 5 * x**4, lambda x: 20 * x**3, lambda x: 60 * x**2,
             lambda x: 120 * x],
    "sin(x) by products": [
        lambda x: np.sin(x) * np.cos(x) * 2.0, lambda x: 2 * np.cos(2 * x),
        lambda x: -4 * np.sin(2 * x), lambda x: -8 * np.cos(2 * x), lambda x: 16 * np.sin(2 * x)],
    "exp(-x*x)": [
        lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x),
        lambda x: (4 * x**2 - 2) * np.exp(-x * x), lambda x: (12 * x - 8 * x**3) * np.exp(-x * x),
        lambda x: (16 * x**4 - 48 * x**2 + 12) * np.exp(-x * x)],
    "x*tanh(x)/x": [
        lambda x: x * np.tanh(x) / x, lambda x: 1 - np.tanh(x) ** 2,
        lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
        lambda x: (6 * np.tanh(x) ** 2 - 2) * (1 - np.tanh(x) ** 2),
        lambda x: (16 * np.tanh(x) - 24 * np.tanh(x) ** 3) * (1 - np.tanh(x) ** 2)],
    "1/(1-x)": [lambda x: 1 / (1 - x), lambda x: (1 - x) ** -2.0, lambda x: 2 * (1 - x) ** -3.0,
                lambda x: 6 * (1 - x) ** -4.0, lambda x: 24 * (1 - x) ** -5.0],
    "x[...]": [lambda x: np.sum(np.stack([x, x * x])[[0, 1, 1]]), lambda x: 1 + 4 * x,
               lambda x: 4.0, lambda x: 0.0, lambda x: 0.0],
}


def derivative(f, x, layers):
    """Differentiate once per layer, the last one innermost; keep no name of what comes between."""
    if not layers:
        return f(x)
    layer, *inner = layers
    if layer == "tape":
        return ways.gradient(lambda x: derivative(f, x, inner), x, unconnected_gradients="zero")
    if layer == "persistent tape":
        with ways.watching(x, persistent=True) as tape:
            result = derivative(f, x, inner)
            return tape.gradient(result, x, unconnected_gradients="zero")
    with cytape.ForwardAccumulator(
        x, np.ones((1, *x.shape)) if layer == "batched accumulator" else np.ones(x.shape),
        use_batch=layer == "batched accumulator",
    ) as accumulator:
        result = derivative(f, x, inner)
    jvp = accumulator.jvp(result, unconnected_gradients="zero")
    return jvp[0] if layer == "batched accumulator" else jvp


LAYERS = st.lists(
    st.sampled_from(["tape", "persistent tape", "accumulator", "batched accumulator"]), max_size=4)


@given(LAYERS, st.sampled_from(sorted(FUNCTIONS)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_nesting_gives_the_derivative_of_its_depth(layers, name, as_variable):
    make = cytape.Variable if as_variable else cytape.constant
    alive = live_tensors()
    x = make(0.375)
    got = derivative(FUNCTIONS[name][0], x, layers)
    expected = FUNCTIONS[name][len(layers)](0.375)
    np.testing.assert_allclose(float(got), expected, rtol=1e-10, atol=1e-10)
    assert not is_recorded(x.id)
    del x, got
    assert live_tensors() == alive


@given(LAYERS.filter(len), LAYERS)
@settings(max_examples=40, deadline=None)
def test_a_layer_that_differentiates_for_another_tensor_changes_nothing(layers, others):
    """An accumulator or a tape around everything that follows something else, or all of it."""
    x, other = cytape.constant(0.375), cytape.constant(2.0)

    def watched(x):
        return derivative(lambda y: y * np.exp(-x * x), other, others[:2])

    got = derivative(watched, x, layers[:2])
    scale = (2.0, 1.0, 0.0)[len(others[:2])]
    expected = scale * FUNCTIONS["exp(-x*x)"][len(layers[:2])](0.375)
    np.testing.assert_allclose(float(got), expected, rtol=1e-10, atol=1e-10)


# Each goes its own way through forward mode: by a program, in C, by NumPy, by a batched rule.
OPS = {
    "program": lambda x: np.sin(x) * x, "float16": lambda x: np.sin(x.astype(np.float16)),
    "large": lambda x: np.tanh(x * np.ones((100, 100, 2, 2))), "index": lambda x: x[0] * x[1],
    "product": lambda x: x @ x, "sum": lambda x: np.sum(x * x), "einsum": lambda x:
    np.einsum("ij,kj->ik", x, x), "softmax": lambda x: cytape.nn.softmax(x),
    "prod": lambda x: np.prod(x, axis=0), "where": lambda x: np.where(x > 0.0, x * x, x),
    "custom": lambda x: VJP_ONLY(x), "custom_gradient": lambda x: by_gradient(x),
    "custom_jvp": lambda x: by_jvp(x),
}
VJP_ONLY = GeneralOp("NestedSquare", np.square, lambda op, g: 2.0 * op.inputs[0] * g)
by_gradient = cytape.custom_gradient(lambda x: (x * x, lambda g: 2.0 * x * g))
by_jvp = cytape.custom_jvp(lambda x: x * x)
by_jvp.defjvp(lambda primals, tangents: (None, 2.0 * primals[0] * tangents[0]))


@each("op", OPS.values(), ids=OPS)
@each(inner_batch=[False, True], outer_batch=[False, True])
def test_nothing_inside_sees_what_an_accumulator_outside_computes(op, inner_batch, outer_batch):
    x = cytape.constant([[0.5, 1.0], [1.5, 2.0]])
    t, u = (np.ones((2, 2, 2) if batch else (2, 2)) for batch in (outer_batch, inner_batch))
    alone = cytape.ForwardAccumulator(x, t, outer_batch)
    with alone:
        y = op(x)
    expected = alone.jvp(y).numpy()
    with cytape.ForwardAccumulator(x, t, outer_batch) as outer:
        with cytape.ForwardAccumulator(x, u, inner_batch) as inner:
            tape, y = ways.taped(op, x)
    tangent = outer.jvp(y)
    np.testing.assert_allclose(tangent.numpy(), expected)
    assert inner.jvp(tangent) is None
    assert tape.gradient([tangent, inner.jvp(y)], x) is None
    assert outer.jvp(inner.jvp(y)) is not None


@pytest.mark.parametrize("constructed_first", ["outer", "inner"])
def test_the_order_of_entering_counts_for_two_accumulators(constructed_first):
    x = cytape.constant(2.0)
    pair = [cytape.ForwardAccumulator(x, 1.0), cytape.ForwardAccumulator(x, 10.0)]
    outer, inner = pair if constructed_first == "outer" else pair[::-1]
    with outer, inner:
        y = x**3
    assert float(outer.jvp(inner.jvp(y))) == 120.0
    assert inner.jvp(outer.jvp(y)) is None


def test_entering_again_may_turn_the_order_around():
    x = cytape.constant(2.0)
    first, second = cytape.ForwardAccumulator(x, 1.0), cytape.ForwardAccumulator(x, 1.0)
    with first, second:
        y = x**3
    with second, first:
        z = x**3
    assert float(first.jvp(second.jvp(y))) == float(second.jvp(first.jvp(z))) == 12.0
    assert second.jvp(first.jvp(y)) is None and first.jvp(second.jvp(z)) is None


def test_accumulators_that_are_left_in_another_order():
    x = cytape.constant(2.0)
    outer, inner = cytape.ForwardAccumulator(x, 1.0), cytape.ForwardAccumulator(x, 1.0)
    outer.__enter__()
    inner.__enter__()
    y = x**3
    outer.__exit__(None, None, None)
    z = y * x
    inner.__exit__(None, None, None)
    assert float(outer.jvp(inner.jvp(y))) == 12.0
    assert (outer.jvp(z), float(inner.jvp(z))) == (None, 32.0)
    assert outer.jvp(inner.jvp(z)) is None


def test_the_same_tangent_for_two_accumulators():
    """An inner accumulator's tangents can be moved by the outer one."""
    x, t = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    with cytape.GradientTape() as tape, cytape.ForwardAccumulator(t, np.array([1.0, 0.0])) as outer:
        tape.watch(t)
        with cytape.ForwardAccumulator(x, t) as inner:
            y = x * x
        jvp = np.sum(inner.jvp(y))
    assert outer.jvp(inner.jvp(y)).numpy().tolist() == [2.0, 0.0]
    assert tape.gradient(jvp, t).numpy().tolist() == [2.0, 4.0]


def test_three_accumulators_for_three_tensors():
    x, y, z = (cytape.constant(float(i)) for i in (2, 3, 5))
    with cytape.ForwardAccumulator(x, 1.0) as of_x, cytape.ForwardAccumulator(y, 1.0) as of_y:
        with cytape.ForwardAccumulator(z, 1.0) as of_z:
            product = x * y * z * x
    assert float(of_x.jvp(of_y.jvp(of_z.jvp(product)))) == 4.0
    assert of_y.jvp(of_x.jvp(product)) is None
    assert float(of_x.jvp(of_z.jvp(product))) == 12.0


# -- forward over reverse --------------------------------------------------------------------------


def test_hvp_where_the_saved_output_has_no_name(rng):
    """The product needs tanh's tangent again when its gradient is taken, and tanh its own."""
    x, t = cytape.constant(rng.normal(size=4)), rng.normal(size=4)
    with cytape.ForwardAccumulator(x, t) as accumulator:
        gradient = ways.gradient(lambda x: np.tanh(x) * np.tanh(x), x)
    s = np.tanh(x.numpy())
    d = 1 - s**2
    np.testing.assert_allclose(gradient.numpy(), 2 * s * d)
    np.testing.assert_allclose(accumulator.jvp(gradient).numpy(), 2 * d * (d - 2 * s**2) * t)


def test_without_an_accumulator_that_keeps_nothing():
    x = cytape.constant(np.ones(4))
    recorder = Recorder()
    recorder.watch(x.id)
    recorder.push()
    y = np.tanh(x)
    saved = weakref.ref(y.numpy().base)
    z = y * np.tanh(x)
    del y
    assert recorder.num_ops == 3 and saved() is not None
    del z
    recorder.pop()
    assert recorder.num_ops == 0 and saved() is None


def test_the_gradient_is_followed_wherever_it_is_taken_within_the_block():
    v = cytape.Variable([1.0, 2.0])
    with cytape.ForwardAccumulator(v, np.ones(2)) as accumulator:
        with cytape.GradientTape(persistent=True) as tape:
            y = np.sum(v**3)
            inside = tape.gradient(y, v)
        after = tape.gradient(y, v)
        with tape:
            reentered = tape.gradient(y, v)
    too_late = tape.gradient(y, v)
    for gradient in (inside, after, reentered):
        assert accumulator.jvp(gradient).numpy().tolist() == [6.0, 12.0]
    assert too_late.numpy().tolist() == [3.0, 12.0]
    assert accumulator.jvp(too_late) is None


def test_output_gradients_may_be_followed_too():
    x, seed = cytape.constant([1.0, 2.0]), cytape.constant([3.0, 4.0])
    with cytape.ForwardAccumulator([x, seed], [np.ones(2), np.array([0.0, 10.0])]) as accumulator:
        gradient = ways.gradient(lambda x: x * x, x, output_gradients=seed)
    assert accumulator.jvp(gradient).numpy().tolist() == [6.0, 48.0]


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_jacobians_within_an_accumulator(method):
    x = cytape.constant([[1.0, 2.0], [3.0, 4.0]])
    with cytape.ForwardAccumulator(x, np.ones((2, 2))) as accumulator:
        tape, y = ways.taped(lambda x: x**3, x)
        jacobian = getattr(tape, method)(y, x)
    jvp = accumulator.jvp(jacobian).numpy()
    assert jvp.shape == jacobian.shape
    np.testing.assert_allclose(jvp.sum(axis=tuple(range(1, jvp.ndim))), [18.0, 42.0])


def test_gradients_of_many_uses_are_summed_with_their_tangents(rng):
    x, t = cytape.constant(rng.normal(size=3)), rng.normal(size=3)
    with cytape.ForwardAccumulator(x, t) as accumulator:
        with ways.watching(x) as tape:
            y = sum([x * x * float(i) for i in range(1, 8)], np.sum(x) * x)
            y = y + np.stack([x[0], x[1], x[0] * x[2]]) + x[::-1]
        gradient = tape.gradient(y, x)
    # The sum of sum(x) x_i is sum(x)^2, whose Hessian is 2 everywhere; x0 x2 adds to its corners.
    expected = 56 * t + 2 * t.sum() + np.array([t[2], 0.0, t[0]])
    np.testing.assert_allclose(accumulator.jvp(gradient).numpy(), expected)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_tape_and_two_accumulators_in_any_order(order):
    x = cytape.constant(2.0)
    tape = cytape.GradientTape(persistent=True)
    one, two = cytape.ForwardAccumulator(x, 1.0), cytape.ForwardAccumulator(x, 1.0)
    recorders = [tape, one, two]
    outer, middle, inner = (recorders[i] for i in order)
    with outer, middle, inner:
        tape.watch(x)
        y = x**4
        # From the inside out; the tape's own gradient is taken while those outside it follow.
        for recorder in (inner, middle, outer):
            y = recorder.gradient(y, x) if recorder is tape else recorder.jvp(y)
    assert float(y) == 48.0


# -- threads ---------------------------------------------------------------------------------------


def test_threads_have_accumulators_of_their_own(rng):
    x = cytape.constant(rng.normal(size=20))
    turns = threading.Barrier(2)

    def work(tangent):
        for _ in range(30):
            with cytape.ForwardAccumulator(x, np.full(20, tangent)) as accumulator:
                turns.wait(timeout=60)
                y = np.sin(x) * x
                gradient = ways.gradient(np.sin, x)
                turns.wait(timeout=60)
            jvp, hvp = accumulator.jvp([y, gradient])
        return jvp.numpy() / tangent, hvp.numpy() / tangent

    for jvp, hvp in in_threads(lambda f: f(), lambda: work(1.0), lambda: work(3.0)):
        np.testing.assert_allclose(jvp, np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy()))
        np.testing.assert_allclose(hvp, -np.sin(x.numpy()))


def test_an_accumulator_does_not_follow_another_thread():
    x = cytape.constant(3.0)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        (elsewhere,) = in_threads(lambda f: f(), lambda: x * x)
        here = x * x
    assert (accumulator.jvp(elsewhere), float(accumulator.jvp(here))) == (None, 6.0)
    in_threads(lambda f: f(), accumulator.__enter__)
    here = x * x
    assert accumulator.jvp(here) is None
    accumulator.__exit__(None, None, None)


def test_a_tangent_may_go_in_another_thread():
    x = cytape.constant(3.0)
    with cytape.ForwardAccumulator(x, 1.0) as accumulator:
        box = [x * x]
        tangent = weakref.ref(accumulator.jvp(box[0]).numpy().base)
        in_threads(lambda f: f(), box.clear)
        assert tangent() is None


def test_accumulators_and_tapes_of_several_threads(rng):
    """Large enough for each thread to let the others run."""
    x, t = cytape.constant(rng.normal(size=100_000)), rng.normal(size=100_000)

    def hvp():
        with cytape.ForwardAccumulator(x, t) as accumulator:
            gradient = ways.gradient(lambda x: np.tanh(x) * np.sin(x) + np.exp(-x) * x, x)
        return gradient.numpy(), accumulator.jvp(gradient).numpy()

    expected = hvp()
    for result in in_threads(lambda f: f(), hvp, hvp):
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


def test_an_accumulator_may_be_left_while_one_around_it_computes():
    """Say by a generator that had entered it."""
    x, held = cytape.constant(2.0), []

    def entered():
        with cytape.ForwardAccumulator(x, 1.0) as accumulator:
            yield accumulator

    @cytape.custom_gradient
    def doubled(x):
        def grad_fn(dy):
            held[0].close()
            return dy * 2

        return x * 2, grad_fn

    with cytape.ForwardAccumulator(x, 1.0) as outer:
        held.append(entered())
        inner = next(held[0])
        y = doubled(x)
    assert float(outer.jvp(y)) == 2.0
    assert inner.jvp(y) is None
