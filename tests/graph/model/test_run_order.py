"""Orders in which nodes can run."""

import pytest

import cytape
from cytape.graph.model.run_order import order_within
from cytape.ops.python.draws import Stream


def chain(n):
    graph = cytape.Graph()
    ops = [graph.no_op(f"op{i}") for i in range(n)]
    return graph, ops


def test_nodes_come_right_before_their_first_consumer():
    graph, _ = chain(6)
    assert order_within(graph, 0, 6, {}, {}) == [0, 1, 2, 3, 4, 5]
    assert order_within(graph, 1, 5, {}, {1: [4]}) == [4, 1, 2, 3]
    assert order_within(graph, 0, 6, {}, {1: [4], 4: [5, 0]}) == [0, 5, 4, 1, 2, 3]
    assert order_within(graph, 2, 6, {}, {2: [0, 5]}) == [5, 2, 3, 4]


def test_cycles_are_named():
    graph, _ = chain(3)
    with pytest.raises(ValueError, match="op 'op0' would have to run before itself: 'op0' needs "
                                         r"'op2' needs 'op1' needs 'op0'\. Nothing"):
        order_within(graph, 0, 3, {}, {0: [2], 2: [1], 1: [0]})
    graph, _ = chain(30)
    with pytest.raises(ValueError, match="'op3' needs ... needs 'op27' needs"):
        order_within(graph, 0, 30, {}, {i: [(i + 1) % 30] for i in range(30)})


def test_long_chains_need_no_deep_stack():
    graph, _ = chain(5000)
    order = order_within(graph, 0, 5000, {}, {i: [i + 1] for i in range(4999)})
    assert order == list(range(4999, -1, -1))


def nodes(graph, *types):
    return [op.node for op in graph.get_operations() if op.type in types]


def test_reads_and_assignments_of_a_variable_keep_their_order():
    graph = cytape.Graph()
    v, w = cytape.Variable(1.0), cytape.Variable(1.0)
    with graph.as_default():
        first = graph.no_op()
        v * 1.0
        v.assign(2.0)
        v * 1.0
        w.assign(3.0)
    read, again = nodes(graph, "ReadVariable")
    assign, other = nodes(graph, "AssignVariable")
    order = order_within(graph, 0, graph.n_nodes, {}, {first.node: [again]})
    assert order.index(read) < order.index(assign) < order.index(again) < order.index(first.node)
    order = order_within(graph, 0, graph.n_nodes, {}, {first.node: [other]})
    assert order.index(other) < order.index(first.node) < order.index(read)
    with pytest.raises(ValueError, match="stateful ops, each also needs those before"):
        order_within(graph, 0, graph.n_nodes, {}, {read: [assign]})


def test_calls_of_python_keep_their_place_among_all_effects():
    graph = cytape.Graph()
    v = cytape.Variable(1.0)
    with graph.as_default():
        x = graph.constant(1.0)
        v.assign(x)
        cytape.numpy_function(lambda a: a, x, specs=cytape.Spec.of((), float))
        v * 1.0
    [assign, called, read] = nodes(graph, "AssignVariable", "PythonValues", "ReadVariable")
    with pytest.raises(ValueError, match="before itself"):
        order_within(graph, 0, graph.n_nodes, {}, {assign: [read]})
    with pytest.raises(ValueError, match="before itself"):
        order_within(graph, 0, graph.n_nodes, {}, {called: [read]})


def test_draws_from_one_seed_keep_their_order():
    with cytape.Graph().as_default() as graph:
        first = cytape.numpy.random.normal(size=(2,))
        second = cytape.numpy.random.normal(size=(2,))
    pair = nodes(graph, first.op.type)
    assert order_within(graph, 0, graph.n_nodes, {}, {pair[0]: [pair[1]]}).index(pair[1]) == 0
    graph.attrs[pair[0]]["stream"] = graph.attrs[pair[1]]["stream"] = Stream(1, 2)
    with pytest.raises(ValueError, match="before itself"):
        order_within(graph, 0, graph.n_nodes, {}, {pair[0]: [pair[1]]})
    assert second.op.node == pair[1]
