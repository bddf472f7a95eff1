"""All passes together: on the programs that are timed, and on random ones."""

import numpy as np
from hypothesis import given, settings

import cytape
import cytape.numpy as cnp
from bench.workloads import more_workloads, workloads
from cytape.graph import Graph
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.tensor.values.spec import Spec
from tests.cases import each
from tests.graph.passes.graphs import check_same, names, programs, subgraph_of, with_gradients

WORKLOADS = workloads(small=True) + more_workloads(small=True)


@each("workload", WORKLOADS, ids=lambda w: w.name)
def test_gradients_of_programs_are_the_same(workload):
    data = workload.constants(cytape.constant)
    function = with_gradients(lambda *inputs: workload.function(cnp, *inputs, *data))
    before = subgraph_of(function, *workload.inputs)
    after = optimise(before)
    assert sum(names(after).values()) <= sum(names(before).values())
    rtol = 1e-5 if workload.inputs[0].dtype == np.float32 else 1e-13
    check_same(before, after, workload.inputs, rtol)


def test_little_is_left_of_programs_on_vectors():
    def function(x):
        for _ in range(10):
            x = x + 0.1 * cnp.sin(x) * cnp.exp(-x)
        return cnp.sum(x[1:] * x[:-1])

    after = optimise(subgraph_of(with_gradients(function), np.ones(5000)))
    assert names(after) == {"Fused": 3, "GetItem": 2, "Accumulate": 1}


def test_fed_values_give_the_shapes():
    graph = Graph()
    with graph.as_default():
        x, y = (graph.placeholder(float, (None,)) for _ in range(2))
        results = with_gradients(lambda x, y: x * cnp.sin(y))(x, y)
    symbols = tuple(map(graph.symbol_of, results))
    subgraph = Subgraph(graph, (graph.symbol_of(x), graph.symbol_of(y)), symbols)
    array = np.linspace(-1, 1, 5000)
    after = optimise(subgraph, [Spec.of((5000,), float)] * 2)
    assert names(after) == {"Fused": 1}
    check_same(subgraph, after, [array, 2 * array], 1e-15)


@settings(max_examples=80, deadline=None)
@given(programs())
def test_random_programs_compute_the_same(program):
    function, arrays = program
    before = subgraph_of(function, *arrays)
    rtol = 1e-12 if arrays[0].dtype == np.float64 else 1e-4
    check_same(before, optimise(before), arrays, rtol, any_condition=True)
