"""The plain-Python tape itself; what it does is tested in the other files here, beside Cython's."""

import ast
import sys
from pathlib import Path

from cytape.core import reference


def test_it_needs_nothing_but_python():
    imported = set()
    for node in ast.walk(ast.parse(Path(reference.__file__).read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert {name for name in imported if name not in sys.stdlib_module_names} == {"cytape.errors"}


def test_nbytes_grows_and_shrinks_with_the_tape():
    tape = reference.Tape()
    tape.watch(0)
    empty = tape.nbytes
    for i in range(1000):
        tape.record("Op", [i + 1], [i], ["float64"], object)
    assert tape.nbytes > empty + 1000 * 100
