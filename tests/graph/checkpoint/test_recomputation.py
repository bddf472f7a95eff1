"""Copies of ops that stand in for them."""

import numpy as np

import cytape
from cytape.graph.checkpoint.recomputation import MOST_COPIES, Recomputation
from cytape.graph.differentiation.places import Places


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
