"""What functions with a derivative of their own do with their arguments."""

import numpy as np
import pytest

import cytape
from cytape.autodiff.custom_calls import Arguments, graph_around, own_leaf, value_of


def test_tensors_are_told_from_what_stays():
    x, v = cytape.constant(1.0), cytape.Variable(2.0)
    args = ({"b": x, "a": 5}, [v, "word"])
    arguments = Arguments(args, [5, x, v, "word"])
    assert arguments.is_tensor == [False, True, True, False]
    assert [tensor is expected for tensor, expected in zip(arguments.tensors, [x, v], strict=True)]
    assert arguments.packed([10, 20]) == ({"b": 10, "a": 5}, [20, "word"])
    assert arguments.packed([10, 20], str) == ({"b": 10, "a": "5"}, [20, "word"])
    kept = arguments.without_tensors()
    assert kept.packed([10, 20]) == ({"b": 10, "a": 5}, [20, "word"])
    assert kept.tensors == []


def test_which_graph_a_call_is_a_part_of():
    graph, other = cytape.Graph(), cytape.Graph()
    p, x = graph.placeholder("float64", ()), cytape.constant(1.0)
    assert graph_around([x, 2.0]) is None
    assert graph_around([x, p]) is graph
    with other.as_default():
        assert graph_around([x, 2.0]) is other
        assert graph_around([2.0, np.ones(3)]) is None


def test_arguments_become_parts_of_a_graph():
    graph = cytape.Graph()
    array = np.ones(2)
    v = cytape.Variable(3.0)
    with graph.as_default():
        p = graph.placeholder("float64", ())
        assert own_leaf(graph, p) is p
        assert own_leaf(graph, cytape.constant(1.0)).graph is graph
        assert own_leaf(graph, v).graph is graph
        kept = own_leaf(graph, array)
    array[:] = 5.0
    assert kept.tolist() == [1.0, 1.0]
    assert not kept.flags.writeable
    assert own_leaf(graph, "word") == "word"
    assert float(value_of(v)) == 3.0


def doubled(x):
    x *= 2
    return x, lambda g: 2 * g


def doubled_backward(x):
    def backward(g):
        g *= 2
        return g

    return 2 * x, backward


@pytest.mark.parametrize("f", [doubled, doubled_backward])
def test_functions_that_change_their_arguments_are_differentiated_alike_everywhere(f):
    f = cytape.custom_gradient(f)
    gradient = cytape.grad(f)
    found = [gradient(3.0), cytape.function(gradient)(3.0), cytape.grad(cytape.function(f))(3.0),
             cytape.vmap(gradient)(np.array([3.0]))[0]]
    assert found == [2.0] * 4
