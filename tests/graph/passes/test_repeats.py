"""Removal of recomputation from plans that store less without it."""

import numpy as np

import cytape
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.passes import optimise
from cytape.graph.passes.repeats import splits_fused, without_repeats
from tests.cases import each

SIZE = 5000


def subgraph_of(graph, feeds, fetches):
    return Subgraph(graph, *(tuple(map(graph.symbol_of, each)) for each in (feeds, fetches)))


def count(subgraph, name):
    graph = subgraph.graph
    return sum(graph.ops[node].name == name for node in range(graph.n_nodes))


def gradient(f, shape=(SIZE,), checkpoints=None):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", shape)
        found = cytape.gradients(f(x), x, checkpoints=checkpoints)
    return subgraph_of(graph, [x], found)


def tanhs(x):
    for _ in range(9):
        x = np.tanh(x)
    return x


def twice(f):
    return lambda x: f(f(x))


WAYS = {
    "memory": lambda: gradient(twice(tanhs), checkpoints="memory"),
    "recompute_grad": lambda: gradient(twice(cytape.recompute_grad(tanhs))),
    "function": lambda: gradient(twice(cytape.function(tanhs, checkpoints="memory"))),
    "nested": lambda: gradient(twice(cytape.recompute_grad(cytape.recompute_grad(tanhs))))}


@each("way", WAYS)
def test_nothing_is_left_of_repeats(way):
    repeated, plain = WAYS[way](), gradient(twice(tanhs))
    assert splits_fused(optimise(repeated))
    undone = optimise(without_repeats(repeated))
    assert not splits_fused(undone)
    assert undone.graph.n_nodes == optimise(plain).graph.n_nodes
    assert count(undone, "CheckpointedCall") == 0


@each("f, shape", [
    (lambda x: x @ np.tanh(x @ np.tanh(x @ x)), (70, 70)),  # fuses nothing
    (tanhs, (100,))])                                       # is too small for it
def test_repeats_that_split_nothing_are_told_apart(f, shape):
    assert not splits_fused(optimise(gradient(cytape.recompute_grad(f), shape)))


def test_identities_that_a_user_has_wait_still_wait():
    with cytape.Graph().as_default() as graph:
        v = cytape.Variable(1.0)
        x = cytape.placeholder("float64", (SIZE,))
        h = np.tanh(np.sin(x))
        with graph.control_dependencies([v.assign_add(1.0)]):
            h = cytape.identity(h)
        y = np.tanh(np.sin(h))
        fetches = [y, *cytape.gradients(y, x, checkpoints=[h]), *cytape.gradients(y, x)]
    session, values = cytape.Session(graph), np.linspace(0.1, 1.0, SIZE)
    for i, fetch in enumerate(fetch for fetch in fetches for _ in range(3)):
        session.run(fetch, {x: values})
        assert float(v) == 2.0 + i


def test_draws_are_the_same_in_both_passes():
    def layers(x):
        for _ in range(4):
            x = cytape.nn.dropout(np.tanh(x), 0.5)
        return x

    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (SIZE,))
        y = cytape.recompute_grad(layers)(x)
        [dx] = cytape.gradients(y, x)
    for _ in range(3):
        a, b = cytape.Session(graph).run([y, dx], {x: np.linspace(0.1, 1.0, SIZE)})
        assert np.array_equal(a == 0, b == 0)


@each(order=[1, 2], way=[cytape.recompute_grad, lambda f: cytape.function(f, checkpoints="memory")])
def test_fed_outputs_of_a_call_are_read_without_repetition(way, order):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (SIZE,))
        y = way(tanhs)(x)
        [dx] = cytape.gradients(np.sin(y), x)
        expected = np.tanh(y) * np.cos(y)
        for _ in range(order - 1):
            [dx] = cytape.gradients(dx, x)
    session, values = cytape.Session(graph), np.linspace(0.1, 1.0, SIZE)
    for _ in range(3):
        wanted = cytape.elementwise_grad(lambda x: np.sin(tanhs(x)))
        if order == 2:
            wanted = cytape.elementwise_grad(wanted)
        np.testing.assert_allclose(session.run(dx, {x: values}), wanted(values), rtol=1e-12)
        fed = np.linspace(2.0, 3.0, SIZE)
        np.testing.assert_allclose(
            session.run([expected, dx], {x: values, y: fed})[0], np.tanh(fed) * np.cos(fed))
