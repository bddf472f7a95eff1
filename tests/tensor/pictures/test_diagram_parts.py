"""Boxes and arrows."""

from cytape.tensor.pictures.diagram_parts import KINDS, Box


def test_boxes_are_ops_by_default():
    assert Box("x", "x").kind in KINDS
    assert not KINDS[Box("x", "x").kind].dashed
