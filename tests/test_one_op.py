"""docs/one_op.md: each step names a definition that exists, and each excerpt is its source."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "one_op.md"
STEP = re.compile(r"\[`(cytape/\S+)`\]\(\.\./\1\),\s+`([\w.]+)`")
EXCERPT = re.compile(r"```(?:cython|python)\n(.*?)```", re.S)
TRACED = "## The same in a function"

# Files above the core that a reader opens, since the page does not show all that matters in them,
# and the lines of the definitions to be read there.
MOST_FILES, MOST_FILES_TRACED, MOST_LINES = 4, 7, 700


def steps(text):
    """List file, name and excerpts of each step."""
    found = list(STEP.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [(match[1], match[2], EXCERPT.findall(text[match.end():end]))
            for match, end in zip(found, ends, strict=True)]


def definition(text, name):
    """Return the lines of a function, method, class or assignment, None if there is none."""
    lines = text.split("\n")
    for part in name.split("."):
        pattern = re.compile(
            rf"(?:cdef )?class {part}\b|(?:def|cdef|cpdef) (?:[\w.* ]+ )?{part}\(|{part} = ")
        start = next((i for i, line in enumerate(lines) if pattern.match(line.lstrip())), None)
        if start is None:
            return None
        indent = len(lines[start]) - len(lines[start].lstrip())
        end = start + 1
        while end < len(lines) and (
                not lines[end].strip() or lines[end].lstrip().startswith(")")
                or len(lines[end]) - len(lines[end].lstrip()) > indent):
            end += 1
        lines = lines[start:end]
    return lines


def stripped(lines):
    return "\n".join(line.strip() for line in lines if line.strip())


def source(path):
    return (ROOT / path).read_text()


STEPS = steps(PAGE.read_text())


@pytest.mark.parametrize("path, name, excerpts", STEPS, ids=[step[1] for step in STEPS])
def test_a_step_names_a_definition_and_shows_its_source(path, name, excerpts):
    assert (ROOT / path).exists()
    lines = definition(source(path), name)
    assert lines is not None, f"{name} is not in {path}"
    for excerpt in excerpts:
        assert stripped(excerpt.split("\n")) in stripped(lines), f"{name} has no such lines"


def to_open(found):
    return {path: None for path, _, excerpts in found
            if not excerpts and not path.startswith("cytape/core/")}


def test_a_reader_opens_few_files():
    eager, traced = PAGE.read_text().split(TRACED)
    files = to_open(steps(eager))
    assert len(files) <= MOST_FILES, list(files)
    files |= to_open(steps(traced))
    assert len(files) <= MOST_FILES_TRACED, list(files)
    assert sum(len(definition(source(path), name)) for path, name, excerpts in STEPS
               if path in files and not excerpts) <= MOST_LINES


@pytest.mark.parametrize("text, name, lines", [
    ("x = 1\ndef f(a,\n      b):\n    return a\n\ny = 2", "f", 3),
    ("class A:\n    def f(self):\n        pass\n    def g(self):\n        pass", "A.g", 2),
    ("cdef int f(int a) except -1:\n    return 0", "f", 2),
    ("cdef list f\nimport f\nf_other = 1", "f", None),
    ("class A:\n    pass\ndef g():\n    pass", "A.g", None),
])
def test_definitions_are_found(text, name, lines):
    found = definition(text, name)
    assert (found is None) == (lines is None)
    assert found is None or len([line for line in found if line.strip()]) == lines
