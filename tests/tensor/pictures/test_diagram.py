"""Diagrams, by Graphviz's program or without."""

import stat
import sys
from xml.etree import ElementTree

import pytest

from cytape.tensor.pictures import diagram
from cytape.tensor.pictures.diagram import Diagram
from cytape.tensor.pictures.diagram_parts import Arrow, Box

PICTURE = Diagram("two", [Box("x", 'a "<&"', "input"), Box("y", "b")], [Arrow("x", "y", "f<8>")])


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
def test_a_picture_is_drawn_by_graphviz(program):
    program("print(sys.argv[1:], sys.stdin.read())")
    assert str(PICTURE.draw()) == f"['-Tsvg'] {PICTURE.to_dot()}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there programs are not scripts")
@pytest.mark.parametrize("body", ["sys.exit(1)", "time.sleep(60)"])
def test_without_a_working_program_the_layout_is_our_own(program, monkeypatch, body):
    monkeypatch.setattr(diagram, "SECONDS", 0.5)
    program(body)
    assert ElementTree.fromstring(str(PICTURE.draw())).tag.endswith("svg")


def test_too_many_boxes():
    with pytest.raises(ValueError, match="2 boxes, more than most=1: pass a larger"):
        PICTURE.draw(most=1)
