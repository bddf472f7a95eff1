"""Diagrams as SVG."""

import re
from xml.etree import ElementTree

from cytape.tensor.pictures.diagram_parts import KINDS, Arrow, Box
from cytape.tensor.pictures.svg_boxes import svg_text


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter()]


def test_texts_are_escaped():
    found = texts(svg_text(
        "two", [Box("x", 'a "<&"', "input"), Box("y", "b", scope="s/t", results="int8 ()")],
        [Arrow("x", "y", "f<8>"), Arrow("x", "y", dashed=True)]))
    assert 'a "<&"' in found and "f<8>" in found and "s/t/b" in found and "int8 ()" in found


def test_an_empty_diagram_shows_its_title():
    assert texts(svg_text("nothing here", [], [])).count("nothing here") == 2


def test_kinds_differ_without_colours():
    outlines = {}
    for kind in KINDS:
        svg = svg_text("", [Box("x", "x", kind)], [])
        outlines[kind] = re.sub(r'data-kind="\w+"|fill="#\w+"', "", svg)
    same = [kind for kind in KINDS if list(outlines.values()).count(outlines[kind]) > 1]
    assert same == ["op", "read", "assignment"]  # which name the op


def test_an_arrow_in_a_circle_points_up():
    svg = svg_text("", [Box("x", "x"), Box("y", "y")], [Arrow("x", "y"), Arrow("y", "x")])
    assert svg.count("l-3.5 -7h7z") == svg.count("l-3.5 7h7z") == 1
