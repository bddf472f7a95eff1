"""The examples in the docstrings of compiled modules, which pytest does not collect itself."""

import doctest
import importlib
import pkgutil
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import cytape
from tests.cases import each

COMPILED = [
    module.name for module in pkgutil.walk_packages(cytape.__path__, "cytape.")
    if module.module_finder.find_spec(module.name).origin.endswith(tuple(EXTENSION_SUFFIXES))
]
SOURCES = {name: Path(__file__).parents[1].joinpath(*name.split(".")).with_suffix(".pyx")
           for name in COMPILED}


def prompts(path):
    """Count the examples that are written in a file."""
    return len(re.findall(r"^ *>>> ", path.read_text(), re.M))


def examples_of(name):
    """Return the docstrings with examples that there are at run time, each of them once."""
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    return {tuple(example.source for example in test.examples): test
            for test in found if test.examples}


@each("name", [name for name in COMPILED if examples_of(name)])
def test_examples_of_compiled_module(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in examples_of(name).values():
        runner.run(test)
    results = runner.summarize(verbose=False)
    assert results.failed == 0
    assert results.attempted > 0


@pytest.mark.skipif(not all(path.exists() for path in SOURCES.values()), reason="no sources here")
def test_all_examples_that_are_written_are_found():
    """None gets lost, say by a directive that leaves docstrings out."""
    written = {name: prompts(path) for name, path in SOURCES.items()}
    found = {name: sum(map(len, examples_of(name))) for name in COMPILED}
    assert found == written
    assert sum(written.values()) > 100
