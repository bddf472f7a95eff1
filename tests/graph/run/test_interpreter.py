"""The plain-Python interpreter runs what is needed, in order, once."""

import numpy as np
import pytest

import cytape
from cytape.graph.run.interpreter import needed_nodes, run
from cytape.ops.engine.op_kinds import general
from tests.graph.programs import new_graph

log = []
noted = general("DeclaredReferenceNote", lambda x, tag: log.append(tag) or x,
                shape_rule=lambda x, tag: x)


def test_only_what_is_fetched_or_kept_runs():
    graph, x = new_graph()
    first, second, third = (noted(x, tag=tag) for tag in "abc")
    total = first + second
    log.clear()
    assert run(graph, [graph.symbol_of(total)], {graph.symbol_of(x): np.array(2.0)}) == [4.0]
    assert log == ["a", "b"]
    log.clear()
    kept = [graph.node_of(graph.symbol_of(third))]
    assert run(graph, [], {graph.symbol_of(x): np.array(2.0)}, kept) == []
    assert log == ["c"]


def test_fed_values_are_not_computed():
    graph, x = new_graph()
    middle = noted(x, tag="middle")
    y = middle * 3.0
    log.clear()
    assert run(graph, [graph.symbol_of(y)], {graph.symbol_of(middle): np.array(2.0)}) == [6.0]
    assert log == []


def test_control_inputs_run():
    graph, x = new_graph()
    before = noted(x, tag="before")
    with graph.control_dependencies([before]):
        y = cytape.identity(x)
    log.clear()
    run(graph, [graph.symbol_of(y)], {graph.symbol_of(x): np.array(2.0)})
    assert log == ["before"]
    fetches = [graph.symbol_of(y)]
    assert [graph.ops[node].name for node in needed_nodes(graph, fetches, (), waits=False)] == [
        "Placeholder", "Identity"]


def test_an_unfed_placeholder():
    graph, x = new_graph()
    with pytest.raises(Exception, match="feed"):
        run(graph, [graph.symbol_of(x * 2.0)], {})
