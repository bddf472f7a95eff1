"""Diagrams in the language of Graphviz; tests/graph/model/test_drawing.py checks its grammar."""

from cytape.tensor.pictures.diagram_parts import Arrow, Box
from cytape.tensor.pictures.dot_language import dot_text


def test_scopes_are_clusters():
    text = dot_text([Box("x", "x", scope="a/b"), Box("y", "y")], [Arrow("x", "y", dashed=True)])
    lines = [line.strip() for line in text.splitlines()]
    assert lines[3:] == [
        'y [label="y"];', 'subgraph "cluster_a/" {', 'label="a"; style="rounded"; color=gray60;',
        'subgraph "cluster_a/b/" {', 'label="b"; style="rounded"; color=gray60;',
        'x [label="x"];', "}", "}", "x -> y [style=dashed];", "}"]
