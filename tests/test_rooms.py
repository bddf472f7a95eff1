"""The order of imports: its map in docs/architecture.md, and the calls against it."""

import re
from pathlib import Path

from cytape.ops.calls.late import UPPER
from tests.rooms import BEGIN, PACKAGE, PAGE, SOURCES, edges, picture, room_of, rows


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


def test_each_call_to_an_upper_room_is_listed_and_has_one_caller():
    callers = [(name, path.relative_to(PACKAGE)) for path in SOURCES if path.stem != "late"
               for name in set(re.findall(r'\bupper\("(\w+)"\)', path.read_text()))]
    assert sorted(name for name, _ in callers) == sorted(UPPER)
    height = {room: row for row, rooms in enumerate(reversed(rows(edges()))) for room in rooms}
    for name, caller in callers:
        target = room_of(Path(*UPPER[name].split(".")[1:]))
        assert height[target] > height[room_of(caller.with_suffix(""))], name
