"""Comments, docstrings and pages name things: no clause takes the place of a noun."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("cytape", "bench", "docs", "tests")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")

# A text that begins with "what", pronouns in the place of a noun, phrases in the place of a verb.
HEADLESS = re.compile(
    r"\A\W*what\b(?!.*\?)|\bwhoever\b|\b(?:no|some)body\b|\bthat (?:of )?which\b"
    r"|\A\W*the same (?:of|where)\b|\A\W*tell (?:whether|which)\b|\bonce more\b|\bsee to it\b"
    r"|\b(?:ha[sv]e?|is|are) to be\b", re.IGNORECASE)
ANYWHERE = re.compile(HEADLESS.pattern.replace(r"\A\W*", r"\b"), re.IGNORECASE)


def texts(path):
    """List the comments and docstrings of a module, or the paragraphs of a page, with lines."""
    source = path.read_text()
    if path.suffix == ".md":
        return [(source[:match.start()].count("\n") + 1, match[0]) for match in
                re.finditer(r"^(?![#|\n]).+?(?=\n\n|\Z)", source, re.DOTALL | re.MULTILINE)]
    if path.suffix in (".pyx", ".pxd"):
        return [(source[:match.start()].count("\n") + 1, match[1] or match[2])
                for match in re.finditer(r'"""(.*?)"""|(?:^|[ \t])#[: ]+([^\n]*)', source,
                                         re.DOTALL | re.MULTILINE)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(token.start[0], token.string.strip('rf"# :')) for token in tokens
            if token.type == tokenize.COMMENT
            or token.type == tokenize.STRING and token.string.lstrip("rf").startswith('"""')]


def headless(path):
    """List the places with such a clause."""
    if not ANYWHERE.search(path.read_text()):  # splitting into texts takes long
        return []
    return [f"{path}:{line}: {' '.join(text.split())[:80]}" for line, text in texts(path)
            for _ in HEADLESS.finditer(text)]


def sources():
    for folder in FOLDERS:
        yield from sorted(path for path in (ROOT / folder).rglob("*")
                          if path.suffix in (".py", ".pyx", ".pxd", ".md"))
    yield from (ROOT / page for page in PAGES)


def headless_names(source):
    """List the tests of a module with such a clause in their names, behind numbers as D_1A_10."""
    names = re.findall(r"^ *def test_(?:[dD]_\w\w?_\d+_)?(\w+)", source, re.MULTILINE)
    return [name for name in names if HEADLESS.search(name.replace("_", " "))]


def test_texts_name_their_subjects():
    assert not [place for path in sources() for place in headless(path)]


def test_names_of_tests_name_their_subjects():
    assert not [f"{path}: {name}" for path in (ROOT / "tests").rglob("*.py")
                for name in headless_names(path.read_text())]
    assert headless_names(
        "def test_what_is_kept(): pass\nclass A:\n    def test_D_1A_10_what_is_kept(): pass\n"
        "def test_arrays_that_nobody_reads(): pass\ndef test_a_tape_keeps_what_it_needs(): pass\n"
    ) == ["what_is_kept", "what_is_kept", "arrays_that_nobody_reads"]


@pytest.mark.parametrize("name, source, count", [
    ("a.py", "x = 1  # the op that the tape records\n", 0),
    ("a.py", "# What the tape records.\n", 1),
    ("a.py", 'def f():\n    """What it is."""\n    x = "nobody"\n', 1),
    ("a.py", 'def f():\n    """Return for nobody.\n\n    Whoever has it.\n    """\n', 2),
    ("a.pyx", '"""What it is."""\ncdef int a   # somebody\n# the slot\n', 2),
    ("a.py", '"""Tell which is to be taken."""\n# The same of two.\nx = 1  # once more\n', 4),
    ("a.pyx", "cdef int a   # NumPy has to see to it\n# the op must be called again\n", 1),
    ("a.pxd", "cdef int a\n", 0),
    ("a.md", "# What it is\n\nThat which is.\n\nWhat does it cost?\n\nWhat it costs.\n", 2),
])
def test_a_clause_without_a_noun_is_found(tmp_path, name, source, count):
    (tmp_path / name).write_text(source)
    assert len(headless(tmp_path / name)) == count
