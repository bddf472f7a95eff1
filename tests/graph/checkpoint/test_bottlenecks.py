"""Bottlenecks, against their definition spelled out with walks over all ops."""

import random

import cytape
import cytape.numpy as np
from cytape.graph.checkpoint.bottlenecks import bottlenecks
from cytape.graph.checkpoint.recomputable import Between
from cytape.graph.differentiation.places import Places
from tests.cases import each
from tests.graph.programs import new_graph


def between_of(graph, ys, xs):
    places = Places(graph)
    return Between(places, [(0, graph.symbol_of(y)) for y in ys],
                   [(0, graph.symbol_of(x)) for x in xs])


def walk(nodes, neighbours, start):
    found, pending = {start}, [start]
    while pending:
        for other in neighbours[pending.pop()]:
            if other in nodes and other not in found:
                found.add(other)
                pending.append(other)
    return found


def by_definition(between, candidates):
    """Find ops that split the tensors read into disjoint sets, before and after them."""
    graph, nodes = between.graph, set(between.nodes)
    inputs = {node: set(graph.inputs_of(node)) for node in nodes}
    before = {node: {graph.node_of(s) for s in inputs[node]} for node in nodes}
    after = {node: {other for other in nodes if node in before[other]} for node in nodes}
    read = candidates & set().union(*inputs.values())
    read = {symbol for symbol in read if graph.node_of(symbol) in nodes}
    found = set()
    for symbol in read:
        node = graph.node_of(symbol)
        above = set().union(*(inputs[x] for x in walk(nodes, before, node))) & read
        below = set().union(*(inputs[x] for x in walk(nodes, after, node) - {node})) & read
        if not above & below and above | below == read:
            found.add(symbol)
    return found


def random_graph(rng, n):
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", (4,))
        tensors = [x]
        for _ in range(n):
            kind = rng.random()
            if kind < 0.15:
                tensors.append(np.tanh(x))
            elif kind < 0.6:
                tensors.append(np.tanh(tensors[-1]))
            elif kind < 0.9:
                tensors.append(tensors[-1] + tensors[rng.randrange(max(len(tensors) - 4, 0),
                                                                   len(tensors))])
            else:
                tensors.append(tensors[rng.randrange(len(tensors))] * 2.0)
    return graph, x, tensors


def test_all_of_a_chain_are_bottlenecks():
    graph, x = new_graph((4,))
    tensors = [x]
    for _ in range(10):
        tensors.append(np.tanh(tensors[-1]))
    between = between_of(graph, tensors[-1:], [x])
    inner = [graph.symbol_of(tensor) for tensor in tensors[1:-1]]
    assert bottlenecks(between, set(inner)) == inner


def test_d_5b_08_random_graphs():
    rng = random.Random(5)
    n_found = 0
    for _ in range(400):
        graph, x, tensors = random_graph(rng, rng.randrange(2, 14))
        ys = tensors[-1:] + rng.sample(tensors[1:], rng.random() < 0.2)
        between = between_of(graph, ys, [x])
        candidates = {symbol for symbol in between.tensors() if rng.random() < 0.8}
        found = bottlenecks(between, candidates)
        n_found += len(found)
        assert len(found) == len(set(found))
        wanted = by_definition(between, candidates)
        assert set(found) == wanted if len(ys) == 1 else set(found) <= wanted
    assert n_found > 300


def test_an_arm_of_a_diamond_is_one_if_the_other_reads_only_what_comes_before():
    graph, x = new_graph((4,))
    a = np.tanh(x)
    b, c = np.sin(a), np.cos(a)
    d = b + c
    y = np.tanh(d)
    between = between_of(graph, [y], [x])
    symbols = [graph.symbol_of(tensor) for tensor in (a, b, c, d)]
    assert set(bottlenecks(between, set(symbols))) == set(symbols) == by_definition(
        between, set(symbols))


def test_two_chains_have_none():
    graph, x = new_graph((4,))
    a = np.tanh(np.tanh(np.tanh(x)))
    b = np.sin(np.sin(np.sin(x)))
    y = a + b
    between = between_of(graph, [y], [x])
    assert bottlenecks(between, set(between.tensors())) == []


@each("made_first", [True, False])
def test_values_of_a_weight_alone_do_not_hide_the_others(made_first):
    """Weights that are changed before they are used, all at the beginning or each in its layer."""
    graph = cytape.Graph()
    weights = [graph.placeholder("float64", (4,)) for _ in range(5)]
    changed = [2.0 * w for w in weights] if made_first else None
    h = graph.placeholder("float64", (4,))
    layers = []
    for i, w in enumerate(weights):
        h = np.tanh(h * (changed[i] if made_first else 2.0 * w))
        layers.append(h)
    between = between_of(graph, [h], weights)
    found = set(bottlenecks(between, set(between.tensors())))
    assert {graph.symbol_of(layer) for layer in layers[1:-1]} <= found
    assert found <= by_definition(between, set(between.tensors()))


def test_a_head_on_the_way_does_not_hide_what_follows():
    graph, x = new_graph((4,))
    layers = [x]
    for _ in range(6):
        layers.append(np.tanh(layers[-1]))
    early = np.sin(layers[3])
    between = between_of(graph, [layers[-1], early], [x])
    inner = {graph.symbol_of(layer) for layer in layers[1:-1]}
    assert set(bottlenecks(between, inner)) == inner == by_definition(between, inner)
