"""The pages have the numbers of the comparison with other libraries, and the README its picture."""

import json
import re
from pathlib import Path

import pytest

from bench.peer_pages import COMPILED, SHOWN, picture, with_measured

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "docs" / "peers.json"
needs_report = pytest.mark.skipif(
    not REPORT.exists(), reason="the pages are not beside the tests")


@needs_report
def test_the_table_has_the_numbers_that_were_measured():
    text = (ROOT / "docs" / "from_autograd.md").read_text()
    assert with_measured(text, json.loads(REPORT.read_text())) == text


@needs_report
def test_the_readme_has_the_range_that_was_measured():
    ratios = [entry["ratios"]["cytape"] for entry in json.loads(REPORT.read_text())["results"]
              if entry["group"] == SHOWN]
    text = " ".join((ROOT / "README.md").read_text().split())
    found = re.search(r"a gradient costs ([\d.]+) to ([\d.]+) times", text)
    assert found.groups() == (f"{min(ratios):.1f}", f"{max(ratios):.1f}")


@needs_report
def test_the_picture_has_all_programs_and_libraries():
    pytest.importorskip("matplotlib")
    report = json.loads(REPORT.read_text())
    figure = picture(report)
    figure.draw_without_rendering()
    names = {entry["name"] for entry in report["results"] if entry["group"] == SHOWN}
    axes, = figure.axes
    assert {label.get_text() for label in axes.get_yticklabels()} == names
    legend, = figure.legends
    libraries = {*report["results"][0]["ratios"]}
    assert libraries == {text.get_text() for text in legend.get_texts()} - {
        "", "op by op:", "traced once:"}
    assert set(COMPILED.values()) == set(report["environment"]["compiled"])


def test_other_numbers_are_put_in_their_places():
    def entry(measure, *seconds):
        return {"measure": measure, "name": "long",
                "ratios": dict(zip(("cytape", "autograd"), seconds, strict=True))}

    report = {"results": [
        entry("gradient", 2.0, 50.0), entry("jvp", 1.0, 3.0),
        {**entry("gradient", 1.0, 4.0), "name": "short"}]}
    before = """# Page

| program | gradient | Jacobian-vector product |
|---|---:|---:|
| long | 9 | 9 |
| short | 9 | 9 |

| program | NumPy |
|---|---|
| long | 7 |
"""
    after = with_measured(before, report)
    assert "| long | 25.0 | 3.00 |\n| short | 4.00 | - |" in after
    assert "| long | 7 |" in after
