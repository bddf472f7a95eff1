"""Bodies as code within other code: compiled once for each combination of specs."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.tensor.values.spec import symbolic_spec
from tests.cases import each


def deep(x, depth):
    if not depth:
        return x * 1.5
    return cytape.cond(x < 100.0, lambda: deep(x, depth - 1), lambda: x)


@each("depth", [1, 10])
def test_bodies_within_bodies(depth):
    f = cytape.function(lambda x: deep(x, depth))
    for _ in range(3):
        assert float(f(np.array(2.0))) == 3.0
    assert float(cytape.grad(f)(np.array(2.0))) == 1.5


def test_bodies_of_unknown_extents_are_run_for_those_there_are():
    @cytape.function(input_signature=[symbolic_spec((None,), "float64")])
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < 4, lambda i, y: (i + 1, y * 0.5 + x), (cytape.constant(0), x))
        return y

    for n in (1, 3, 700, 3):
        x = np.arange(float(n))
        y = x
        for _ in range(4):
            y = y * 0.5 + x
        np.testing.assert_allclose(f(x), y)
        np.testing.assert_allclose(cytape.grad(lambda x: cnp.sum(f(x)))(x), np.full(n, 1.9375))


def test_gradients_in_a_session():
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (), name="x")
        _, y = cytape.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, cnp.sin(y)), (cytape.constant(0), x))
        (slope,) = cytape.gradients(y, [x])
    expected = cytape.Session(graph).run([y, slope], {x: 0.5})
    step = np.cos(0.5) * np.cos(np.sin(0.5)) * np.cos(np.sin(np.sin(0.5)))
    np.testing.assert_allclose(expected, [np.sin(np.sin(np.sin(0.5))), step])


OF_ANY_LENGTH = [symbolic_spec((None,), "float64")]


def test_a_branch_that_is_not_run_may_not_fit_what_there_is():
    three = np.arange(3.0)

    @cytape.function(input_signature=OF_ANY_LENGTH)
    def f(x):
        return cytape.cond(cnp.sum(x) > 0, lambda: cnp.sin(x + three), lambda: x[:1] * 2.0)

    for x in (np.array([-1.0, -2.0]), three, -three):
        np.testing.assert_allclose(f(x), np.sin(x + three) if np.sum(x) > 0 else x[:1] * 2.0)
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        f(np.array([1.0, 2.0]))


def test_a_body_that_is_not_run_may_not_fit_what_there_is():
    three = np.arange(3.0)

    @cytape.function(input_signature=OF_ANY_LENGTH)
    def f(x):
        _, y = cytape.while_loop(
            lambda i, y: i < cnp.sum(x), lambda i, y: (i + 1.0, cnp.sin(y + three)),
            (cytape.constant(0.0), x), shape_invariants=((), (None,)))
        return y

    np.testing.assert_allclose(f(np.array([-1.0, -2.0])), [-1.0, -2.0])
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        f(np.array([1.0, 2.0]))


def branches_of_branches(x):
    return cytape.cond(
        cnp.sum(x) > 0, lambda: x**2, lambda: cytape.cond(
            cnp.sum(x) > -1, lambda: x**3, lambda: cytape.cond(
                x[0] > -2, lambda: cnp.tanh(x), lambda: cytape.while_loop(
                    lambda i, y: i < 2, lambda i, y: (i + 1, cnp.sin(y) * x),
                    (cytape.constant(0), x))[1])))


@each("x", [[0.3, 0.8], [-0.3, -0.2, -0.1], [-1.5, -0.2], [-3.0, 0.4]])
def test_higher_orders_of_branches_within_branches_of_unknown_extents(x):
    x = np.array(x)

    def slope(f):
        return lambda x: cnp.sum(cytape.grad(lambda x: cnp.sum(f(x) ** 2))(x) ** 2)

    f = cytape.function(branches_of_branches, input_signature=OF_ANY_LENGTH)
    for order in cytape.grad(slope(f)), cytape.jacfwd(slope(f)):
        np.testing.assert_allclose(
            order(x), cytape.grad(slope(branches_of_branches))(x), rtol=1e-10)
    inside = cytape.function(cytape.grad(slope(f)), input_signature=OF_ANY_LENGTH)
    np.testing.assert_allclose(inside(x), cytape.grad(slope(branches_of_branches))(x), rtol=1e-10)
