"""The examples in the docstrings of compiled modules, which pytest does not collect itself."""

import doctest
import importlib
import pkgutil
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

import cytape

COMPILED = [
    module.name for module in pkgutil.walk_packages(cytape.__path__, "cytape.")
    if module.module_finder.find_spec(module.name).origin.endswith(tuple(EXTENSION_SUFFIXES))
]


@pytest.mark.parametrize("name", COMPILED)
def test_examples_of_compiled_module(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
