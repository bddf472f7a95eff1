"""Shapes of what is joined: known before it runs, mistakes told where the call is."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph import Graph
from tests.cases import each

FLOAT = np.dtype(float)


def placeholders(*shapes, dtype=FLOAT):
    graph = Graph()
    return graph, [graph.placeholder(np.dtype(dtype), shape) for shape in shapes]


MISTAKES = {
    "concatenate": (lambda x, y: cnp.concatenate([x, y]), (3, 4), (3, 5)),
    "concatenate of other ranks": (lambda x, y: cnp.concatenate([x, y]), (3, 4), (3,)),
    "stack": (lambda x, y: cnp.stack([x, y]), (3, 4), (4, 3))}


@each("name", MISTAKES)
def test_an_error_names_both_shapes_and_has_the_type_of_the_eager_one(name):
    call, *shapes = MISTAKES[name]
    with pytest.raises(Exception) as eager:  # noqa: B017, PT011
        call(*[cytape.constant(np.ones(shape)) for shape in shapes])
    _, xs = placeholders(*shapes)
    with pytest.raises(type(eager.value)) as error:
        call(*xs)
    assert all(str(shape) in str(error.value) for shape in shapes)
