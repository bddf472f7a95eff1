"""recompute_grad and its kin: what is found elsewhere, assigned to, drawn; segments of chains."""

import functools
import random
import threading

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.tensor import live_tensors
from tests import ways
from tests.cases import each, sampled


def tape_gradients(f, xs):
    tape, y = ways.taped(lambda *_: f(), *xs)
    return tape.gradient(y, xs)


def persistent_twice(f, xs):
    tape, (y, z) = ways.taped(lambda *_: ((y := f()), y * 2.0), *xs, persistent=True)
    return [g for each in (y, z) for g in tape.gradient(each, xs, unconnected_gradients="zero")]


def two_tapes_at_once(f, xs):
    with cytape.GradientTape() as one, cytape.GradientTape() as other:
        one.watch(xs[:1])
        other.watch(xs)
        y = f()
    return [g for tape in (one, other) for g in tape.gradient(y, xs, unconnected_gradients="zero")]


def in_mode(mode):
    return lambda f, xs: mode(
        lambda *_: f(), xs, [np.full(x.shape, i + 1.0) for i, x in enumerate(xs)])


MODES = [persistent_twice, two_tapes_at_once, *map(in_mode, ways.ALL_MODES.values())]
IN_FUNCTIONS = ["closure", "argument-and-closure", "intermediate", "nested"]


class Held:
    pass


def programs():
    """Pairs of a program, of a function that wraps blocks, and what to differentiate it by."""
    x, c = cytape.constant([0.5, 1.5]), cytape.constant([2.0, 3.0])
    v, still = cytape.Variable([0.3, 0.7]), cytape.Variable([1.1, 1.2], trainable=False)
    held = Held()
    held.c = c
    both = [x, c, v, still]

    def in_a_loop(wrap):
        y = x
        for _ in range(3):
            y = wrap(lambda y: cnp.sin(y * v) + c)(y)
        return y

    def of_an_intermediate(wrap):
        found = cnp.exp(x * c)
        return wrap(lambda y: y * found + c)(x)

    def value_beside_its_variable(wrap):
        value = v.value()
        return wrap(lambda y: y * value * value * v * still)(x)

    return {
        "closure": (lambda wrap: wrap(lambda y: cnp.sin(y) * c * c)(x), both),
        "argument-and-closure": (lambda wrap: wrap(lambda y: cnp.sin(y) * x * c)(x), both),
        "no-arguments": (lambda wrap: wrap(lambda: cnp.sin(x) * c * v)(), both),
        "attribute": (lambda wrap: wrap(lambda y: y * y * held.c)(x), both),
        "intermediate": (of_an_intermediate, both),
        "value-and-variable": (value_beside_its_variable, both),
        "returned-as-found": (lambda wrap: wrap(lambda y: (y * y, c))(x)[1] * x, both),
        "returned-variable": (lambda wrap: wrap(lambda y: v)(x) * x * v, both),
        "nested": (lambda wrap: wrap(
            lambda y: wrap(lambda z: cnp.sin(z * c) * v)(y * y) * c)(x), both),
        "nested-thrice": (lambda wrap: wrap(lambda y: wrap(lambda z: wrap(
            lambda w: w * w * c * x)(z * z))(y * v))(x), both),
        "loop": (in_a_loop, both),
        "gradient-inside": (lambda wrap: wrap(
            lambda y: cytape.grad(lambda z: cnp.sum(z**3 * c * y))(y))(x), both),
        "custom-gradient-inside": (lambda wrap: wrap(cytape.custom_gradient(
            lambda y: (y * y * y, lambda g: 3.0 * g * y * y)))(x) * c, both),
        "gathered": (lambda wrap: wrap(lambda y: cytape.gather(v, [0, 0, 1]) * cytape.gather(
            c, [1, 1, 0]))(x), both),
        "complex": (lambda wrap: cnp.real(wrap(lambda y: cnp.exp(1j * y * c))(x)), both),
    }


