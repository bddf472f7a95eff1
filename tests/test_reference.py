"""The reference of the documentation site: each public name has one entry, with a summary."""

import importlib
import inspect
import sys
from collections import Counter
from pathlib import Path

import pytest

from cytape import nn
from cytape.ops.engine.elementwise_op import ElementwiseOp
from tests.cases import each

pytest.importorskip("scipy")

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
try:
    import reference_pages as reference
finally:
    sys.path.pop(0)

ENTRIES = [full for sections in reference.entries().values()
           for names in sections.values() for full in names]


def public_modules():
    """Return the modules that the package shows, and those of its `scipy`."""
    import cytape

    shown = [name for name in cytape.__all__ if inspect.ismodule(getattr(cytape, name))]
    return {f"cytape.{name}" for name in shown} - {"cytape.scipy", "cytape.autograd"} | {
        f"cytape.scipy.{name}" for name in cytape.scipy.__all__}


def unlisted(entries):
    """List the public names of modules without an entry."""
    objects = {id(reference.resolve(full)) for full in entries}
    found = {module: importlib.import_module(module)
             for module in [*reference.HOMES, *reference.MODULES]}
    return [f"{module}.{name}" for module in found for name in getattr(found[module], "__all__", ())
            if not inspect.ismodule(getattr(found[module], name))
            and module not in NAMESAKES and id(getattr(found[module], name)) not in objects]


NAMESAKES = {module for module in reference.MODULES
             if module.startswith(("cytape.numpy", "cytape.scipy"))}


def test_each_public_name_has_an_entry():
    assert not unlisted(ENTRIES)
    others = [full for full in ENTRIES if full not in ("cytape.grad", "cytape.nn.gelu")]
    assert unlisted(others) == ["cytape.grad", "cytape.autodiff.grad", "cytape.nn.gelu"]
    assert {"cytape.numpy.tanh", "cytape.scipy.linalg.expm"} <= set(ENTRIES)


def test_no_name_has_two_entries():
    assert not [full for full, count in Counter(ENTRIES).items() if count > 1]


def test_each_public_module_has_a_page():
    assert not [module for module in public_modules() if not any(
        listed == module or listed.startswith(f"{module}.") for listed in reference.MODULES)]


def test_each_entry_has_a_summary():
    summaries = {full: reference.summary(reference.resolve(full), full) for full in ENTRIES}
    assert not [full for full, summary in summaries.items()
                if not summary.strip() or summary.startswith("With a tensor among the arguments")]


def test_each_page_is_in_the_contents():
    contents = (Path(reference.__file__).parent / "reference" / "index.md").read_text().split()
    assert not [page for page in reference.PAGES if f"generated/{page}" not in contents]


@each("name", [name for name in nn.__all__ if isinstance(getattr(nn, name), ElementwiseOp)])
def test_activations_have_an_example(name):
    assert ">>> cytape.nn." in getattr(nn, name).__doc__
