"""Drawings of memory over time."""

from xml.etree import ElementTree

from cytape.tensor.pictures.memory_timeline import timeline


def test_a_drawing_is_xml_with_a_line_for_each_curve():
    root = ElementTree.fromstring(timeline({"plain": [1, 2 << 20, 3], "few": [], "one": [5]}))
    names = [element.tag.rpartition("}")[2] for element in root]
    assert names.count("path") == 3
    texts = [element.text for element in root if element.text]
    assert "plain: 2 MiB" in texts and "few: 0 bytes" in texts


def test_nothing_to_draw():
    assert timeline({}).startswith("<svg")


def test_steps_of_different_lengths():
    svg = timeline({"bytes": [4, 8]}, [1.0, 2.0, 5.0], "ms")
    assert "4 ms" in svg and 'd="M40.0 120.0H180.0L180.0 40.0H600.0"' in svg
