"""The README: length, examples, and names of libraries that exist."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
MODULES = {"cytape": "cytape", "autograd": "autograd", "JAX": "jax", "PyTorch": "torch",
           "TensorFlow": "tensorflow", "MyGrad": "mygrad"}


def names_by_library():
    lines = iter(README.read_text().splitlines())
    head = next(line for line in lines if line.startswith("| | cytape |"))
    libraries = [cell.strip() for cell in head.strip("|").split("|")][1:]
    names = {library: [] for library in libraries}
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split("|")[1:]
        for library, cell in zip(libraries, cells, strict=True):
            names[library] += re.findall(r"`([\w.]+)`", cell)
    return names


def exists(module, name):
    """Look a dotted name up in a module, whose parts may be modules that it does not import."""
    found, path = importlib.import_module(module), module
    for part in name.split("."):
        path += f".{part}"
        if not hasattr(found, part):
            try:
                importlib.import_module(path)
            except ImportError:
                return False
        found = getattr(found, part)
    return True


def test_the_front_page_is_short_and_has_examples():
    text = README.read_text()
    assert ">>> " in text and len(text.splitlines()) <= 200


@pytest.mark.parametrize(("library", "names"), names_by_library().items())
def test_names_in_the_table_of_libraries_exist(library, names):
    module = MODULES[library]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{library} is not installed")
    assert len(names) >= 8
    assert not [name for name in names if not exists(module, name)]


def test_a_missing_name_is_noticed():
    assert exists("cytape", "testing.check_grads") and not exists("cytape", "testing.no_check")
