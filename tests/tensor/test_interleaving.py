"""Attacks on blocks: left in another order than entered, by generators, by tasks, in other threads.

A block is in force for those who entered it, and for tasks that were started inside it, until it is
left, in whatever task or thread, and in whatever order with other blocks.
"""

import gc
import itertools

import pytest

import cytape
from cytape.tensor.recording.state import current_graph, unrecorded
from tests import ways
from tests.cases import each
from tests.threads import in_thread

pytestmark = pytest.mark.usefixtures("nothing_stays_entered")
ORDERS = list(itertools.permutations(range(3)))


@pytest.fixture
def x():
    return cytape.constant(3.0)


def inside(block):
    with block as value:
        yield value


# ---- graphs and their scopes


@pytest.mark.parametrize("order", ORDERS)
def test_graphs_left_in_any_order(order):
    graphs = [cytape.Graph() for _ in range(3)]
    blocks = [inside(graph.as_default()) for graph in graphs]
    for block in blocks:
        next(block)
    entered = [0, 1, 2]
    for i in order:
        blocks[i].close()
        entered.remove(i)
        assert current_graph() is (graphs[entered[-1]] if entered else None)
        y = cytape.constant(1.0) + 1.0
        assert y.graph is current_graph()
    assert float(cytape.constant(1.0) + 1.0) == 2.0


def test_a_generator_that_is_dropped_builds_no_dead_graph():
    graph = cytape.Graph()
    kept = graph.placeholder("float64", ())

    def building():
        with cytape.Graph().as_default():
            yield

    first, second = building(), building()
    next(first)
    next(second)
    del first
    gc.collect()
    del second
    gc.collect()
    y = cytape.constant(1.0) * 2.0
    assert y.graph is None and float(y) == 2.0
    assert (kept * 1.0).graph is graph


SCOPES = {
    "name_scope": lambda graph, i: graph.name_scope(f"scope{i}"),
    "device": lambda graph, i: graph.device(f"cpu:{i}"),
    "control_dependencies": lambda graph, i: graph.control_dependencies([f"before{i}"]),
    "gradient_override_map": lambda graph, i: graph.gradient_override_map({"Tanh": f"f{i}"}),
    "original_op": lambda graph, i: graph.original_op(graph.get_operation_by_name(f"before{i}"))}


def description(graph):
    op = graph.no_op()
    return (op.name.rpartition("/")[0], op.device, op.control_inputs, op.original_op,
            graph.contexts[graph.context_of(op.node)].overrides)


@each(kind=SCOPES, order=ORDERS)
def test_scopes_left_in_any_order(kind, order):
    graph = cytape.Graph()
    for i in range(3):
        graph.no_op(f"before{i}")
    plain = description(graph)
    blocks, inner = [], []
    for i in range(3):
        blocks.append(inside(SCOPES[kind](graph, i)))
        next(blocks[-1])
        inner.append(description(graph))
    entered = [0, 1, 2]
    for i in order:
        blocks[i].close()
        entered.remove(i)
        assert description(graph) == (inner[entered[-1]] if entered else plain)


def test_scopes_of_several_graphs_do_not_mix():
    graphs = [cytape.Graph() for _ in range(2)]
    blocks = [inside(graph.name_scope(f"{i}s")) for i in range(2) for graph in graphs]
    for block in blocks:
        next(block)
    for block in (blocks[0], blocks[3], blocks[1], blocks[2]):
        block.close()
    assert [graph.no_op().name for graph in graphs] == ["NoOp", "NoOp"]


def test_a_scope_may_be_entered_again_and_inside_itself():
    graph = cytape.Graph()
    scope = graph.name_scope("a")
    names = []
    with scope:
        with scope:
            names.append(graph.no_op("x").name)
        names.append(graph.no_op("y").name)
    names.append(graph.no_op("z").name)
    with scope:
        names.append(graph.no_op("w").name)
    assert names == ["a/x", "a/y", "z", "a/w"]


@pytest.mark.parametrize("block", [
    lambda: cytape.Graph().as_default(), lambda: cytape.Graph().name_scope("a"), unrecorded,
    lambda: cytape.stop_recording()])
def test_leaving_what_was_not_entered_is_an_error(block):
    block = block()
    with pytest.raises(RuntimeError, match="not been entered"):
        block.__exit__(None, None, None)
    with block:
        pass
    with pytest.raises(RuntimeError, match="not been entered"):
        block.__exit__(None, None, None)


def test_a_graph_left_in_another_thread(x):
    graph = cytape.Graph()
    block = graph.as_default()
    block.__enter__()
    assert (x * 2.0).graph is graph
    in_thread(lambda: block.__exit__(None, None, None))
    assert (x * 2.0).graph is None
    block = inside(graph.name_scope("a"))
    next(block)
    in_thread(block.close)
    assert graph.no_op("b").name == "b"


# ---- recorders


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_recorders_and_blocks_between_them_left_in_any_order(x, order, cut):
    tapes = [cytape.GradientTape(persistent=True) for _ in range(3)]
    blocks = [inside(tape) for tape in tapes]
    if cut is not None:
        blocks[cut] = inside(cytape.stop_recording())
    for block in blocks:
        next(block)
    for tape in tapes:
        tape.watch(x)
    entered = [0, 1, 2]
    for i in [None, *order]:
        if i is not None:
            blocks[i].close()
            entered.remove(i)
        y = x * x
        for j, tape in enumerate(tapes):
            follows = j in entered and j != cut and not (cut in entered and j < cut)
            if j == cut:
                continue
            assert tape._recorder.is_known(y.id) == follows
    assert not (x * x).graph


def test_a_tape_left_inside_a_rule_of_another():
    """The rule's recorders are off the stack while it computes; what is left meanwhile stays so."""
    x = cytape.constant(2.0)
    tape = inside(cytape.GradientTape())

    @cytape.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def f_jvp(primals, tangents):
        tape.close()
        (x,), (t,) = primals, tangents
        return x * x, 2.0 * x * t

    next(tape)
    assert float(ways.tangent(f, x, 1.0)) == 4.0
