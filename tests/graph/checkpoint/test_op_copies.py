"""Copies of ops that stand in for them."""

import numpy as np

import cytape
from cytape.graph.checkpoint.op_copies import MOST_COPIES, Observer, Recomputation, Scheduled
from cytape.graph.differentiation.graph_gradients import differentiated
from cytape.graph.differentiation.places import Places
from tests.cases import each
from tests.graph.checkpoint.chains import SIZE, chain, count, same, traces_of_runs


def recomputation(graph, ys, xs, kept):
    return Recomputation(
        Places(graph), [(0, graph.symbol_of(y)) for y in ys], [(0, graph.symbol_of(x)) for x in xs],
        [graph.symbol_of(tensor) for tensor in kept])


def chain_of(n):
    tensors = [cytape.placeholder("float64", (3,), name="x")]
    for _ in range(n):
        tensors.append(np.tanh(tensors[-1]))
    return tensors


def test_a_stand_in_is_a_copy_that_reads_what_is_kept():
    with cytape.Graph().as_default() as graph:
        a = chain_of(4)
        stand_ins = recomputation(graph, [a[4]], [a[0]], [a[2]])
        copy, _ = stand_ins.stand_in(a[4].op.node, [cytape.constant(np.ones(3))])
        assert stand_ins.stand_in(a[4].op.node, [None]) == (copy, copy)  # once
    [before] = graph.operation_at(copy).inputs
    [pin] = before.op.inputs
    assert [pin.op.type, *(x.name for x in pin.op.inputs)] == ["Identity", a[2].name]
    assert a[4].op in pin.op.control_inputs


def test_nodes_that_are_not_to_run_again_stand_for_themselves():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        h = np.tanh(x)
        noise = cytape.numpy.random.random((3,))
        apart = np.tanh(noise)
        y = h * apart
        stand_ins = recomputation(graph, [y], [h], [])
    for tensor in (x, h, noise, apart):
        assert stand_ins.stand_in(tensor.op.node, [None]) == (tensor.op.node,) * 2
    assert stand_ins.stand_in(y.op.node, [None])[0] != y.op.node


def test_outputs_that_are_kept_are_read_as_they_are():
    with cytape.Graph().as_default() as graph:
        a = chain_of(4)
        stand_ins = recomputation(graph, [a[4]], [a[0]], [a[2]])
        copy, outputs = stand_ins.stand_in(a[2].op.node, [])
    assert outputs == a[2].op.node != copy


def test_copies_are_forgotten_behind_a_checkpoint_but_not_for_ever():
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (3,))
        early = np.tanh(np.sin(x))
        h, kept = x, []
        for _ in range(2 * MOST_COPIES):
            kept.append(np.tanh(h))
            h = kept[-1] * early
        stand_ins = recomputation(graph, [h], [x], kept)
        for node in reversed(range(h.op.node + 1)):
            stand_ins.stand_in(node, [])
    n_sines = sum(op.type == "Sin" for op in graph.get_operations())
    assert n_sines == 1 + MOST_COPIES


def test_copies_know_their_own_unknown_shapes():
    """The shape of a copy is that of the copy: nothing reads the original for its sake."""
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", (None, 3))
        h = np.tanh(x @ cytape.constant(np.eye(3)))
        y = h @ cytape.constant(np.eye(3))
        stand_ins = recomputation(graph, [y], [x], [])
        copy = graph.operation_at(stand_ins.stand_in(y.op.node, [])[0])
    assert copy.outputs[0].spec is not y.spec and copy.outputs[0].shape == (None, 3)


# -- by a schedule: what is copied when, and what the backward pass reads ------------------------


def gradient_by(a, schedule, reads):
    """Differentiate a chain; a schedule says by the place of a value which others to copy."""
    graph = a[0].graph
    nodes = [graph.node_of(graph.symbol_of(x)) for x in a]

    def stand_ins(places, targets, sources):
        return Scheduled(
            places, targets, sources,
            {nodes[i]: [nodes[k] for k in values] for i, values in schedule.items()},
            dict.fromkeys(nodes, reads))

    with graph.as_default():
        return differentiated(a[-1], [a[0]], stand_ins=stand_ins)


@each("schedule, evaluations", [
    ({}, 7), ({6: [6]}, 8), ({3: [1, 2, 3]}, 10), ({6: [4, 5, 6], 3: [1, 2, 3]}, 13),
    ({6: [1, 2, 3, 4, 5, 6], 5: [1, 2, 3, 4, 5], 4: [1, 2, 3, 4]}, 7 + 6 + 5 + 4)])
def test_copies_are_made_as_often_as_the_schedule_says(schedule, evaluations):
    a = chain(8)
    with a[0].graph.as_default():
        plain = cytape.gradients(a[-1], [a[0]])
    found = gradient_by(a, schedule, (False, True))
    results, traces = traces_of_runs(a[0].graph, found)
    expected = cytape.Session(a[0].graph).run(plain)
    assert all(same(result, expected) for result in results)
    assert {count(trace, "Tanh") for trace in traces} == {evaluations}


def test_less_memory_for_more_copies():
    a = chain(40)
    peaks = []
    for every in (39, 12, 6):
        schedule = {i: list(range(i - every + 2, i + 1)) for i in range(38 - every, every, -every)}
        _, [trace, *_] = traces_of_runs(a[0].graph, gradient_by(a, schedule, (False, True)))
        peaks.append(trace.peak_bytes)
    assert peaks[0] > peaks[1] > peaks[2]


def test_ops_whose_inputs_are_read_are_built_for_them_but_not_run():
    with cytape.Graph().as_default() as graph:
        a = [cytape.identity(cytape.Variable(np.linspace(0.1, 1, SIZE)))]
        for _ in range(6):
            a.append(np.exp(np.negative(a[-1])))
        squares = np.sum(a[-1] * a[-1])
        plain = cytape.gradients(squares, [a[0]])
    nodes = [graph.node_of(graph.symbol_of(x)) for x in a]
    product = graph.node_of(graph.symbol_of(squares)) - 1

    def stand_ins(places, targets, sources):
        reads = {node: (False, True) for node in nodes} | {product: (True, False)}
        return Scheduled(places, targets, sources, {product: [nodes[-1] - 1, nodes[-1]]}, reads)

    with graph.as_default():
        found = differentiated(squares, [a[0]], stand_ins=stand_ins)
    results, traces = traces_of_runs(graph, found)
    assert same(results[0], cytape.Session(graph).run(plain))
    assert count(traces[0], "Exp") == 7


def test_an_observer_notes_arrivals_and_changes_nothing():
    a = chain(5)
    graph, seen = a[0].graph, []

    def stand_ins(*places):
        seen.append(Observer(*places))
        return seen[0]

    with graph.as_default():
        found = differentiated(a[-1], [a[0]], stand_ins=stand_ins)
        plain = cytape.gradients(a[-1], [a[0]])
    nodes = [graph.node_of(graph.symbol_of(x)) for x in a]
    assert [node for node, _ in seen[0].arrivals] == nodes[:0:-1]
    starts = [start for _, start in seen[0].arrivals]
    assert starts == sorted(starts)
    assert same(cytape.Session(graph).run(found), cytape.Session(graph).run(plain))
