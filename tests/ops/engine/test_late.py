"""Calls against the order of imports: each is listed, is needed, and has one caller."""

import re
from pathlib import Path

from cytape.ops.engine.late import UPPER, upper
from tests.rooms import PACKAGE, SOURCES, edges, room_of, rows


def test_each_call_is_listed_and_has_one_caller():
    callers = [(name, path.relative_to(PACKAGE)) for path in SOURCES if path.stem != "late"
               for name in set(re.findall(r'\bupper\("(\w+)"\)', path.read_text()))]
    assert sorted(name for name, _ in callers) == sorted(UPPER)
    height = {room: row for row, rooms in enumerate(reversed(rows(edges()))) for room in rooms}
    for name, caller in callers:
        assert callable(upper(name))
        target = room_of(Path(*UPPER[name].split(".")[1:]))
        assert height[target] > height[room_of(caller.with_suffix(""))], name
