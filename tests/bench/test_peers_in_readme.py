"""The pages have the numbers of the comparison with other libraries."""

import json
from pathlib import Path

import pytest

from bench.peers_in_readme import with_measured

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "from_autograd.md"]
REPORT = ROOT / "docs" / "peers.json"


@pytest.mark.skipif(not REPORT.exists(), reason="the pages are not beside the tests")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_have_the_numbers_that_were_measured(page):
    text = page.read_text()
    assert with_measured(text, json.loads(REPORT.read_text())) == text


def test_other_numbers_are_put_in_their_places():
    def entry(measure, *seconds):
        names = ("cytape", "MyGrad", "cytape.function", "autograd")
        return {"measure": measure, "name": "long", "first_call_s": dict.fromkeys(names, 3.0),
                "seconds": dict(zip(names, seconds, strict=True)),
                "ratios": dict(zip(names, seconds, strict=True))}

    report = {"results": [
        entry("gradient", 2.0, 30.0, 0.5, 50.0), entry("jvp", 1.0, 4.0, 4.0, 3.0),
        entry("hvp", 5.0, 6.0, 6.0, 7.0),
        {**entry("gradient", 1.0, 1.0, 1.0, 4.0), "name": "short"},
    ]}
    before = """# Readme

| program | cytape | MyGrad |
|---|---:|---:|
| long | 1 | 2 |

| program | cytape |
|---|---:|
| long | 9 |

| program | cytape.function |
|---|---:|
| long | 9 |

| program | gradient | Jacobian-vector product |
|---|---:|---:|
| long | 9 | 9 |
| short | 9 | 9 |

| what | else |
|---|---|
| long | 7 |
"""
    after = with_measured(before, report)
    assert "| long | 2.00 | 30.0 |" in after
    assert "| long | 1.00, 5.00 |" in after
    assert "| long | 0.50 (6.00) |" in after
    assert "| long | 25.0 | 3.00 |\n| short | 4.00 | - |" in after
    assert "| long | 7 |" in after