@sampled(4, mode=MODES, name=list(programs()))
def test_the_same_derivatives_in_all_modes(name, mode):
    program, sources = programs()[name]
    expected = ways.dense(mode(lambda: program(lambda f: f), sources))

    def recomputed():
        return program(cytape.recompute_grad)

    calls = [lambda: mode(recomputed, sources)]
    if name in IN_FUNCTIONS:
        calls += [cytape.function(calls[0]), lambda: mode(cytape.function(recomputed), sources)]
    for call in calls:
        for found, wanted in zip(ways.dense(call()), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_assignments_happen_once_and_are_seen_again():
    total, scale = cytape.Variable(0.0, trainable=False), cytape.Variable(2.0)
    x = cytape.constant(3.0)

    def block(x):
        total.assign_add(x)
        scale.assign_add(1.0)
        return x * scale * total

    tape, y = ways.taped(lambda x: cytape.recompute_grad(block)(x), x, persistent=True)
    assert (float(y), float(total), float(scale)) == (27.0, 3.0, 3.0)
    for _ in range(2):
        assert float(tape.gradient(y, x)) == 9.0
        assert (float(total), float(scale)) == (3.0, 3.0)
    total.assign(100.0)
    scale.assign(100.0)
    assert float(tape.gradient(y, x)) == 9.0
    assert (float(total), float(scale)) == (100.0, 100.0)


def test_variables_are_put_back_after_an_error():
    v, x, fails = cytape.Variable(1.0), cytape.constant(3.0), []

    def block(x):
        v.assign_add(1.0)
        if fails:
            raise RuntimeError("now")
        return x * v

    tape, y = ways.taped(lambda x: cytape.recompute_grad(block)(x), x, persistent=True)
    fails.append(True)
    with pytest.raises(RuntimeError, match="now"):
        tape.gradient(y, x)
    assert float(v) == 2.0
    fails.clear()
    assert float(tape.gradient(y, x)) == 2.0


def test_other_threads_do_not_see_it_and_may_assign():
    x, v = cytape.constant(2.0), cytape.Variable(0.9)
    inside, may_go_on = threading.Event(), threading.Event()
    found, again = [], []
    another = threading.Thread(target=lambda: found.append(float(tape.gradient(y, x))))

    def block(x):
        if threading.current_thread() is another:
            inside.set()
            may_go_on.wait(60)
        elif again:
            another.start()
            inside.wait(60)
        return x * v

    tape, y = ways.taped(lambda x: cytape.recompute_grad(block)(x), x, persistent=True)
    again.append(True)
    v.assign(5.0)
    assert float(tape.gradient(y, x)) == 0.9
    assert float(v) == 5.0  # while the other thread is in the middle of its gradient
    v.assign_add(2.0)
    may_go_on.set()
    another.join()
    assert found == [0.9]
    assert float(v) == 7.0


def test_values_that_were_replaced_die_with_the_tape():
    x = cytape.constant(3.0)
    v = cytape.Variable(1.0)
    before = live_tensors()
    tape, y = ways.taped(lambda x: cytape.recompute_grad(lambda x: x * v)(x), x)
    v.assign(5.0)
    assert float(tape.gradient(y, x)) == 1.0
    del y
    assert live_tensors() == before


own = np.random.default_rng(1)
DRAWS = {
    "cytape": lambda x: cnp.random.normal(size=40),
    "dropout": lambda x: cytape.nn.dropout(cytape.constant(np.ones(40)), 0.5),
    "generator": lambda x: own.normal(size=40),
    "numpy": lambda x: np.random.normal(size=40),  # noqa: NPY002
    "python": lambda x: np.array([random.random() for _ in range(40)]),
}


@each("draw", DRAWS.values(), ids=DRAWS)
def test_random_numbers_are_the_same_again(draw):
    x = cytape.constant(np.arange(40.0))
    seen = []

    def block(x):
        seen.append(cytape.convert_to_tensor(draw(x)).numpy().copy())
        return x * seen[-1]

    tape, y = ways.taped(lambda x: cytape.recompute_grad(block)(x), x, persistent=True)
    between = draw(x)
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(y, x), seen[0])
    np.testing.assert_array_equal(seen[1], seen[0])
    after = draw(x)  # not what the block drew again
    assert not np.array_equal(after, seen[0])
    assert draw is DRAWS["dropout"] or not np.array_equal(after, between)


def test_a_generator_that_is_an_argument():
    x, generator = cytape.constant(1.0), np.random.default_rng(3)
    with ways.watching(x) as tape:
        y = cytape.recompute_grad(lambda x, generator: x * generator.normal())(x, generator)
    gradient = tape.gradient(y, x)
    expected = np.random.default_rng(3).normal(size=2)
    assert float(gradient) == expected[0]
    assert generator.normal() == expected[1]


