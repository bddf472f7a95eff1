"""A graph as a drawing."""

import re
import stat
import sys

import numpy as np
import pytest

from cytape.graph.model import drawing

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
    assert outer < found.index('n2 [label="Sin"];') < inner < found.index('n1 [label="Tanh"];')


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
        np.tanh(x)
    assert 'n1 [label="Tanh\\n@cpu:1", fillcolor="#d9ead3"];' in lines(graph)


def test_texts_are_quoted(graph):
    with graph.device('a"b\\c\nd'):
        graph.no_op("x")
    assert 'n0 [label="x\\nNoOp\\n@a\\"b\\\\c\\nd"];' in lines(graph)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts another ``dot`` into the place of the one there may be."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(body):
        path = tmp_path / "dot"
        path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return put


@pytest.mark.skipif(sys.platform == "win32", reason="there programs are not scripts")
def test_a_picture_is_drawn_by_graphviz(graph, program):
    graph.placeholder("float64", name="x")
    program("print(sys.argv[1:], sys.stdin.read())")
    assert graph._repr_svg_() == f"['-Tsvg'] {graph.to_dot()}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there programs are not scripts")
@pytest.mark.parametrize("body", ["sys.exit(1)", "time.sleep(60)"])
def test_without_a_working_program_there_is_none(graph, program, monkeypatch, body):
    monkeypatch.setattr(drawing, "SECONDS", 0.5)
    program(body)
    assert graph._repr_svg_() is None


def test_without_graphviz_there_is_none(graph, program):
    assert graph._repr_svg_() is None


@pytest.mark.skipif(sys.platform == "win32", reason="there programs are not scripts")
def test_large_graphs_are_not_drawn_unasked(graph, program, monkeypatch):
    program("print('drawn')")
    monkeypatch.setattr(drawing, "LARGEST", 2)
    for _ in range(2):
        graph.no_op()
    assert graph._repr_svg_() == "drawn\n"
    graph.no_op()
    assert graph._repr_svg_() is None
