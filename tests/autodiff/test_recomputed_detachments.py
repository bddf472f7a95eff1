"""Values that leave their tensors in functions that are recomputed: errors, as without it."""

import math

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests import ways
from tests.cases import each

X = np.array([0.5, 0.7])


def in_place(x):
    a = np.ones(2)
    a *= np.sin(x)
    return np.sum(a)


def by_element(x):
    a = np.ones(2)
    a[0] = np.sum(np.sin(x))
    return np.sum(a)


# Ways in which Python or NumPy, not the user, converts a tensor, with and without a result that is
# a tensor all the same.
IMPLICIT = {
    "in place": in_place,
    "in place, connected": lambda x: in_place(x) + np.sum(x),
    "an element": by_element,
    "float": lambda x: float(np.sum(np.sin(x))),
    "float, connected": lambda x: float(np.sum(np.sin(x))) * np.sum(x),
    "asarray": lambda x: np.asarray(np.sin(x)).sum(),
    "math": lambda x: math.exp(np.sum(x)),
    "of an inner call": lambda x: in_place(cytape.recompute_grad(np.sin)(x)),
    "of a traced function": lambda x: in_place(cytape.function(np.sin)(x)),
    "of an element": lambda x: math.sin(x[0]) + x[1],
    "of a written element": lambda x: float(cnp.zeros(2).at[0].set(x[0])[0]),
    "of a custom function": lambda x: float(np.sum(cytape.custom_gradient(
        lambda x: (np.sin(x), lambda g: g * np.cos(x)))(x))),
}
WRAPPERS = {
    "recompute_grad": cytape.recompute_grad,
    "nested": lambda f: cytape.recompute_grad(cytape.recompute_grad(f)),
    "checkpoint_sequential": lambda f: lambda x: cytape.checkpoint_sequential(
        [f, lambda y: y * 1.0], 2, x),
    "checkpointed_scan": lambda f: lambda x: cytape.checkpointed_scan(
        lambda s: (s[0], f(s[0])), (x, 0.0), 3, 2)[1],
    "of a closure": lambda f: lambda x: cytape.recompute_grad(lambda: f(x))(),
    "of a closure, nested": lambda f: lambda x: cytape.recompute_grad(
        lambda: cytape.recompute_grad(lambda: f(x))())(),
}


def by_tape(f, x):
    x = cytape.constant(x)
    tape, y = ways.taped(f, x, persistent=True)
    return tape.gradient(y, x)


def by_variable(f, x):
    x = cytape.Variable(x)
    tape, y = ways.taped(lambda: f(x))
    return tape.gradient(y, x)


MODES = {
    "grad": lambda f, x: cytape.grad(f)(x),
    "tape": by_tape,
    "variable": by_variable,
    "jvp": lambda f, x: cytape.jvp(f, (x,), (x,)),
    "jacfwd": lambda f, x: cytape.jacfwd(f)(x),
    "second order": lambda f, x: cytape.hessian(f)(x),
}


@each(mode=MODES, take=IMPLICIT, wrapper=WRAPPERS)
def test_implicit_conversions_are_errors(wrapper, take, mode):
    f = WRAPPERS[wrapper](IMPLICIT[take])
    with pytest.raises(DetachedError):
        MODES[mode](lambda x: np.sum(f(x)) + np.sum(x), X)


@each("wrapper", WRAPPERS)
@each(mode=[lambda f, x: cytape.grad(f)(x), lambda f, x: cytape.jvp(f, (x,), (x,))], take=[
    lambda x: np.sum(np.sin(x)).numpy(), lambda x: cnp.ones(1) * np.sum(np.sin(x).numpy()),
    lambda x: x[0].item(), lambda x: sum(x.tolist()),
    lambda x: cytape.function(np.sum)(x).item()])
def test_values_that_are_taken_out_are_noted(take, mode, wrapper):
    f = WRAPPERS[wrapper](take)
    with pytest.raises(DetachedError, match="the derivative was lost there"):
        mode(lambda x: np.sum(f(x)), X)


@each("wrapper", WRAPPERS)
def test_conversions_of_unrecorded_tensors_are_allowed(wrapper):
    c = cytape.constant(2.0)
    f = WRAPPERS[wrapper](
        lambda x: np.sum(x * x) * float(c) * math.exp(c - c) * np.asarray(cnp.sin(c) ** 0))
    np.testing.assert_allclose(cytape.grad(lambda x: np.sum(f(x)))(X), 4.0 * X)
    np.testing.assert_allclose(cytape.jvp(lambda x: np.sum(f(x)), (X,), (X,))[1], 4.0 * X @ X)


@each("wrapper", WRAPPERS)
def test_values_that_are_only_looked_at_change_nothing(wrapper):
    seen = []

    def f(x):
        y = np.sum(x * x)
        seen.append(f"{y} {y.numpy()} {np.sum(x) > 0}")
        return y if np.sum(x) > 0 else x

    f = WRAPPERS[wrapper](f)
    np.testing.assert_allclose(cytape.grad(lambda x: np.sum(f(x)))(X), 2.0 * X)
    assert seen


def test_a_traced_function_that_is_recomputed_keeps_nothing_for_derivatives():
    traced = cytape.function(lambda x: np.sin(np.sin(x)))
    with cytape.GradientTape() as tape:
        x = cytape.constant(X)
        tape.watch(x)
        y = cytape.recompute_grad(lambda: traced(x))()
    assert traced.get_concrete_function(x).n_plans == 1  # of the call alone
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(np.sin(X)) * np.cos(X))
