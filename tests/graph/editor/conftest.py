"""The graph that most tests of the editor edit."""

from types import SimpleNamespace

import pytest

import cytape


def build():
    """a, b, d: constants; c = a + b; e = f = c + d; g = c + a; h = f + g, after c."""
    graph = cytape.Graph()
    named = SimpleNamespace(graph=graph)

    def name(letter, tensor):
        graph.give_name(tensor, letter)
        setattr(named, letter, tensor)
        return tensor

    a = named.a = graph.constant([1.0, 1.0], name="a")
    with graph.name_scope("foo"):
        b = named.b = graph.constant([2.0, 2.0], name="b")
        c = name("c", a + b)
        d = named.d = graph.constant([3.0, 3.0], name="d")
        with graph.name_scope("bar"):
            name("e", c + d)
            f = name("f", c + d)
            g = name("g", c + a)
            with graph.control_dependencies(c):
                name("h", f + g)
    return named


@pytest.fixture
def ops():
    """The graph, and its tensors by the last letter of their names."""
    return build()
