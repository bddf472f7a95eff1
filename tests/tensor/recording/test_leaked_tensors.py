"""Tensors that outlive the differentiated call that recorded them."""

import gc
import threading
import warnings
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import LeakedTensorWarning
from tests.cases import each

X = np.array([0.5, 1.0])


def squares(x):
    return (x * x).sum()


class Simulation:
    """Keeps its last result, as expensive models do that an objective and a constraint share."""

    def __init__(self):
        self.last = None

    def run(self, x):
        if self.last is None or not np.array_equal(x, self.last):
            self.last = np.copy(x)
            self.result = np.exp(-x) * np.sin(x)
        return self.result


TRANSFORMS = {
    "grad": cytape.grad,
    "value_and_grad": cytape.value_and_grad,
    "jacobian": cytape.jacobian,
    "hessian": cytape.hessian,
    "vjp": lambda f: lambda x: cytape.vjp(f, x)[1](1.0),
    "product": lambda f: lambda x: cytape.hessian_vector_product(f)(x, np.ones(2)),
    "jvp": lambda f: lambda x: cytape.jvp(f, (x,), (np.ones(2),)),
    "jacfwd": cytape.jacfwd,
    "traced": lambda f: cytape.function(cytape.grad(f)),
    "of a trace": lambda f: cytape.grad(cytape.function(f)),
    "mapped": lambda f: lambda x: cytape.vmap(cytape.grad(f))(np.stack([x, x])),
    "autograd": lambda f: cytape.autograd.grad(f),
    "checkpointed": lambda f: cytape.grad(cytape.checkpoint(f)),
    "checkpointed in forward mode":
        lambda f: lambda x: cytape.jvp(cytape.checkpoint(f), (x,), (np.ones(2),)),
    "checkpointed by a policy": lambda f: cytape.grad(cytape.checkpoint(f, policy="dots")),
    "elementwise": lambda f: lambda x: cytape.elementwise_grad(lambda x: x * f(x))(x),
}


@each("name", TRANSFORMS)
def test_a_kept_result_warns(name):
    simulation = Simulation()
    cytape.grad(lambda x: squares(simulation.run(x)))(X)
    kept = simulation.result
    with pytest.warns(LeakedTensorWarning, match=f"<lambda> uses .*{__file__}, line "):
        TRANSFORMS[name](lambda x: cnp.sum(kept * x))(X)


class Objective:
    """Keeps its result, which a constraint uses."""

    last = None

    def __call__(self, x):
        if self.last is None or not np.array_equal(x, self.last[0]):
            self.last = x, squares(x)
        return self.last[1]


KEEPERS = {name: TRANSFORMS[name] for name in (
    "grad", "value_and_grad", "jacobian", "hessian", "vjp", "jvp", "jacfwd", "autograd")} | {
    "grad of a tensor": lambda f: lambda x: cytape.grad(f)(cytape.constant(x)),
    "jacfwd of a tensor": lambda f: lambda x: cytape.jacfwd(f)(cytape.constant(x)),
    "auxiliary": lambda f: lambda x: cytape.grad(lambda x: (squares(x), f(x)), has_aux=True)(x),
    "of several": lambda f: lambda x: cytape.jacobian(lambda x: {"a": f(x), "b": f(x)})(x),
}


@each("name", KEEPERS)
def test_the_result_of_a_call_that_the_function_kept_warns(name):
    objective = Objective()
    KEEPERS[name](objective)(X)
    with pytest.warns(LeakedTensorWarning):
        cytape.grad(lambda x: objective(x) + x.sum())(X)


def test_results_that_the_caller_got_as_tensors_are_silent():
    x, v = cytape.constant(X), cytape.constant(np.ones(2))
    value, _ = cytape.value_and_grad(squares)(x)
    pushed, _ = cytape.jvp(squares, (x,), (v,))
    with cytape.GradientTape() as tape:
        tape.watch(x)
        outer, _ = cytape.value_and_grad(lambda y: squares(y * x))(X)
    for known in (value, pushed, outer):
        cytape.grad(lambda y, known=known: squares(y) * known)(X)
    assert tape.gradient(outer, x) is not None


@each("differentiate", [
    cytape.grad, cytape.jacfwd, lambda f: lambda x: cytape.jvp(f, (x,), (np.ones(2),))])
