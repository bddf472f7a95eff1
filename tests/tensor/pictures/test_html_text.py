"""HTML that notebooks show of objects."""

from xml.etree import ElementTree

import numpy as np
import pytest

import cytape
from cytape.graph import checkpoint
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.plan import Plan
from cytape.tensor.pictures.html_text import described, size_text, table


def parsed(html):
    """Return the text of HTML that is well-formed."""
    return "".join(ElementTree.fromstring(
        f"<div>{html.replace('style=text-align:right', '')}</div>").itertext())


def test_texts_are_escaped():
    assert parsed(described("<a>", "&", "</pre>")) == "<a> &</pre>"
    assert parsed(table(["<a>", "b"], [["&", "1"]], "<c>")) == "<c><a>b&1"
    assert [size_text(n) for n in (0, 1023, 1 << 20, 5 << 50)] == [
        "0 bytes", "1023 bytes", "1 MiB", "5120 TiB"]


def tensors():
    graph = cytape.Graph()
    with graph.as_default():
        symbol = cytape.placeholder("float64", name="x")
        variable = cytape.get_variable("v", initializer=np.ones(2))
    return {
        "vector": cytape.constant([1.0, 2.0]), "empty": cytape.constant(np.zeros((0, 3))),
        "number": cytape.constant(1 + 2j), "large": cytape.constant(np.zeros((100, 100))),
        "bool": cytape.constant(True), "symbol": symbol, "row": cytape.constant(np.eye(3))[0],
        "variable": cytape.Variable([1.0], name="a<b>"), "in graph": variable}


@pytest.mark.parametrize("name", tensors())
def test_tensors(name):
    x = tensors()[name]
    text = parsed(x._repr_html_())
    assert text.startswith(type(x).__name__) and str(x.dtype) in text
    assert len(text) < 2000


def test_the_name_of_a_variable():
    assert parsed(tensors()["variable"]._repr_html_()) == "Variable a<b> float64 (1,)[1.]"
    assert "unknown shape" in tensors()["symbol"]._repr_html_()


def test_nothing_is_recorded_or_added_or_noted():
    x = cytape.constant([1.0, 2.0])
    v = cytape.Variable([1.0, 2.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        y = x * v
        before = tape.recorded_ops()
        for shown in (x, v, y):
            parsed(shown._repr_html_())
        assert tape.recorded_ops() == before
    assert tape.gradient(y, x).numpy().tolist() == [1.0, 2.0]

    @cytape.function
    def f(x):
        z = x * y
        n_nodes = z.graph.n_nodes
        for shown in (x, z, v, y):
            parsed(shown._repr_html_())
        assert z.graph.n_nodes == n_nodes
        return z

    assert f(x).numpy().tolist() == [1.0, 8.0]
    assert cytape.grad(lambda x: (x._repr_html_(), np.sum(x * x))[1])(2.0) == 4.0  # no warning


def test_plans():
    graph = cytape.Graph()
    x = graph.placeholder("float64", (1000,))
    y = np.sum(np.exp(x))
    plan = Plan(Subgraph(graph, (graph.symbol_of(x),), (graph.symbol_of(y),)))
    assert "Sum3Exp1" in parsed(plan._repr_html_()) and "4 instructions" in repr(plan)


def test_memory_plans():
    with cytape.Graph().as_default():
        x = cytape.placeholder("float64", (100,))
        y = x
        for _ in range(8):
            y = np.sin(y)
        plan = checkpoint.plan(np.sum(y), [x], checkpoints="auto")
    text = parsed(plan._repr_html_())
    assert text.count("everything kept") == 2 and "this plan" in text