def test_results_that_are_not_tensors_are_returned_unchanged():
    def block(x):
        return {"y": x * x, "n": 3, "mask": np.ones(2, bool), "none": None, "name": "block"}

    x = cytape.constant(3.0)
    tape, result = ways.taped(lambda x: cytape.recompute_grad(block)(x), x)
    assert float(tape.gradient(result["y"], x)) == 6.0
    assert result["n"] == 3 and type(result["n"]) is int
    assert type(result["mask"]) is np.ndarray
    assert result["none"] is None and result["name"] == "block"


def test_arrays_that_the_function_writes_to():
    def block(x, a):
        a += 1.0
        return x * a

    x, a = cytape.constant(3.0), np.ones(2)
    assert float(ways.gradient(lambda x: cytape.recompute_grad(block)(x, a), x)) == 4.0
    assert a.tolist() == [1.0, 1.0]


def test_checkpoint_is_another_name():
    x = cytape.constant(0.5)
    calls = []

    @cytape.checkpoint
    def block(x):
        calls.append(None)
        return cnp.tanh(x)

    [gradient] = tape_gradients(lambda: block(x), [x])
    assert float(gradient) == pytest.approx(1 - np.tanh(0.5) ** 2)
    assert len(calls) == 2


# -- chains ----------------------------------------------------------------------------------------


def chain(n, calls=None, most=None):
    def layer(x):
        if calls is not None:
            calls.append(None)
        if most is not None:
            most[0] = max(most[0], live_tensors())
        return cnp.tanh(x) + x

    return [layer] * n


@each(("n", "segments"), [(1, 1), (5, 1), (5, 2), (5, 5), (100, 10), (99, 10)])
def test_a_chain_in_segments(n, segments):
    calls = []
    x = cytape.constant(0.1)
    [gradient] = tape_gradients(
        lambda: cytape.checkpoint_sequential(chain(n, calls), segments, x), [x])
    y, expected = x, 1.0
    for _ in range(n):
        expected *= 2 - np.tanh(float(y)) ** 2
        y = cnp.tanh(y) + y
    assert float(gradient) == pytest.approx(expected)
    last = n - n * (segments - 1) // segments
    assert len(calls) == n + (n - last)  # all but the last segment again


def test_memory_grows_with_the_square_root_of_a_chain():
    def values_kept(run):
        x = cytape.constant(np.ones(3))
        most = 0

        def layer(x):
            nonlocal most
            most = max(most, saved())
            return cnp.tanh(x)

        with cytape.GradientTape(persistent=True) as tape:
            recorder = tape._recorder
            saved = lambda: recorder.num_ops  # noqa: E731
            tape.watch(x)
            y = run([layer] * 100, x)
        del y
        return most

    assert values_kept(lambda layers, x: cytape.checkpoint_sequential(layers, 1, x)) >= 99
    assert values_kept(lambda layers, x: cytape.checkpoint_sequential(layers, 10, x)) <= 20


def test_recursive_halves_keep_a_logarithm():
    calls, most = [], 0

    def layer(x):
        nonlocal most
        calls.append(None)
        most = max(most, live_tensors() - before)
        return cnp.tanh(x)

    def halves(n):
        if n == 1:
            return layer
        return lambda x: halves(n - n // 2)(cytape.recompute_grad(halves(n // 2))(x))

    x = cytape.constant(np.full(3, 0.1))
    before = live_tensors()
    [gradient] = tape_gradients(lambda: halves(64)(x), [x])
    [expected] = tape_gradients(lambda: cytape.checkpoint_sequential([cnp.tanh] * 64, 1, x), [x])
    np.testing.assert_array_equal(gradient, expected)
    assert len(calls) == 64 + 64 * 6 // 2  # half of the layers again, at each of six levels
    assert most <= 6 * 6


@each(("segments", "error", "text"), [
    (0, ValueError, "got 0"), (4, ValueError, "functions, 3"), (1.5, TypeError, "1.5"),
    (True, TypeError, "True")])
def test_wrong_numbers_of_segments(segments, error, text):
    with pytest.raises(error, match=text):
        cytape.checkpoint_sequential(chain(3), segments, 1.0)


def test_structures_go_through_a_chain():
    x = cytape.constant(2.0)
    layers = [lambda s: {"a": s["a"] * s["b"], "b": s["b"], "n": s["n"] + 1}] * 6

    def run():
        result = cytape.checkpoint_sequential(layers, 3, {"a": x, "b": x, "n": 0})
        assert result["n"] == 6
        return result["a"]

    [gradient] = tape_gradients(run, [x])
    assert float(gradient) == 7 * 2.0**6


@each("wrap", [cytape.recompute_grad, cytape.checkpoint])
def test_arguments_are_for_the_function_that_is_returned(wrap):
    name = wrap.__name__
    with pytest.raises(TypeError, match=rf"{name} takes a function and returns one, but got 1 more "
                                        rf"positional argument: call {name}\(sin\)\(...\)"):
        wrap(np.sin, cytape.constant(1.0))
    with pytest.raises(TypeError, match="got 2 more positional arguments"):
        wrap(np.add, 1.0, 2.0)
    with pytest.raises(TypeError, match=f"{name} takes a function, got Tensor"):
        wrap(cytape.constant(1.0))


def test_a_checkpoint_is_a_decorator_with_a_policy():
    @cytape.checkpoint(policy="everything")
    def f(x):
        return np.sin(x)

    assert f.__name__ == "f" and cytape.grad(f)(cytape.constant(1.0)) == np.cos(1.0)
    assert cytape.grad(cytape.checkpoint()(np.sin))(1.0) == np.cos(1.0)


@each("make", [cytape.recompute_grad, lambda f: cytape.checkpoint(f, policy="everything")])
def test_results_and_changed_arguments_share_no_memory_without_recorders(make):
    x = cytape.constant([1.0, 2.0])
    y = make(lambda x: x)(x)
    y[0] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]

    def changed(x):
        x += 1.0
        return x * 2.0

    assert make(changed)(x).numpy().tolist() == [4.0, 6.0]
    assert x.numpy().tolist() == [1.0, 2.0]


