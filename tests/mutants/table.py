"""The mutants: each a small fault, as text to find in a file and text to put there instead.

They stand in one table per room, `<room>.toml`::

    [sine-without-its-sign]          # what the fault is
    file = "cytape/ops/elementwise.py"
    old = "lambda y, x: -sin(x)"     # is there exactly once
    new = "lambda y, x: sin(x)"

A good one is a mistake that a developer could make, that a test should notice, and that stands in
lines that seldom change. One .pyx file is compiled for each; a .pxd would compile half the package.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent


class StaleError(Exception):
    """The source has changed under a mutant."""


@dataclass(frozen=True)
class Mutant:
    """One fault: the text ``old``, which is in ``file`` once, replaced by ``new``."""

    name: str
    file: Path
    old: str
    new: str

    def apply(self, text):
        if (count := text.count(self.old)) != 1:
            raise StaleError(f"its old text is {count} times in {self.file}, not once")
        return text.replace(self.old, self.new)

    def tests(self, root):
        """Return the tests that should notice, as lists of paths, those most likely to first."""
        folder = Path("tests", *self.file.parts[1:-1])
        mirror = (folder / f"test_{self.file.stem}.py").as_posix()
        # The file's room, then the table's: some faults show on higher floors only.
        rooms = [*folder.parts[1:2], self.name.split("/")[0]]
        places = dict.fromkeys([mirror, *(f"tests/{room}" for room in rooms)])
        return [[place] for place in places if (root / place).exists()]


def read_tables(folder=TABLES):
    """Return all mutants."""
    return [
        Mutant(f"{table.stem}/{name}", Path(fault.pop("file")), **fault)
        for table in sorted(folder.glob("*.toml"))
        for name, fault in tomllib.loads(table.read_text()).items()
    ]
