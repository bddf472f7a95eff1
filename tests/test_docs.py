"""The pages of the documentation: the examples give what they show, the links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])



def pages_with(text):
    return pytest.mark.parametrize(
        "page", [page for page in PAGES if text in page.read_text()],
        ids=lambda page: page.relative_to(ROOT).as_posix(),
    )  # fmt: skip


@pages_with(">>> ")
def test_examples_give_the_results_they_show(page):
    text = page.read_text()
    unfenced = text.replace("```", "")  # else a fence would belong to the result above it
    examples = doctest.DocTestParser().get_doctest(unfenced, {}, page.name, str(page), 0)
    report = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        examples, out=report.append
    )
    assert results.failed == 0, "".join(report)
    assert results.attempted == len(re.findall("^>>> ", text, re.M))


@pages_with("](")
def test_links_within_the_repository_lead_somewhere(page):
    links = re.findall(r"\]\(([^):#]+)\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_front_page_has_examples():
    assert ">>> " in (ROOT / "README.md").read_text()
