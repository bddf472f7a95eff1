"""Random edits of random graphs, against values computed from inputs to outputs in any order."""

import random

import numpy as np

import cytape
from cytape.graph import editor
from tests.cases import each

X = np.array([0.1, 0.2, 0.3])


def random_graph(rng):
    graph = cytape.Graph()
    ts = [graph.placeholder("float64", (3,), name="x"), graph.constant(np.arange(3.0)),
          graph.constant(np.full(3, 0.5))]
    for _ in range(rng.randint(3, 25)):
        a, b = rng.choice(ts), rng.choice(ts)
        ts.append(rng.choice(
            [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: np.tanh(a), np.subtract])(a, b))
    return graph, ts


def value_of(graph, symbol, x, known):
    """Compute a symbol by recursion, whatever stands where."""
    if symbol not in known:
        node = graph.node_of(symbol)
        op = graph.ops[node]
        known[symbol] = x if op.name == "Placeholder" else np.asarray(op.forward(
            *[value_of(graph, each, x, known) for each in graph.inputs_of(node)],
            **graph.attrs[node]))
    return known[symbol]


def edit(rng, graph, ts):
    new = [rng.choice(ts) for _ in range(rng.randint(1, 2))]
    old = [rng.choice(ts) for _ in new]
    listing = str(graph)
    try:
        rng.choice([editor.reroute_ts, editor.swap_ts])(new, old)
    except ValueError:
        assert str(graph) == listing
    if rng.random() < 0.3:
        try:
            ts.append(editor.graph_replace(rng.choice(ts), {rng.choice(ts): rng.choice(ts)}))
        except ValueError:
            assert str(graph).startswith("Graph of")
    if rng.random() < 0.2:
        ts.append(ts[-1] * rng.choice(ts))


@each("seed", range(40))
def test_edited_graphs_compute_what_they_say(seed):
    rng = random.Random(seed)
    graph, ts = random_graph(rng)
    session = cytape.Session(graph)
    for _ in range(6):
        for _ in range(rng.randint(1, 2)):
            session.run(ts[-1], {"x:0": X})
        edit(rng, graph, ts)
        for node in range(graph.n_nodes):
            assert all(graph.node_of(symbol) < node for symbol in graph.inputs_of(node))
        for t in ts:
            symbol = graph.symbol_of(t)
            assert [op.node for op in t.consumers()] == [
                node for node in range(graph.n_nodes) if symbol in graph.inputs_of(node)]
        known = {}
        for t, found in zip(ts, session.run(ts, {"x:0": X}), strict=True):
            np.testing.assert_array_equal(found, value_of(graph, graph.symbol_of(t), X, known))
        [dx] = cytape.gradients(ts[-1], ts[0])
        if dx is not None:
            step = np.array([0.3, -0.2, 0.5])
            up, down = (value_of(graph, graph.symbol_of(ts[-1]), X + h * step, {}).sum()
                        for h in (1e-6, -1e-6))
            np.testing.assert_allclose(
                session.run(dx, {"x:0": X}) @ step, (up - down) / 2e-6, rtol=1e-4, atol=1e-5)
