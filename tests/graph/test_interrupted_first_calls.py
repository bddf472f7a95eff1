"""Interrupts at every point of a first call: nothing stays entered, set or alive."""

import collections
import functools
import gc
import sys

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.python.draws import watchers
from cytape.tensor.recording.state import anybody_records, current_graph
from cytape.tensor.tensor import live_tensors
from tests.tables import table
from tests.ways import run_in_graph

X = np.array([0.7, 1.3, 0.4])
v = cytape.Variable(2.0)
SCALAR = cytape.Spec.of((), float)

pytestmark = pytest.mark.signals


class Interrupt:
    """A profile function that raises KeyboardInterrupt at the n-th point where a signal may.

    Python runs the handlers of signals where a function begins and where a call of C returns.
    """

    def __init__(self, n):
        self.n = self.left = n

    def __call__(self, frame, event, arg):
        if event in ("call", "c_return"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def by_custom_jvp(x):
    cube = cytape.custom_jvp(lambda q: q**3)
    cube.defjvp(lambda p, t: (None, 3 * p[0] * p[0] * t[0]))
    return cnp.sum(cube(x))


def of_an_array(x):
    array = cytape.TensorArray("float64", 3)
    for i in range(3):
        array = array.write(i, x * (i + 1.0))
    return cnp.sum(array.stack() * v)


PROGRAMS = {
    "ops": lambda x: cnp.sum(cnp.sin(x) * x * v),
    "cond": lambda x: cytape.cond(x[0] > 0, lambda: cnp.sum(x**3) * v, lambda: cnp.sum(x)),
    "while_loop": lambda x: cnp.sum(cytape.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, cnp.sin(y) * x), (0, x))[1]),
    "scan": lambda x: cnp.sum(cytape.scan(lambda s, e: s * e + v, x, cnp.sum(x))),
    "vmap": lambda x: cnp.sum(cytape.vmap(lambda e: cnp.sin(e) * e * v)(x)),
    "recompute_grad": lambda x: cnp.sum(cytape.recompute_grad(
        lambda q: cnp.sin(q) * v * cnp.random.normal())(x)),
    "checkpoint": lambda x: cnp.sum(cytape.checkpoint(
        lambda q: cnp.sin(q) * v, policy="dots")(x)),
    "checkpoint_sequential": lambda x: cnp.sum(cytape.checkpoint_sequential(
        [cnp.sin, lambda q: q * v], 2, x)),
    "checkpointed_scan": lambda x: cnp.sum(cytape.checkpointed_scan(
        lambda s: s * cnp.sin(s) * v, x, 4, 2)),
    "custom_gradient": lambda x: cnp.sum(cytape.custom_gradient(
        lambda q: (q**3, lambda g: 3 * g * q * q))(x)),
    "custom_jvp": by_custom_jvp,
    "numpy_function": lambda x: cytape.numpy_function(
        lambda q: np.sum(q**2), x, specs=SCALAR, grad_func=lambda q, dy: 2 * q * dy),
    "TensorArray": of_an_array,
}


def by_session(f):
    return run_in_graph(lambda x: cytape.gradients(f(x), x), X)


WAYS = {
    "grad": lambda f: cytape.grad(f)(X),
    "grad of function": lambda f: cytape.grad(cytape.function(f))(X),
    "function of grad": lambda f: cytape.function(cytape.grad(f))(X),
    "hessian": lambda f: cytape.hessian(f)(X),
    "jvp": lambda f: cytape.jvp(f, (X,), (X,)),
    "jvp of function": lambda f: cytape.jvp(cytape.function(f), (X,), (X,)),
    "function of hessian": lambda f: cytape.function(cytape.hessian(f))(X),
    "with checkpoints": lambda f: cytape.grad(cytape.function(f, checkpoints="auto"))(X),
    "session": by_session,
}
# Calls that enter most blocks: `make test` interrupts them everywhere, and others here and there.
EVERYWHERE = [("grad", "recompute_grad"), ("grad", "checkpointed_scan"),
              ("function of grad", "cond")]


@pytest.fixture(autouse=True)
def no_collector(monkeypatch):
    """Leave out what Python does besides: it loses interrupts in callbacks of the collector."""
    gc.collect()
    gc.disable()
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: None)
    yield
    gc.enable()


def alive():
    """Count the objects of cytape, by their types."""
    gc.collect()
    return collections.Counter({cytape.Tensor: live_tensors()}) + collections.Counter(
        type(x) for x in gc.get_objects() if str(type(x).__module__).startswith("cytape"))


def assert_nothing_is_entered():
    assert current_graph() is None
    assert not anybody_records()
    assert watchers.notes == ()
    assert float(v) == 2.0


def interrupt(call, step, see):
    """Interrupt a call at each step-th point; call `see` while the error has all frames."""
    n, came = 1, True
    while came:
        came, profile = False, Interrupt(n)
        sys.setprofile(profile)
        try:
            call()
        except KeyboardInterrupt:
            sys.setprofile(None)
            came = True
            see()
        finally:
            sys.setprofile(None)
        came = came or profile.left <= 0  # lost in what Python cannot raise errors of
        n += step


def check(way, names, step):
    """Interrupt calls of programs; count living objects once for all, as this takes longest."""
    def call(name):
        np.random.seed(0)
        f = PROGRAMS[name]
        return WAYS[way](lambda x: f(x))  # another function each time

    expected = {name: [call(name), call(name)][1] for name in names}  # the first fills caches
    before = alive()
    for name in names:
        interrupt(functools.partial(call, name), step, assert_nothing_is_entered)
        np.testing.assert_array_equal(np.asarray(call(name)), np.asarray(expected[name]))
    assert not alive() - before  # objects of other tests may have died meanwhile


@pytest.mark.parametrize(("way", "name"), EVERYWHERE)
def test_a_first_call_leaves_nothing_wherever_it_is_interrupted(way, name):
    check(way, [name], 1)


@pytest.mark.parametrize("step", table([191], [13]))
@pytest.mark.parametrize("way", WAYS)
def test_a_first_call_leaves_nothing_where_it_is_interrupted(way, step):
    check(way, PROGRAMS, 4 * step if way == "with checkpoints" else step)  # has most points


CALLS_TO_MAKE_AGAIN = {
    "recompute_grad": lambda step, x: cytape.recompute_grad(step)(x),
    "checkpoint": lambda step, x: cytape.checkpoint(step)(x),
    "checkpoint_sequential": lambda step, x: cytape.checkpoint_sequential([step, step], 2, x),
    "checkpointed_scan": lambda step, x: cytape.checkpointed_scan(step, x, 4, 2),
}


@pytest.mark.parametrize("name", CALLS_TO_MAKE_AGAIN)
def test_variables_and_random_streams_are_those_of_the_program_after_an_interrupt(name):
    rng, w = np.random.default_rng(0), cytape.Variable(1.0)
    start, reached = rng.bit_generator.state, []

    def step(x):
        return cnp.sin(x) * w * rng.normal()

    def f(x):
        y = cnp.sum(CALLS_TO_MAKE_AGAIN[name](step, x))
        w.assign(5.0)
        rng.normal()
        reached.append(rng.bit_generator.state)
        return y

    def call():
        w.assign(1.0)
        rng.bit_generator.state = start
        del reached[:]
        return cytape.grad(f)(X)

    def as_after_the_call():
        if reached:
            assert float(w) == 5.0
            assert rng.bit_generator.state == reached[0]

    expected = call()
    interrupt(call, 1, as_after_the_call)
    np.testing.assert_array_equal(call(), expected)
