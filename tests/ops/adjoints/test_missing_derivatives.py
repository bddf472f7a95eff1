"""Derivatives that are not known: errors where they are needed."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import DetachedError, NotDifferentiableError
from cytape.ops.adjoints.missing_derivatives import missing_gradients, without_derivative
from tests.cases import each


def test_gradients_that_are_not_known():
    x = cytape.constant(2.0)
    refused = missing_gradients("no gradient here", [x], [x])
    with pytest.raises(NotDifferentiableError, match="no gradient here"):
        refused.compute((True,))
    assert refused.compute((False,)) == [None]
    whole = cytape.constant(3)
    zeros = missing_gradients("no gradient here", [x * 0.0, cnp.zeros(3)], [x, whole])
    zero, none = zeros.compute((True, False))
    assert float(zero) == 0.0 and none is None
    graph = cytape.Graph()
    with graph.as_default():
        p = graph.placeholder("float64", (None,))
        [dx, none] = missing_gradients("no gradient here", [p], [p, graph.placeholder("int64", ())])
        assert none is None
    session = cytape.Session(graph)
    assert session.run(dx, {p: np.zeros(3)}).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(NotDifferentiableError, match="no gradient here"):
        session.run(dx, {p: np.ones(3)})


def lost(a, b, factors=()):
    return without_derivative(a * 2.0, [b], "no derivative here", factors)


@each("wrapped", [lambda f: f, cytape.function])
def test_a_result_refuses_one_derivative_and_has_the_other(wrapped):
    f = wrapped(lambda a, b: lost(cytape.convert_to_tensor(a), cytape.convert_to_tensor(b)))
    for transform in (lambda f: f, cytape.function):
        assert transform(cytape.grad(f))(3.0, 5.0) == 2.0
        tangent = transform(lambda a, b: cytape.jvp(lambda a: f(a, b), (a,), (7.0,))[1])
        assert tangent(3.0, 5.0) == 14.0
        for refused in (
            cytape.grad(f, argnums=1), lambda a, b: cytape.jvp(f, (a, b), (0.0, 1.0))[1],
            cytape.grad(lambda a, b: cytape.grad(f)(a, b) * b, argnums=1),
        ):
            with pytest.raises(DetachedError, match="no derivative here"):
                transform(refused)(3.0, 5.0)
        assert transform(cytape.grad(lambda a, b: 0.0 * f(a, b) + b, argnums=1))(3.0, 5.0) == 1.0


def test_a_result_depends_on_nothing_where_its_factors_are_zero():
    f = lambda a, b: lost(a, b, [a * 0.0, a])  # noqa: E731
    assert cytape.grad(f, argnums=1)(cytape.constant(0.0), cytape.constant(5.0)) == 0.0
    with pytest.raises(DetachedError, match="no derivative here"):
        cytape.grad(f, argnums=1)(cytape.constant(1.0), cytape.constant(5.0))


def test_values_without_derivative_are_returned_unchanged():
    a, n = cytape.constant(1.0), cytape.constant(3)
    assert without_derivative(a, [n], "") is a
    assert without_derivative(n, [a], "") is n
