"""The README says what the comparison with other libraries has found."""

import json
from pathlib import Path

import pytest

from bench.peers_in_readme import with_measured

ROOT = Path(__file__).parents[2]
README, REPORT = ROOT / "README.md", ROOT / "docs" / "peers.json"


@pytest.mark.skipif(not REPORT.exists(), reason="the pages are not beside the tests")
def test_the_readme_has_the_numbers_that_were_measured():
    readme = README.read_text()
    assert with_measured(readme, json.loads(REPORT.read_text())) == readme


def test_other_numbers_are_put_in_their_places():
    def entry(measure, *seconds):
        names = ("cytape", "MyGrad", "cytape.function")
        return {"measure": measure, "name": "long", "first_call_s": dict.fromkeys(names, 3.0),
                "seconds": dict(zip(names, seconds, strict=True)),
                "ratios": dict(zip(names, seconds, strict=True))}

    report = {"results": [
        entry("gradient", 2.0, 30.0, 0.5), entry("jvp", 1.0, 4.0, 4.0), entry("hvp", 5.0, 6.0, 6.0),
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

| what | else |
|---|---|
| long | 7 |
"""
    after = with_measured(before, report)
    assert "| long | 2.00 | 30.0 |" in after
    assert "| long | 1.00, 5.00 |" in after
    assert "| long | 0.50 (6.00) |" in after
    assert "| long | 7 |" in after
