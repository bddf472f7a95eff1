"""The plain-Python accumulator itself; what it does is tested in test_accumulator.py."""

import ast
import sys
from pathlib import Path

from cytape.core import ForwardAccumulator, reference_accumulator


def test_it_needs_nothing_but_python_and_the_plain_tape():
    imported = set()
    for node in ast.walk(ast.parse(Path(reference_accumulator.__file__).read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert {name for name in imported if name not in sys.stdlib_module_names} == {
        "cytape.core.reference", "cytape.errors"}


def test_it_has_the_face_of_the_accumulator_in_cython():
    def face(cls):
        return {name for name in dir(cls) if not name.startswith("_")}

    plain = face(reference_accumulator.ForwardAccumulator)
    assert plain | {"use_batch"} == face(ForwardAccumulator)
