"""Derivatives that eager programs work out when a graph runs."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.autodiff.custom.eager_derivatives import EagerCall
from cytape.errors import UnconnectedGradientWarning
from cytape.ops.python.python_ops import python_call_op
from tests.cases import each

X = np.array([0.3, -1.2, 2.0])


def called(function, *specs):
    """A function that is called when the graph runs, but whose derivatives are not its own."""
    call = EagerCall("called", function, specs)
    return lambda *tensors: python_call_op(*tensors, call=call)


def f(x, w):
    return cnp.sin(x) * w, cnp.argmax(x), x * x


@each(extents=[(3,), (None,)], order=[1, 2, 3])
def test_derivatives_of_any_order(order, extents):
    of_x, integer = cytape.Spec.of(extents, float), cytape.Spec.of((), np.int64)

    def summed(f):
        def total(x):
            y, n, z = f(x, x * 2.0)
            return cnp.sum(y * z) * cnp.astype(n, float)

        return total

    there = cytape.function(summed(called(f, of_x, integer, of_x)), input_signature=[of_x])
    here = summed(f)
    for transform in (
        lambda f: lambda x: cnp.sum(cytape.grad(f)(x)),
        lambda f: lambda x: cytape.jvp(f, (x,), (cnp.ones_like(x),))[1],
    ):
        g, expected = there, here
        for _ in range(order):
            g, expected = transform(g), transform(expected)
        np.testing.assert_allclose(g(X), expected(X), rtol=1e-12)


def test_integers_and_what_does_not_matter_have_no_derivative():
    graph = cytape.Graph()
    spec = cytape.Spec.of((3,), float)
    with graph.as_default():
        p, n = cytape.placeholder("float64", (3,)), cytape.placeholder("int64", ())
        [y] = called(lambda x, n, w: x * n, spec)(p, n, cytape.constant(2.0))
        with pytest.warns(UnconnectedGradientWarning, match="int64"):
            dp, dn = cytape.gradients(y, [p, n])
        assert dn is None
    assert cytape.Session(graph).run(dp, {p: X, n: 5}).tolist() == [5.0, 5.0, 5.0]


def test_specs_may_be_those_of_arguments():
    traced = cytape.function(
        lambda x, y: called(lambda x, y: [y + 1.0, x], 1, 0)(x, y),
        input_signature=[cytape.Spec.of((None,), float), cytape.Spec.of((), np.float32)])
    y, x = traced(X, np.float32(2.0))
    assert (y.dtype, float(y), x.tolist()) == (np.float32, 3.0, X.tolist())


def test_results_of_another_shape():
    call = called(lambda x: x[:2], cytape.Spec.of((3,), float))
    with pytest.raises(ValueError, match=r"called has the shape \(2,\).*its spec says \(3,\)"):
        cytape.function(lambda x: call(x)[0])(X)
