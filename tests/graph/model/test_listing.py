"""A graph as text."""

import numpy as np

import cytape
from cytape.graph.model.listing import short
from cytape.ops.engine.op_kinds import general
from tests.cases import each

declared_halves = general(
    "DeclaredListedHalves", lambda x, at: (x[:at], x[at:]), shape_rule=lambda x, at: (x, x))


def lines(graph):
    assert str(graph) == graph.listing()
    return [" ".join(line.split()) for line in graph.listing().splitlines()[1:]]


def test_an_empty_graph():
    assert str(cytape.Graph()) == "Graph of 0 operations"


def test_every_operation_has_a_line(graph):
    x = graph.placeholder("float32", (None, 3), name="x")
    np.sum(np.tanh(x), axis=(0,), keepdims=True)
    graph.placeholder("bool")
    assert lines(graph) == [
        "x = Placeholder() -> float32 (None, 3)", "Tanh = Tanh(x) -> float32 (None, 3)",
        "Sum = Sum(Tanh, axis=(0,), keepdims=True) -> float32 (1, 3)",
        "Placeholder = Placeholder() -> bool ?",
    ]


def test_columns_are_aligned(graph):
    x = graph.placeholder("float64", (2,), name="a_long_name")
    x + np.tanh(x)
    rows = str(graph).splitlines()[1:]
    assert len({row.index("=") for row in rows}) == 1
    assert len({row.index("->") for row in rows}) == 1
    assert rows[1].startswith("Tanh        = ")


def test_long_names_do_not_widen_the_others(graph):
    x = graph.placeholder("float64", (2,), name="x" * 100)
    np.tanh(x)
    assert "\nTanh" + " " * 29 + "= " in str(graph)


def test_scopes_are_indented(graph):
    x = graph.placeholder("float64", (2,), name="x")
    with graph.name_scope("a"):
        np.tanh(x)
        with graph.name_scope("b"), graph.name_scope("c"):
            np.tanh(x)
        np.sin(x)
    with graph.name_scope("d"):
        np.tanh(x)
    texts = [line.split("=")[0].rstrip() for line in str(graph).splitlines()[1:]]
    assert texts == [
        "x", "a/", "  Tanh", "  b/", "    c/", "      Tanh", "a/", "  Sin", "d/", "  Tanh"
    ]  # fmt: skip


def test_numbers_stand_where_they_are_used(graph):
    x = graph.placeholder("float64", (2,), name="x")
    x * 2.5 + graph.constant(3.0, name="three")
    graph.constant(7)
    assert lines(graph)[1:] == [
        "Multiply = Multiply(x, 2.5) -> float64 (2,)",
        "three = 3. -> float64 ()", "Add = Add(Multiply, three) -> float64 (2,)",
        "Constant_1 = 7 -> int64 ()",
    ]


def test_several_outputs_are_numbered(graph):
    first, second = declared_halves(graph.placeholder("float64", (2,), name="x"), at=1)
    second + first
    assert lines(graph)[1:] == [
        "DeclaredListedHalves = DeclaredListedHalves(x, at=1) -> float64 (2,), float64 (2,)",
        "Add = Add(DeclaredListedHalves:1, DeclaredListedHalves:0) -> float64 (2,)",
    ]


def test_control_inputs_and_devices_are_noted(graph):
    a = graph.no_op("a")
    with graph.device("cpu:1"), graph.control_dependencies([a]):
        graph.no_op("b")
    assert lines(graph) == ["a = NoOp() -> ()", "b = NoOp() -> () [after a; on cpu:1]"]


@each(("value", "text"), [
    (None, "None"), ("ij,jk->ik", "'ij,jk->ik'"), (1.5, "1.5"), ((1,), "(1,)"),
    ((slice(None), slice(1, None), slice(None, 5, -1)), "(:, 1:, :5:-1)"),
    ((None, Ellipsis), "(None, ...)"), (np.dtype("float32"), "float32"),
    (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"), (np.zeros(7), "<float64 (7,)>"),
    (cytape.constant(2.0), "2."), (np.tanh, "tanh"), (np.float32, "float32"),
    (cytape.Variable(1.0, name="v"), "v"), ("x" * 100, "'" + "x" * 36 + "..."),
    (tuple(range(100)), "(" + ", ".join(map(str, range(14)))[:36] + "..."),
])  # fmt: skip
def test_attributes_are_short(value, text):
    assert short(value) == text
    assert len(short(value)) <= 40
