"""Derivatives that are lost in Python calls of graphs, because a value left its tensor there."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError
from tests.bodies import branch, loop
from tests.cases import each

grad, function = cytape.grad, cytape.function


@cytape.custom_jvp
def cube_by_jvp(x):
    return np.asarray(x.numpy() ** 3)


@cube_by_jvp.defjvp
def cube_rule(primals, tangents):
    return cube_by_jvp(*primals), 3 * cytape.constant(primals[0].numpy() ** 2) * tangents[0]


@cytape.custom_gradient
def cube_by_gradient(x):
    return x**3, lambda dy: dy * 3 * x.numpy() ** 2


CUBES = [cube_by_jvp, cube_by_gradient]


def inside(f):
    return function(lambda x: f(x))


def jvp(f):
    return lambda x: cytape.jvp(f, (x,), (1.0,))[1]


@each(cube=CUBES, second=[
    lambda f: grad(grad(f)), lambda f: grad(grad(inside(f))), lambda f: function(grad(grad(f))),
    lambda f: grad(function(grad(f))), lambda f: jvp(grad(inside(f))),
    lambda f: grad(jvp(inside(f))), lambda f: jvp(jvp(inside(f))), lambda f: function(jvp(jvp(f))),
    lambda f: grad(grad(function(loop(f)))), lambda f: grad(grad(function(branch(f)))),
    lambda f: jvp(grad(function(loop(f)))), lambda f: function(jvp(grad(function(branch(f))))),
])
def test_second_derivatives_that_are_lost_are_errors(second, cube):
    assert float(grad(inside(cube))(2.0)) == 12.0
    with pytest.raises(DetachedError, match="left their tensors"):
        second(cube)(2.0)


@each(cube=CUBES, looped=[False, True])
def test_second_gradients_in_a_graph(looped, cube):
    with cytape.Graph().as_default() as graph:
        p = cytape.placeholder("float64", ())
        y = cytape.while_loop(
            lambda i, _: i < 1, lambda i, y: (i + 1, cube(y)), (cytape.constant(0), p)
        )[1] if looped else cube(p)
        first = cytape.gradients(y, p)[0]
        second = cytape.gradients(first, p)[0]
    session = cytape.Session(graph)
    assert session.run(first, {p: 2.0}) == 12.0
    with pytest.raises(DetachedError, match="left their tensors"):
        session.run(second, {p: 2.0})


@each("cube", CUBES)
def test_derivatives_multiplied_by_zero_are_not_needed(cube):
    for f in lambda x: cube(x) * 0.0 + x * x, lambda x: cnp.where(x > 5, cube(x), x * x):
        for second in grad(grad(inside(f))), function(grad(grad(f))), grad(function(grad(f))):
            assert float(second(2.0)) == 2.0


def test_a_rule_may_say_that_a_derivative_is_zero():
    @cytape.custom_gradient
    def scaled(x, w):
        return x.numpy() * w.numpy(), lambda dy: (dy * w, None)

    @cytape.custom_jvp
    def scaled_by_jvp(x, w):
        return np.asarray(x.numpy() * w.numpy())

    @scaled_by_jvp.defjvp
    def rule(primals, tangents):
        dx = tangents[0]
        scale = primals[1].numpy()
        return None, dx * scale if dx.numpy().any() else None

    for f in scaled, scaled_by_jvp:
        both = inside(lambda x, f=f: f(x, x) + f(cytape.stop_gradient(x), x))
        assert float(jvp(both)(2.0)) == 2.0
    both = inside(lambda x: scaled(x, x) + scaled(cytape.stop_gradient(x), x))
    assert float(grad(both)(2.0)) == 2.0
