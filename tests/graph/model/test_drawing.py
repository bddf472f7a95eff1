"""A graph as a drawing."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import cytape
from cytape.tensor.pictures import diagram

STRING = r'"(?:[^"\\\n]|\\.)*"'
VALUE = rf"(?:{STRING}|[\w.]+)"
PAIRS = rf"{VALUE}={VALUE}(?:, {VALUE}={VALUE})*"
LINE = re.compile(
    rf"digraph {{|}}|subgraph {STRING} {{|(?:node|edge) \[{PAIRS}\];|label={STRING};.*|"
    rf"n\d+(?:_\d+)? \[{PAIRS}\];|n\d+(?:_\d+)? -> n\d+ \[{PAIRS}\];")


def lines(graph):
    """Check that a drawing has the grammar of Graphviz, as far as it uses it."""
    found = [line.strip() for line in graph.to_dot().splitlines()]
    depth = 0
    for line in found:
        assert LINE.fullmatch(line), line
        depth += line.endswith("{") - (line == "}")
        assert depth >= (line != found[-1])
    assert depth == 0
    return found


def test_an_empty_graph(graph):
    assert lines(graph)[0] == "digraph {"


def test_operations_are_boxes_and_tensors_edges(graph):
    x = graph.placeholder("float64", (None, 3), name="x")
    y = np.tanh(x)
    y + x
    found = lines(graph)
    assert 'n0 [label="x\\nPlaceholder", shape=ellipse, fillcolor="#cfe2f3"];' in found
    assert 'n1 [label="Tanh"];' in found
    assert 'n0 -> n1 [label="float64 (None, 3)"];' in found
    assert 'n1 -> n2 [label="float64 (None, 3)"];' in found
    assert 'n0 -> n2 [label="float64 (None, 3)"];' in found


def test_scopes_are_nested_boxes(graph):
    x = graph.placeholder("float64", (2,), name="x")
    with graph.name_scope("a"):
        with graph.name_scope("b"):
            np.tanh(x)
        np.sin(x)
    found = lines(graph)
    outer = found.index('subgraph "cluster_a/" {')
    inner = found.index('subgraph "cluster_a/b/" {')
    assert outer < found.index('n2 [label="Sin", peripheries=2];') < inner < (
        found.index('n1 [label="Tanh", peripheries=2];'))


def test_numbers_are_drawn_at_each_use(graph):
    x = graph.placeholder("float64", (2,), name="x")
    (x * 2.0) * 2.0
    found = lines(graph)
    assert sum('label="2."' in line for line in found) == 2
    assert not any(line.startswith("n1 ") for line in found)


def test_control_inputs_are_dashed(graph):
    x = graph.placeholder("float64", (2,), name="x")
    two = (x * 2.0).op.inputs[1]
    with graph.control_dependencies([x, two]):
        node = graph.no_op("later").node
    found = lines(graph)
    assert f"n0 -> n{node} [style=dashed];" in found
    assert sum("dashed" in line for line in found) == 1


def test_devices_and_gradients_are_shown(graph):
    x = graph.placeholder("float64", (2,), name="x")
    with graph.device("cpu:1"), graph.differentiating(x.op):
        np.tanh(np.tanh(x))
    assert 'n1 [label="Tanh\\n@cpu:1", fillcolor="#d9ead3"];' in lines(graph)


def test_texts_are_quoted(graph):
    with graph.device('a"b\\c\nd'):
        graph.no_op("x")
    assert 'n0 [label="x\\nNoOp\\n@a\\"b\\\\c\\nd"];' in lines(graph)


def test_unread_results_are_marked(graph):
    np.tanh(graph.placeholder("float64", (2,), name="x"))
    assert 'n1 [label="Tanh", peripheries=2];' in lines(graph)


def drawn(svg):
    """Return the keys of the boxes of a picture with their kinds, and its arrows."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    boxes, arrows = {}, set()
    for group in found:
        if group.get("class") == "box":
            boxes[group.get("data-key")] = group.get("data-kind")
        elif group.get("class") == "arrow":
            arrows.add((group.get("data-start"), group.get("data-end")))
    return boxes, arrows


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_dot")
def test_a_graph_is_drawn_without_graphviz(graph):
    x = graph.placeholder("float64", (None, 3), name="x")
    with graph.as_default():
        w = cytape.get_variable("w", initializer=np.ones(3))
        y = x * w + 1.0
        [gradient] = cytape.gradients(np.sum(np.tanh(y)), [w])
    svg = graph._repr_svg_()
    assert svg == str(graph.draw())
    boxes, arrows = drawn(svg)
    assert {"input", "variable", "read", "op", "result", "derivative", "number"} == {
        *boxes.values()}
    for node in range(graph.n_nodes):
        for symbol in graph.inputs_of(node):
            source = f"n{graph.node_of(symbol)}"
            assert source not in boxes or (source, f"n{node}") in arrows
    assert boxes[f"n{gradient.op.node}"] == "result"


@pytest.mark.usefixtures("no_dot")
def test_scopes_are_folded(graph):
    x = graph.placeholder("float64", (2,), name="x")
    with graph.name_scope("a"):
        y = np.tanh(x)
    z = np.sin(y)
    with graph.name_scope("a"), graph.name_scope("b"):
        y = y + z  # in the scope again: the arrows form a circle
    boxes, arrows = drawn(str(graph.draw(depth=0)))
    assert sorted(boxes.values()) == ["input", "op", "scope", "scope"]
    assert len(arrows) == 4
    assert drawn(str(graph.draw(depth=9)))[0].keys() == {f"n{i}" for i in range(graph.n_nodes)}


@pytest.mark.usefixtures("no_dot")
def test_large_graphs_are_folded_or_refused(graph, monkeypatch):
    monkeypatch.setattr(diagram, "LARGEST", 3)
    with graph.name_scope("a"):
        for _ in range(4):
            graph.no_op()
    assert list(drawn(graph._repr_svg_())[0].values()) == ["scope"]
    with pytest.raises(ValueError, match="4 boxes, more than most=3: fold scopes by depth"):
        graph.draw(most=3)
    for _ in range(4):
        graph.no_op()
    assert graph._repr_svg_() is None
