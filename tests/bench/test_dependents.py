"""The comparison of test suites of dependents: printed numbers, rows, reasons."""

import sys

import pytest

from bench.dependents import __main__ as dependents
from tests.cases import each


@each("a, b, same", [
    ("loss 1.0000001 after 3 steps", "loss 1.0 after 3 steps", True),
    ("array(2.0)", "np.float64(2.0)", True), ("[1e-9, nan]", "[2e-9, nan]", True),
    ("node_7 -> 1.0", "node_8 -> 1.0", True), ("1.0 2.0", "1.0", False), ("1.001", "1.0", False)])
def test_printed_numbers_may_differ_in_the_last_digits(a, b, same):
    assert dependents.same_output(a, b) is same


def result(outcome="passed", seconds=1.0, traced=True, output=""):
    return {"outcome": outcome, "seconds": seconds, "traced": traced, "output": output,
            "error": outcome}


@pytest.fixture
def suites(monkeypatch, tmp_path):
    runs = {
        "autograd": [{"a": result(), "b": result(), "c": result("failed"), "d": result(),
                      "e": result(traced=False), "f": result(output="1.0")}] * 2,
        "cytape": [{"a": result(seconds=s), "b": result("failed"), "d": result(seconds=0.1),
                    "e": result(), "f": result(output="2.0")} for s in (0.5, 0.3)]}
    counts = dict.fromkeys(runs, 0)

    def run(suite, library, folder):
        counts[library] += 1
        return runs[library][(counts[library] - 1) % 2]

    monkeypatch.setattr(dependents, "run", run)
    monkeypatch.setattr(dependents, "sources_of", lambda release: (tmp_path, "0"))
    monkeypatch.setattr(dependents, "make_environment", lambda library: None)
    monkeypatch.setattr(dependents, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(dependents, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(dependents, "SUITES", [dependents.Suite("x", "x==1.0", [])])
    return tmp_path


def test_the_smaller_time_of_tests_that_pass_on_both_and_trace_counts(suites):
    row = dependents.compared(dependents.SUITES[0], once=False)
    assert (row["tests"], row["autograd"], row["both"], row["traced"]) == (6, 5, 3, 2)
    assert row["seconds"] == [2.0, pytest.approx(0.4)]
    assert row["programs"] == {}
    assert set(row["autograd_only"]) == {"b", "f"}
    assert "| x 1.0 | 5 | 3 | 2.00 | 0.40 | 0.20 |" in dependents.table([row])


def test_programs_have_rows_of_their_own(suites):
    row = dependents.compared(dependents.SUITES[0]._replace(programs=True), once=True)
    assert row["programs"] == {"a": [1.0, 0.5], "d": [1.0, 0.1]}
    table = dependents.table([row])
    assert "\n\n| example |" in table and "| a | 1000.0 | 500.0 | 0.50 |" in table
    assert table.endswith("\nThe median ratio of all rows is 0.30.\n")


def test_a_suite_replaces_its_row_in_the_page_and_tests_need_reasons(suites, monkeypatch):
    page = suites / "page.md"
    page.write_text(f"before\n{dependents.BEGIN}old\n{dependents.END}after\n")
    monkeypatch.setattr(sys, "argv", ["dependents"])
    with pytest.raises(SystemExit, match="x: b: failed"):
        dependents.main()
    dependents.SUITES.insert(0, dependents.Suite("y", "y==2.0", []))
    dependents.write({
        **dependents.compared(dependents.SUITES[1], once=True), "suite": "y", "release": "y==2.0"})
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert 0 < text.index("| y 2.0 |") < text.index("| x 1.0 |")
