"""Calls that are made only to try a function do not move the user's random streams."""

import functools
import random
import threading
import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.python import repeated_draws
from cytape.ops.python.repeated_draws import imported_in, saved_draws
from tests.cases import each

rng = np.random.default_rng(0)
legacy = np.random.RandomState(0)
own = random.Random(0)
X = cytape.constant(2.0)

DRAWS = {
    "np.random": np.random.rand, "a pair of np.random": np.random.randn, "random": random.random,
    "a Random": lambda: own.gauss(0.0, 1.0), "a Generator": lambda: rng.normal(),
    "integers": lambda: rng.integers(9, dtype=np.int32), "a RandomState": lambda: legacy.randn()}


def seed():
    np.random.seed(3)
    random.seed(3)
    own.seed(3)
    legacy.seed(3)
    rng.bit_generator.state = np.random.PCG64(3).state


def with_jvp(draw):
    f = cytape.custom_jvp(lambda x: np.asarray(x.numpy() + draw()))
    f.defjvp(lambda p, t: (None, t[0]))
    return f


def with_jvp_that_draws_first(draw):
    def noisy(x):
        noise = draw()
        return np.asarray(x.numpy() + noise)

    f = cytape.custom_jvp(noisy)
    f.defjvp(lambda p, t: (None, t[0]))
    return f


def with_gradient(draw):
    return cytape.custom_gradient(
        lambda x: (cytape.stop_gradient(x).numpy() + draw(), lambda dy: dy))


def with_gradient_that_draws(draw):
    """Whose gradient function draws, and is called when the graph runs."""
    return cytape.custom_gradient(lambda x: (x + 0.0, lambda dy: (draw(), dy.numpy())[1]))


@each("draw", DRAWS.values(), ids=DRAWS)
@each("made", [with_jvp, with_jvp_that_draws_first, with_gradient])
def test_a_trace_draws_in_its_calls_only(made, draw):
    noisy = made(draw)
    seed()
    expected = [2.0 + draw() for _ in range(3)]
    seed()
    traced = cytape.function(lambda x: noisy(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(traced(X)) for _ in range(3)] == expected
        seed()
        of_any_shape = cytape.function(
            lambda x: noisy(cnp.sum(x)), input_signature=[cytape.Spec.of((None,), float)])
        assert [float(of_any_shape(np.ones(2))) for _ in range(3)] == expected


@each("draw", DRAWS.values(), ids=DRAWS)
def test_a_gradient_function_that_is_called_when_the_graph_runs(draw):
    noisy = with_gradient_that_draws(draw)
    seed()
    expected = draw()
    seed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = cytape.function(lambda x: noisy(x))
        traced(X)
    assert draw() == expected


def test_a_generator_among_the_arguments():
    for made in (
        cytape.custom_gradient(
            lambda x, rng: (cytape.stop_gradient(x).numpy() + rng.normal(), lambda dy: (dy, None))),
        with_jvp_and_generator,
    ):
        seed()
        expected = 2.0 + rng.normal()
        seed()
        assert float(cytape.function(lambda x, f=made: f(x, rng))(X)) == expected


@cytape.custom_jvp
def with_jvp_and_generator(x, rng):
    return np.asarray(x.numpy() + rng.normal())


@with_jvp_and_generator.defjvp
def its_rule(primals, tangents):
    return None, tangents[0]


def test_draws_kept_by_a_trace_are_still_warned_of():
    frozen = cytape.custom_jvp(lambda x: x + rng.normal())
    frozen.defjvp(lambda p, t: (None, t[0]))
    with pytest.warns(UserWarning, match="drew random numbers from a Generator"):
        cytape.function(lambda x: frozen(x))(X)


def test_streams_continue_after_a_call_that_failed():
    def failing(x):
        rng.normal()
        raise ValueError(x.numpy())

    f = cytape.custom_jvp(failing)
    f.defjvp(lambda p, t: (None, t[0]))
    seed()
    expected = rng.normal()
    seed()
    with pytest.raises(cytape.errors.SymbolicTensorError):
        cytape.function(lambda x: f(x))(X)
    assert rng.normal() == expected


def imports_random(x):
    import random

    return random.gauss(x, 1.0)


def imports_numpy(x):
    import numpy

    return numpy.random.normal(x)


def imports_from_numpy(x):
    from numpy.random import normal

    return normal(x)


class Layer:
    def call(self, x):
        return self.noise(x)

    def noise(self, x):
        return x + np.random.normal()


@each("draw", [
    imports_random, imports_numpy, imports_from_numpy, Layer().call, lambda x: random.random(),
    lambda x: np.random.rand(), functools.partial(np.random.uniform, 0.0)])
def test_global_streams_by_whatever_name(draw):
    seed()
    restore = saved_draws(draw, ())
    first = draw(1.0)
    restore()
    assert draw(1.0) == first


def test_streams_that_other_threads_draw_from_are_left_alone():
    drawn = []

    def called(x):
        thread = threading.Thread(target=lambda: drawn.append((np.random.rand(), random.random())))
        thread.start()
        thread.join()
        return x

    for quiet in (cnp.exp, lambda x: np.exp(x), lambda x: x * random_number):
        seed()
        restore = saved_draws(quiet, (X,))
        called(1.0)
        restore()
        called(1.0)
        (first, other), (second, another) = drawn[-2:]
        assert first != second and other != another


random_number = 4.0


def test_streams_that_a_call_did_not_move_are_not_touched():
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_draws, "restorer", lambda x: lambda: calls.append(x))
        restore = saved_draws(DRAWS["np.random"], (rng,))
        restore()
        assert calls == []
        np.random.rand(), random.random()
        restore()
    assert calls == [np.random.mtrand._rand]


def importing():
    import math  # noqa: PLC0415

    def inner():
        from os import path  # noqa: PLC0415

        return path

    return math, inner


def test_imports_are_found_in_inner_functions_too():
    assert list(imported_in(importing.__code__)) == ["math", "os"]