def test_a_tensor_kept_by_forward_mode_warns(differentiate):
    kept = []

    def f(x):
        kept.append(x * x)
        return cnp.sum(kept[0] * x)

    cytape.jvp(f, (X,), (np.ones(2),))
    with pytest.warns(LeakedTensorWarning, match="f uses"):
        differentiate(f)(X)
    with pytest.warns(LeakedTensorWarning, match="f uses"):
        cytape.function(differentiate(f))(X)


def test_forward_mode_is_silent_about_what_it_does_not_use():
    kept = []

    def f(x):
        for old in kept:
            assert np.abs(x - old).max() == 0 and float(old[0]) == 0.5
        kept.append(x)
        return cnp.exp(x * 2.0)

    for _ in range(2):
        y, tangent = cytape.jvp(f, (cytape.constant(X),), (np.ones(2),))
        slopes = cytape.jacfwd(lambda x, y=y, t=tangent: f(x) * y + t)(X)
        np.testing.assert_allclose(slopes.diagonal(), 2 * np.exp(4 * X))


def test_the_shared_model_of_objective_and_constraint_warns():
    simulation = Simulation()

    def constraint(x):
        return np.sum(simulation.run(x)) - 0.3 * x[0]

    cytape.grad(lambda x: squares(simulation.run(x)))(X)
    with pytest.warns(LeakedTensorWarning, match=r"constraint uses .*isinstance\(x, cytape"):
        wrong = cytape.grad(constraint)(X)
    np.testing.assert_allclose(wrong, [-0.3, 0.0])


def test_a_kept_argument_warns_and_once_for_each_line():
    kept = []

    def f(x):
        kept.append(x)
        return squares(x * kept[0])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            cytape.grad(f)(X)
    assert [x.category for x in caught] == [LeakedTensorWarning]
    assert caught[0].filename == __file__


def test_a_tensor_kept_by_a_call_that_raised_warns():
    kept = []

    def f(x):
        kept.append(x * x)
        return np.nonsense

    with pytest.raises(AttributeError):
        cytape.grad(f)(X)
    with pytest.warns(LeakedTensorWarning):
        cytape.grad(lambda x: squares(x * kept[0]))(X)


def test_a_trace_that_captured_one_warns():
    traces = []

    def f(x):
        y = cnp.exp(x)
        if not traces:
            traces.append(cytape.function(lambda z: y * z))
        return squares(traces[0](x))

    cytape.grad(f)(X)
    with pytest.warns(LeakedTensorWarning):
        cytape.grad(f)(X)


def test_between_calls_inside_of_a_call():
    def outer(theta):
        kept = []

        def inner(x):
            kept.append(squares(x))
            return kept[0] * squares(x)

        return squares(cytape.grad(inner)(theta)) + squares(cytape.grad(inner)(theta))

    with pytest.warns(LeakedTensorWarning, match="inner uses"):
        cytape.grad(outer)(X)


def test_comparisons_with_a_kept_tensor_are_silent():
    kept = []

    def f(x):
        for old in kept:
            assert np.abs(x - old).max() < 1e-12 and np.linalg.norm(old - x) == 0
            assert float(np.abs(old).max()) == 1.0  # no derivative is lost
            assert not np.any(x[0] != old[0]) and np.floor(old[0]) == 0
        kept.append(x)
        return squares(x)

    for _ in range(3):
        np.testing.assert_allclose(cytape.grad(f)(X), 2 * X)


def test_a_number_from_a_tensor_that_depends_on_both_is_still_an_error():
    kept = []

    def f(x):
        for old in kept:
            float((x * old).sum())
        kept.append(x)
        return squares(x)

    cytape.grad(f)(X)
    with pytest.raises(cytape.errors.DetachedError, match="its gradient would be lost"):
        cytape.grad(f)(X)


@each("keep", [
    cytape.stop_gradient, cytape.Tensor.numpy, cytape.Tensor.item,
    lambda y: cytape.Variable(cytape.stop_gradient(y)),
])
def test_explicit_constants_are_silent(keep):
    state = []

    def f(x):
        y = squares(x)
        found = y * state[-1] if state else y
        state.append(keep(y))
        return found

    cytape.grad(f)(X)
    np.testing.assert_allclose(cytape.grad(f)(X), 2 * X * 1.25)


