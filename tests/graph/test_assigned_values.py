"""Variables that are assigned differentiated values: errors where that loses a derivative."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests.cases import each, sampled

ONE = np.ones(())


def branch(f):
    return lambda x: cytape.cond(x > 0, lambda: f(x), lambda: cytape.constant(1.0))


def loop(f):
    return lambda x: cytape.while_loop(
        lambda i, _: i < 1, lambda i, y: (i + 1, f(x)), (cytape.constant(0), ONE))[1]


def carried(f):
    """Assign in the second iteration what depends on the argument by the first."""
    return lambda x: cytape.while_loop(
        lambda i, *_: i < 2, lambda i, last, y: (i + 1, x * 1.0, f(last)),
        (cytape.constant(0), ONE, ONE))[2]


def scan(f):
    return lambda x: cytape.scan(lambda y, _: f(x) + 0.0 * y, np.ones(2), ONE)[0]


BODIES = {
    "plain": lambda f: f,
    "branch": branch,
    "loop": loop,
    "carried": carried,
    "scan": scan,
    "scan of branches": lambda f: scan(branch(f)),
    "recompute_grad": cytape.recompute_grad,
    "checkpoint": lambda f: cytape.checkpoint(f, policy="dots"),
    "checkpointed function": lambda f: cytape.function(f, checkpoints="auto"),
    "closure": lambda f: lambda x: cytape.recompute_grad(lambda: f(x))(),
    "function": cytape.function,
}
AROUND = {
    "eager": lambda f: f,
    "function": cytape.function,
    "nested": lambda f: cytape.function(cytape.function(f)),
    "method": lambda f: cytape.function(lambda x: cytape.function(f)(x * 1.0)),
}
MODES = {
    "grad": lambda f: cytape.grad(f)(2.0),
    "jvp": lambda f: cytape.jvp(f, (2.0,), (1.0,))[1],
    "jacrev": lambda f: cytape.jacrev(f)(2.0),
    "jet": lambda f: cytape.jet(f, (2.0,), ((1.0,),))[1],
    "traced grad": lambda f: cytape.function(cytape.grad(f))(2.0),
    "gradients_function": lambda f: cytape.gradients_function(f)(2.0),
}
METHODS = "assign", "assign_add", "assign_sub"


def storing(method, value):
    """Return a function of one argument that stores a value in a variable and returns that."""
    v = cytape.Variable(3.0, trainable=False)

    def f(x):
        getattr(v, method)(value(x))
        return v * 2.0
    return f


@sampled(6, method=METHODS, body=BODIES, around=AROUND, mode=MODES)
def test_a_derivative_that_an_assignment_loses_is_an_error(mode, around, body, method):
    f = AROUND[around](BODIES[body](storing(method, lambda x: x * x)))
    for _ in range(2):  # the second call finds the traces of the first
        with pytest.raises(DetachedError, match="left its tensor by an assignment to a variable"):
            MODES[mode](f)


@sampled(6, body=BODIES, around=AROUND, mode=MODES, value=[
    lambda x: 1.0, lambda x: cytape.stop_gradient(x * x), lambda x: cnp.floor(x)])
def test_assignments_of_what_does_not_depend_on_the_argument_lose_nothing(
    value, mode, around, body
):
    f = AROUND[around](BODIES[body](storing("assign", value)))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        found = MODES[mode](f)
    assert found in (0.0, [None], [0.0])


@sampled(4, body=BODIES, around=AROUND, mode=["grad", "jvp", "jacrev", "traced grad"])
def test_a_running_mean_is_no_error(mode, around, body):
    mean = cytape.Variable(0.0, trainable=False)

    def f(x):
        mean.assign(0.9 * mean + 0.1 * x)
        return x * x
    f = AROUND[around](BODIES[body](f))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(MODES[mode](f)) == 4.0


@each("around", AROUND)
def test_an_assignment_out_of_the_sight_of_recorders_is_no_error(around):
    v = cytape.Variable(3.0, trainable=False)

    def f(x):
        with cytape.stop_recording():
            v.assign(x * x)
        return v * 2.0
    with pytest.warns(cytape.errors.UnconnectedGradientWarning):
        assert cytape.grad(AROUND[around](f))(2.0) == 0.0


@each("around", AROUND)
def test_other_arguments_are_not_taken_for_those_that_left(around):
    store = storing("assign", lambda x: x * x)
    f = AROUND[around](lambda x: store(x) * x)

    def both(x, y):
        return f(x) + 0.0 * cnp.floor(y)
    with pytest.warns(cytape.errors.UnconnectedGradientWarning, match="argument 1"):
        gx, gy = cytape.grad(both, (0, 1))(2.0, 3.0)
    assert (gx, gy) == (8.0, 0.0)