@each("recomputed", [
    cytape.recompute_grad,
    lambda f: lambda x: cytape.checkpoint_sequential([f, lambda y: y], 2, x)])
def test_outputs_that_no_gradient_reaches_are_left_out(recomputed):
    """The slope of the root at 0 is infinite, and zero times that is NaN."""
    f = recomputed(lambda x: (cnp.sqrt(x * 0.0), x * x))
    assert cytape.grad(lambda x: f(x)[1])(3.0) == 6.0
    assert cytape.grad(cytape.grad(lambda x: f(x)[1]))(3.0) == 2.0


def test_arguments_that_stand_still_have_no_tangents():
    power = cytape.recompute_grad(lambda n, x: n**x)
    x = cytape.constant([2.0, 3.0])
    n = cytape.constant([-1.0, -2.0])
    _, tangent = cytape.jvp(lambda n: power(n, x), (n,), (x,))
    np.testing.assert_allclose(tangent, [-4.0, 36.0])


def closing_over(weight):
    return lambda x: x * x * weight


def by_default(weight):
    return lambda x, weight=weight: x * x * weight


def partial(weight):
    return functools.partial(lambda weight, x: x * x * weight, weight)


def calling_another(weight):
    scaled = closing_over(weight)
    return lambda x: scaled(x)


@each(segments=[1, 2, 3], make=[closing_over, by_default, partial, calling_another])
def test_a_chain_is_computed_again_with_the_tensors_that_it_found(segments, make):
    weight, x = cytape.constant([2.0, 3.0]), np.array([0.5, 0.7])
    for place in range(3):
        weight[...] = [2.0, 3.0]
        chain = [np.sin, np.sin]
        chain.insert(place, make(weight))
        given = cytape.constant(x)
        with ways.watching(given) as tape:
            y = cytape.checkpoint_sequential(chain, segments, given)
        weight[...] = 100.0
        chain.clear()
        chain_then = [np.sin, np.sin]
        chain_then.insert(place, make(np.array([2.0, 3.0])))
        wanted = cytape.elementwise_grad(lambda x: functools.reduce(
            lambda x, f: f(x), chain_then, x))(x)  # noqa: B023
        np.testing.assert_allclose(tape.gradient(y, given), wanted, rtol=1e-13)


@each(segments=[1, 2, 3], kind=[np.array, cytape.constant])
def test_a_chain_is_computed_again_from_the_argument_that_it_was_given(segments, kind):
    w, x = cytape.constant([2.0, 3.0]), kind([0.5, 0.7])
    tape, y = ways.taped(
        lambda w: cytape.checkpoint_sequential([lambda x: x * w, np.sin, np.sin], segments, x), w)
    x[...] = 100.0
    wanted = cytape.elementwise_grad(lambda w: np.sin(np.sin(w * np.array([0.5, 0.7]))))(w)
    np.testing.assert_allclose(tape.gradient(y, w), wanted, rtol=1e-13)
