"""Branches and loops that draw random numbers, or whose gradient is None."""

import warnings

import numpy as np

import cytape
import cytape.numpy as cnp
from tests.cases import each
from tests.ways import run_in_graph, taped


@each("inside", ["loop", "cond", "cond in loop"])
def test_the_gradient_knows_what_numbers_were_drawn(inside):
    def noisy(v):
        return v * cnp.random.uniform(1.0, 2.0, 3)

    def in_cond(v):
        return cytape.cond(cnp.sum(v) > 0, lambda: noisy(v), lambda: v)

    step = in_cond if inside == "cond in loop" else noisy

    @cytape.function
    def f(v):
        if inside == "cond":
            return in_cond(v)
        return cytape.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, step(v)), (0, v))[1]

    x = cytape.constant([1.0, 2.0, 3.0])
    for _ in range(3):
        tape, y = taped(f, x)
        np.testing.assert_allclose(tape.gradient(y, x), y.numpy() / x.numpy(), rtol=1e-12)
        y, tangent = cytape.jvp(f, (x,), (x,))
        np.testing.assert_allclose(tangent, y, rtol=1e-12)


def in_a_loop(x, rng, **options):
    def body(i, y):
        return i + 1, cnp.hypot(y[::-1], y * rng.normal(size=2))

    return cnp.sum(cytape.while_loop(lambda i, y: i < 5, body, (0, x), **options)[1])


def in_a_branch(x, rng, **_):
    return cnp.sum(cytape.cond(x[0] > 0, lambda: cnp.hypot(x[::-1], x * rng.normal(size=2)),
                               lambda: x))


def in_a_graph(f, x):
    def both(x):
        y = f(x)
        return [y, *cytape.gradients(y, [x])]

    return run_in_graph(both, x)


HOW = {
    "eager": lambda f, x: cytape.value_and_grad(f)(x),
    "function": lambda f, x: cytape.function(cytape.value_and_grad(f))(x),
    "outside": lambda f, x: cytape.value_and_grad(cytape.function(f))(x),
    "graph": in_a_graph,
}


@each("how", HOW)
@each(("program", "options"), [
    (in_a_loop, {}), (in_a_loop, {"checkpoints": 1}), (in_a_loop, {"memory_budget": 200}),
    (in_a_branch, {})])
def test_draws_of_numpy_generators_are_the_same_in_the_gradient(program, options, how):
    """Numbers drawn while a body is traced stay constants of it, with a warning."""
    rng, x = np.random.default_rng(3), np.array([0.5, 0.7])
    traced = how != "eager" or bool(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, gradient = HOW[how](lambda x: program(x, rng, **options), x)
    # A function that grows as its argument does is the product of this and its gradient.
    np.testing.assert_allclose(gradient @ x, value, rtol=1e-12)
    assert any("drew random numbers from a Generator" in str(w.message) for w in caught) == traced


@each("how", HOW)
def test_a_custom_gradient_of_none_is_zero_in_bodies_as_elsewhere(how):
    @cytape.custom_gradient
    def cut(x):
        return cnp.sin(x), lambda g: None

    def f(x):
        y = cytape.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, cut(y) + 2.0 * y), (0, x))[1]
        return cnp.sum(cytape.cond(x[0] > 0, lambda: cut(y) + y, lambda: y))

    _, gradient = HOW[how](f, np.array([0.5, 0.7]))
    np.testing.assert_allclose(gradient, [8.0, 8.0])
