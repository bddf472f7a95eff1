"""``python -m tests.rooms``: draw the map of the package in docs/architecture.md, from its imports.

A room is a folder of modules, or a module that lies in `cytape` itself. It stands one row above
the highest room that it imports. The folders of another library's names are one room.
"""

import functools
from pathlib import Path

from tests.test_packaging import (
    GATHERING,
    NAMED_ELSEWHERE,
    PACKAGE,
    ROOT,
    SOURCES,
    imports_of,
)

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- The map: python -m tests.rooms -->\n```text\n", "```\n"


def room_of(path: Path) -> str:
    """Return the room of a module, given by its path below `cytape`."""
    parts = []
    for part in path.parts:
        if parts and parts[0] in NAMED_ELSEWHERE or not (
                PACKAGE.joinpath(*parts, part) / "__init__.py").exists():
            break
        parts.append(part)
    return "/".join(parts) or path.parts[0]


def edges() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    found: dict[str, set[str]] = {}
    for source in SOURCES:
        room = room_of(source.relative_to(PACKAGE).with_suffix(""))
        if room == "__init__" or source.suffix == ".pyi" or source in GATHERING:
            continue
        ours = [name.split(".")[1:] for name in imports_of(source) if name.startswith("cytape.")]
        found.setdefault(room, set()).update(
            other for name in ours if (other := room_of(Path(*name))) != room)
    return {room: others & found.keys() for room, others in found.items()}


def rows(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms row by row, the highest first."""
    @functools.cache
    def level(room: str) -> int:
        return max((1 + level(other) for other in imports[room]), default=0)

    levels = {room: level(room) for room in imports}
    return [sorted(room for room in imports if levels[room] == row)
            for row in range(max(levels.values()), -1, -1)]


def picture() -> str:
    """Return the map as text."""
    return "".join("   ".join(row).center(100).rstrip() + "\n" for row in rows(edges()))


def main() -> None:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + picture() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
