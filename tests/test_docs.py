"""The pages of the documentation: the examples give what they show, the links lead somewhere."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cytape.numpy.protocols import functions_of, numpy_functions
from cytape.tensor.tensor_methods import name_class

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture(autouse=True)
def class_of_tensors():
    """Undo the renaming by the page that imports cytape.autograd as autograd."""
    yield
    name_class("cytape.tensor.tensor.Tensor")



def pages_with(text):
    return pytest.mark.parametrize(
        "page", [page for page in PAGES if text in page.read_text()],
        ids=lambda page: page.relative_to(ROOT).as_posix(),
    )  # fmt: skip


@pytest.fixture
def compiled_modules(page, tmp_path, monkeypatch):
    """Build the Cython modules of a page: blocks that begin with the name of a file."""
    blocks = re.findall(r"```(?:cython|python)\n(# (\w+\.pyx?)\b(?s:.*?))```", page.read_text())
    for block, name in blocks:
        (tmp_path / name).write_text(block)
    if any(name == "setup.py" for _, name in blocks):
        built = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path,
            env=os.environ | {"CFLAGS": "-O0 -w", "PYTHONPATH": str(ROOT)}, capture_output=True,
            text=True)
        assert built.returncode == 0, built.stdout + built.stderr
        monkeypatch.syspath_prepend(tmp_path)


@pages_with(">>> ")
@pytest.mark.usefixtures("compiled_modules")
def test_examples_give_the_results_they_show(page):
    text = page.read_text()
    unfenced = text.replace("```", "")  # else a fence would belong to the result above it
    examples = doctest.DocTestParser().get_doctest(unfenced, {}, page.name, str(page), 0)
    report = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        examples, out=report.append
    )
    assert results.failed == 0, "".join(report)
    assert results.attempted == len(re.findall("^ *>>> ", text, re.M))


@pages_with("](")
def test_links_within_the_repository_lead_somewhere(page):
    text = re.sub(r"```(?s:.*?)```", "", page.read_text())
    links = re.findall(r"\]\(([^):#]+)\)", text)
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_functions_without_a_derivative_are_those_that_are_listed():
    """Of what NumPy lets tensors answer, each name is listed, and none that has a version here."""
    text = (ROOT / "docs" / "functions.md").read_text()
    text = text[text.index("Not among them yet"):text.index("Most of these are a line")]
    names = set(re.findall(r"`(\w+)`", text))

    def dispatched(module):
        functions = [(name, getattr(module, name)) for name in dir(module)]
        return {name: f for name, f in functions
                if isinstance(f, np.ufunc) or hasattr(f, "_implementation")}

    with_version = {name for name, f in dispatched(np).items() if f in numpy_functions()}
    assert len(with_version) > 100
    assert dispatched(np).keys() - with_version <= names
    assert names & with_version <= {"trace", "std", "var"}  # instead of others, and of options
    for module in ("fft", "linalg"):  # which have a version each
        assert set(dispatched(getattr(np, module)).values()) == set(functions_of(module))
