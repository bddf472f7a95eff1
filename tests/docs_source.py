"""Steps of pages: links to files with a name in them, and excerpts of its definition."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEP = re.compile(r"\[`((?:cytape|tests)/\S+)`\]\(\.\./\1\),\s+`([\w.]+)`")
EXCERPT = re.compile(r"```(?:cython|python)\n(.*?)```", re.S)


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


def source(path):
    return (ROOT / path).read_text()


def stripped(lines):
    return "\n".join(line.strip() for line in lines if line.strip())


def assert_is_source(path, name, excerpts):
    """Check that a file has a definition, and this the lines of all excerpts."""
    lines = definition(source(path), name)
    assert lines is not None, f"{name} is not in {path}"
    for excerpt in excerpts:
        assert stripped(excerpt.split("\n")) in stripped(lines), f"{name} has no such lines"
