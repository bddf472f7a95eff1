"""Sums of many large arrays: each is added as soon as it is there, whatever other passes do."""

import numpy as np

import cytape
import cytape.numpy as cnp
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.passes.early_sums import with_sums_early
from cytape.graph.run.plan import Plan
from tests.cases import sampled
from tests.graph.passes.graphs import check_same, names, subgraph_of

LARGE, USES = 1 << 19, 20
WAYS = ["function", cytape.AggregationMethod.ADD_N, cytape.AggregationMethod.EXPERIMENTAL_TREE,
        cytape.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N]
TERMS = {
    "flipped": lambda x, k: cnp.cumsum(x) * float(k),
    "flipped and elementwise": lambda x, k: cnp.cumsum(x * float(k)) * float(k),
    "python": lambda x, k: cnp.sort(x) * float(k),
    "parts": lambda x, k: cnp.cumsum(x[k:]) * float(k),
    "views of parts": lambda x, k: x[k:] * x[:-k],
    "products of flipped": lambda x, k: cnp.flip(x) * x * float(k),
}
MOST = {  # arrays, with the result: eager gradients take 2 to 3
    "flipped": 2, "flipped and elementwise": 4, "python": 3, "parts": 3, "views of parts": 3,
    "products of flipped": 4,
}


def gradient_of(terms, way, n):
    def f(x):
        return sum(cnp.sum(TERMS[terms](x, k)) for k in range(1, USES + 1))

    if way == "function":
        function = cytape.function(cytape.grad(f))
        return function.get_concrete_function(np.ones(n)).executable.subgraph
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (n,))
        [gradient] = cytape.gradients(f(x), x, aggregation_method=way)
    return Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(gradient),))


@sampled(4, way=WAYS, terms=TERMS)
def test_a_gradient_of_many_uses_takes_the_memory_of_few(terms, way):
    subgraph = gradient_of(terms, way, LARGE)
    optimised = optimise(subgraph)
    for one in with_sums_early(subgraph), optimised:
        assert Plan(one).peak_bytes <= (MOST[terms] + 0.01) * 8 * LARGE
    if way == "function":
        check_same(subgraph, optimised, [np.random.default_rng(0).normal(size=LARGE)])


def test_sums_of_many_are_added_in_their_order():
    def function(x):
        return [cytape.add_n([cnp.sin(x * 3.0), cnp.sort(x), cnp.cumsum(x), x])]

    before = subgraph_of(function, np.zeros(LARGE))
    after = with_sums_early(before)
    assert "AddN" not in names(after)
    check_same(before, after, [np.random.default_rng(0).normal(size=LARGE)])


def test_small_sums_stay_where_they_are():
    subgraph = gradient_of("python", "function", 100)
    assert with_sums_early(subgraph) is subgraph


def test_sums_that_are_read_elsewhere_or_wait_are_not_moved():
    def function(x):
        early, late = cnp.cumsum(x), cnp.cumsum(x * 2.0)
        total = cnp.sort(x) + early
        return [total + late, early, total]

    before = subgraph_of(function, np.zeros(LARGE))
    after = with_sums_early(before)
    assert names(after) == names(before)
    check_same(before, after, [np.linspace(0, 1, LARGE)])


def test_fused_terms_join_the_sum_that_adds_them():
    subgraph = optimise(gradient_of("flipped and elementwise", "function", LARGE))
    assert names(subgraph)["Fused"] >= USES - 2
    assert names(subgraph)["Multiply"] == 1  # of the first term, which nothing is added to
