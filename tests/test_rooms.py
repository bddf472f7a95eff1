"""The map in docs/architecture.md is that of the imports, and describes every room."""

import re

from tests.rooms import BEGIN, PACKAGE, PAGE, edges, picture, rows


def lines_about_rooms():
    """List the rows of the table: the room, and the files to begin with."""
    table = PAGE.read_text().partition(BEGIN)[2].partition("\n## ")[0]
    return [(room.removesuffix(".py"), re.findall("`(.+?)`", files)) for room, files in
            re.findall(r"^\| `([\w/.]+)` \|.*\|([^|]*)\|$", table, re.M)]


def test_the_map_is_drawn_from_the_imports():
    assert BEGIN + picture() in PAGE.read_text(), "draw it again by: python -m tests.rooms"


def test_every_room_has_a_line():
    assert sorted(room for room, _ in lines_about_rooms()) == sorted(edges())


def test_the_files_to_begin_with_exist():
    named = [PACKAGE / room / file for room, files in lines_about_rooms() for file in files]
    assert named
    assert not [path for path in named if not path.exists()]


def test_rooms_stand_above_those_that_they_import():
    assert rows({"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}) == [["a"], ["b", "d"], ["c"]]