def test_results_and_outer_tensors_are_silent():
    x = cytape.constant(X)
    value, gradient = cytape.value_and_grad(squares)(x)
    (_, aux), _ = cytape.value_and_grad(lambda x: (squares(x), {"y": [x * x]}), has_aux=True)(x)
    y, pull = cytape.vjp(cnp.exp, x)
    jacobian = cytape.jacobian(cnp.exp)(x)

    def f(x):
        def inner(z):
            return squares(z * y * x) + squares(jacobian @ z) * value

        outer = cnp.tanh(x) * pull(x)[0]
        return squares(cytape.grad(inner)(outer)) + cnp.sum(aux["y"][0] * gradient * x)

    cytape.testing.check_grads(f, [X], order=1, modes=["reverse"])


def test_state_that_tapes_carry_is_silent():
    x = state = cytape.constant(X)
    for _ in range(3):
        with cytape.GradientTape() as tape:
            tape.watch(x)
            state = cnp.tanh(state * x)
            loss = squares(state)
        assert tape.gradient(loss, x) is not None
    assert cytape.grad(lambda z: squares(z * state))(X) is not None


def test_a_value_that_only_an_inner_call_computed_is_a_constant():
    def outer(theta):
        kept = []
        cytape.grad(lambda x: (kept.append(squares(x)), squares(x))[1])(X)
        return squares(theta * kept[0])

    cytape.testing.check_grads(outer, [X], order=1, modes=["reverse"])


@each("fill", [
    lambda space, x: space.__setitem__(..., x * x),
    lambda space, x: [space.__setitem__(i, x[i] * x[i]) for i in range(2)],
    lambda space, x: space[:].__setitem__(slice(None), x * x),
])
def test_a_workspace_that_each_call_fills_is_silent(fill):
    space = cytape.constant(np.zeros(2))

    def f(x):
        fill(space, x)
        return squares(space)

    for _ in range(3):
        np.testing.assert_allclose(cytape.grad(f)(X), 4 * X**3)


def test_a_sum_over_calls_is_state_until_a_result_depends_on_it():
    state = {"total": cytape.constant(0.0)}

    def f(x):
        state["total"] += squares(x)
        return squares(x)

    for _ in range(3):
        np.testing.assert_allclose(cytape.grad(f)(X), 2 * X)
    with pytest.warns(LeakedTensorWarning):
        cytape.grad(lambda x: (f(x), state["total"])[1])(X)


def test_a_dataclass_of_results_is_silent():
    @dataclass
    class Parts:
        square: object

    (_, parts), _ = cytape.value_and_grad(
        lambda x: (squares(x), Parts(x * x)), has_aux=True)(cytape.constant(X))
    np.testing.assert_allclose(cytape.grad(lambda z: cnp.sum(z * parts.square))(X), X**2)


def test_rules_may_use_tensors_of_their_call():
    def f(x):
        scale = cytape.stop_gradient(x) * 1.0 + 0.0 * x

        @cytape.custom_gradient
        def product(y):
            return y * scale.numpy(), lambda g: g * cytape.grad(lambda z: cnp.sum(z * scale))(X)

        return cnp.sum(product(x * x))

    np.testing.assert_allclose(cytape.grad(f)(X), 2 * X * X)


def test_a_checkpointed_call_may_use_tensors_of_its_call():
    def f(x):
        kept.append(x * x)
        return squares(cytape.checkpoint(lambda z: z * kept[-1])(x))

    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert cytape.grad(f)(X).tolist() == (6 * X**5).tolist()


def test_a_gradient_in_another_thread_hides_no_leak():
    simulation, started, done = Simulation(), threading.Event(), threading.Event()

    @cytape.custom_gradient
    def waiting(x):
        return x * 1.0, lambda g: (started.set(), done.wait(10), g)[2]

    cytape.grad(lambda x: squares(simulation.run(x)))(X)
    thread = threading.Thread(target=lambda: cytape.grad(lambda x: squares(waiting(x)))(X))
    thread.start()
    started.wait(10)
    try:
        with pytest.warns(LeakedTensorWarning):
            cytape.grad(lambda x: cnp.sum(simulation.result * x))(X)
    finally:
        done.set()
        thread.join()


def test_nothing_is_kept_alive():
    kept = []
    cytape.grad(lambda x: (kept.append(cnp.exp(x)), squares(x))[1])(X)
    value = weakref.ref(kept[0])
    with pytest.warns(LeakedTensorWarning):
        cytape.grad(lambda x: squares(x * kept[0]))(X)
    kept.clear()
    gc.collect()
    assert value() is None
