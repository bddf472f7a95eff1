"""Derivatives of bodies, built in graphs of their own."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.derived_body import DerivedBody
from tests.cases import each

X = np.array([1.0, 2.0])


def body_of(f, n=1):
    return cytape.function(f).get_concrete_function(*[cytape.Spec.of((2,), float)] * n)


@each("mode", ["gradients", "tangents"])
def test_a_derivative_takes_the_arguments_that_it_uses(mode):
    body = body_of(lambda x, y: (x * x + y, y), 2)
    part = DerivedBody(body, "_derivative")
    x, y = map(cytape.constant, (X, 10 * X))
    part.build(part.take(body.input_symbols, [x, y]))
    [direction] = part.take(body.input_symbols[:1], [cytape.constant(X)])
    if mode == "gradients":
        found, _ = part.gradients(part.outputs[:1], part.inputs, [direction])
    else:
        found, unmoved = part.tangents(part.inputs[:1], [direction], part.outputs)
        assert unmoved is None
    derivative, passed = part.closed([found])
    assert derivative.name == f"{body.name}_derivative"
    assert [z.numpy().tolist() for z in passed] == [X.tolist()] * 2
    assert derivative.call_with(passed)[0].numpy().tolist() == (2 * X * X).tolist()


def test_the_derivative_stands_behind_the_body():
    body = body_of(cnp.tanh)
    part = DerivedBody(body)
    part.build(part.take_like([cytape.constant(X)]))
    assert part.graph.n_nodes == part.first_of_derivative == body.graph.n_nodes
    part.gradients(part.outputs, part.inputs, part.take(body.output_symbols))
    assert part.graph.n_nodes > part.first_of_derivative
