"""Drawings of memory over time."""

from xml.etree import ElementTree

from cytape.graph.checkpoint.memory_timeline import timeline


def test_a_drawing_is_xml_with_a_line_for_each_curve():
    root = ElementTree.fromstring(timeline({"plain": [1, 2 << 20, 3], "few": [], "one": [5]}))
    names = [element.tag.rpartition("}")[2] for element in root]
    assert names.count("path") == 3
    texts = [element.text for element in root if element.text]
    assert "plain: 2 MiB" in texts and "few: 0 bytes" in texts


def test_nothing_to_draw():
    assert timeline({}).startswith("<svg")
