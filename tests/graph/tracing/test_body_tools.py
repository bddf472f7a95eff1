"""Bodies: what is made of traced functions that nodes run."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.tracing.body_tools import (
    Operands,
    added,
    closed,
    dense,
    derived,
    given_symbols,
    inlined,
    like,
    repeatable,
    with_outputs,
    zeros,
)
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.tensor.recording.state import building_into


def body_of(f, *specs):
    return cytape.function(f).get_concrete_function(*[cytape.Spec.of(*spec) for spec in specs])


def test_operands_are_there_once():
    x, y, z = map(cytape.constant, (1.0, 2.0, 3.0))
    operands = Operands([x])
    assert operands.positions([y, x]) == (1, 0)
    assert operands.positions([z, y]) == (2, 1)
    assert operands.tensors == [x, y, z]


def test_arguments_like_those_of_another_graph():
    body = cytape.function(lambda x, y: (x, y)).get_concrete_function(
        cytape.Spec.of((None, 2), "float32"), cytape.Spec.of((), "int64"))
    graph = FunctionGraph("g", None)
    with building_into(graph):
        x, y = like(graph, body.graph, body.input_symbols)
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((None, 2), np.float32, (), np.int64)
    assert x.graph is graph


def test_a_body_is_inlined():
    body = body_of(lambda x: (x * 2.0, cnp.sum(x)), ((3,), "float64"))
    graph = FunctionGraph("g", None)
    with building_into(graph):
        [x] = like(graph, body.graph, body.input_symbols)
        outputs = inlined(body, graph, [x])
    assert [y.shape for y in outputs] == [(3,), ()]
    assert all(y.graph is graph for y in outputs)


def test_a_closed_body_takes_what_it_uses():
    graph = FunctionGraph("g", None)
    outside = [cytape.constant(float(i)) for i in range(4)]
    with building_into(graph):
        x, a, b, c = (graph.argument((), "float64") for _ in range(4))
        y = a * 2.0 + c * outside[3]
        body, passed, used = closed(graph, [x], [a, b, c], outside[:3], [y, cytape.constant(5.0)])
    assert used == [0, 2]
    assert passed == [outside[0], outside[2], outside[3]]
    assert [float(v) for v in body.run([7.0, *passed])] == [6.0, 5.0]


def test_other_outputs_of_a_body():
    body = body_of(lambda x: x * 2.0, ((), "float64"))
    both = with_outputs(body, [*body.outputs, *body.inputs])
    assert [float(x) for x in both.run([4.0])] == [8.0, 4.0]
    assert body.run([4.0])[0] == 8.0


def test_a_repeatable_body_draws_nothing_and_changes_nothing():
    w = cytape.Variable(3.0)

    def f(x):
        noise = cnp.random.uniform(0.0, 1.0, 2)
        w.assign_add(1.0)
        return x * noise * w

    body = body_of(f, ((2,), "float64"))
    assert len(given_symbols(body.graph)) == 3
    again = repeatable(body)
    assert given_symbols(again.graph) == []
    inputs = [np.array([1.0, 2.0]), w, np.array([10.0, 20.0]), 0.0, 5.0]
    assert again.run(inputs)[0].numpy().tolist() == [50.0, 200.0]
    assert float(w) == 3.0


def test_gradients_are_added_and_made_dense():
    x = cytape.constant([1.0, 2.0])
    slices = cytape.IndexedSlices(cytape.constant([5.0]), cytape.constant([1]), (2,))
    assert added(None, None) is None
    assert added(x, None) is x
    assert added(None, slices) is slices
    assert added(slices, x).numpy().tolist() == [1.0, 7.0]
    assert dense(slices).numpy().tolist() == [0.0, 5.0]
    assert dense(x) is x
    assert zeros(x).numpy().tolist() == [0.0, 0.0]


def test_bodies_that_capture_tensors_are_made_again():
    body = body_of(cnp.sin, ((2,), float))

    class Made:
        def __init__(self, captured):
            self.captured = captured

    made = derived(lambda body, numbers: Made(list(map(cytape.constant, numbers))))
    assert made(body, [1.0]) is not made(body, [1.0])
    assert made(body, []) is made(body, ())
