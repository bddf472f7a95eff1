"""The pictures of docs/how_to/see_inside.md are those that the program draws."""

from pathlib import Path
from xml.etree import ElementTree

from examples.see_inside import main

PAGES = Path(__file__).parents[2] / "docs" / "how_to"


def test_the_committed_pictures_are_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")  # restored after the program has changed it
    main(tmp_path)
    for name in ("tape", "graph", "scopes"):
        name = f"see_inside_{name}.svg"
        assert (tmp_path / name).read_text() == (PAGES / name).read_text(), (
            "draw them again: python examples/see_inside.py docs/how_to")
    ElementTree.parse(PAGES / "see_inside_profile.svg")
    assert "20" in capsys.readouterr().out.split()
