"""Branches and loops that draw random numbers, look at variables, or change them."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp


def values(tensors):
    return [float(x) for x in tensors]


def test_variables_of_outside_get_gradients():
    w = cytape.Variable(3.0)

    @cytape.function
    def f(x):
        y = cytape.while_loop(lambda v: v < 100, lambda v: v * w, x)
        return cytape.cond(y > 0, lambda: y * w, lambda: y)

    x = cytape.constant(2.0)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert values([y, *tape.gradient(y, [x, w])]) == [486.0, 243.0, 810.0]
    w.assign(10.0)
    assert float(f(x)) == 2000.0


@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_that_changes_a_variable_it_looks_at(traced):
    w = cytape.Variable(1.0)

    def f(n):
        def body(i, total):
            total = total + w
            w.assign_add(2.0)
            return i + 1, total

        _, total = cytape.while_loop(
            lambda i, total: cnp.logical_and(i < n, w < 8.0), body, (0, 0.0))
        return total, w + 0.0

    f = cytape.function(f) if traced else f
    assert values(f(cytape.constant(3))) == [9.0, 7.0]
    assert float(w) == 7.0
    assert values(f(cytape.constant(3))) == [7.0, 9.0]  # the condition looks at the variable, too


def test_a_branch_that_changes_a_variable():
    w = cytape.Variable(1.0)

    @cytape.function
    def f(x):
        y = cytape.cond(x > 0, lambda: w.assign_add(x) * w, lambda: w * 1.0)
        return y, w * 1.0

    assert values(f(cytape.constant(2.0))) == [9.0, 3.0]
    assert values(f(cytape.constant(-2.0))) == [3.0, 3.0]


def test_the_gradient_does_not_repeat_what_a_loop_does_besides():
    w = cytape.Variable(2.0)

    @cytape.function
    def f(x):
        def body(v):
            v = v * w
            w.assign_add(1.0)
            return v

        return cytape.while_loop(lambda v: v < 20, body, x)

    x = cytape.constant(1.0)
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = f(x)  # 2 * 3 * 4
    gradients = tape.gradient(y, [x, w])
    assert values([y, *gradients]) == [24.0, 24.0, 3 * 4 + 2 * 4 + 2 * 3.0]
    assert float(w) == 5.0


@pytest.mark.parametrize("inside", ["loop", "cond", "cond in loop"])
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
        with cytape.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.gradient(y, x), y.numpy() / x.numpy(), rtol=1e-12)
        y, tangent = cytape.jvp(f, (x,), (x,))
        np.testing.assert_allclose(tangent, y, rtol=1e-12)
