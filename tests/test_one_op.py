"""docs/one_op.md: each step names a definition that exists, and each excerpt is its source."""


from tests.cases import each
from tests.docs_source import ROOT, assert_is_source, definition, source, steps

PAGE = ROOT / "docs" / "one_op.md"
TRACED = "## The same in a function"

# Files above the core that a reader opens, since the page does not show all that matters in them,
# and the lines of the definitions to be read there.
MOST_FILES, MOST_FILES_TRACED, MOST_LINES = 4, 7, 700


STEPS = steps(PAGE.read_text())


@each("path, name, excerpts", STEPS, ids=[step[1] for step in STEPS])
def test_a_step_names_a_definition_and_shows_its_source(path, name, excerpts):
    assert_is_source(path, name, excerpts)


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


@each("text, name, lines", [
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
