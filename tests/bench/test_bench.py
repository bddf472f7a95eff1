import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cytape.core
from bench import core_rows, program_rows, report, timing
from bench.chains import PythonHost
from bench.report import Row
from bench.workloads import workloads
from cytape.core import reference

WORKLOADS = workloads(small=True)


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("bench")
    run = subprocess.run([sys.executable, "-m", "bench", "--smoke", "--output", folder],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout, folder


def test_smoke_run_writes_what_it_prints(smoke_run):
    printed, folder = smoke_run
    table = json.loads((folder / "table.json").read_text())
    assert table["environment"]["smoke"]
    assert len(table["rows"]) > 30
    for row in table["rows"]:
        assert row["value"] != 0
        assert f"  {row['name']}" in printed
    assert (folder / "table.png").stat().st_size > 10_000


def test_long_chains_end_well_and_tapes_leave_nothing(smoke_run):
    _, folder = smoke_run
    rows = {row["name"]: row for row in json.loads((folder / "table.json").read_text())["rows"]}
    for name in (
        "recorded and differentiated, or dropped: runs that end well",
        "bookkeeping per binary op, by tape.nbytes",
        "live objects, as a multiple of those before",
    ):
        assert rows[name]["verdict"] == report.PASSED, rows[name]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_gradient_of_workload_is_right(workload):
    program_rows.check(workload)


def test_a_wrong_gradient_is_not_timed(monkeypatch):
    gradients = program_rows.gradients
    monkeypatch.setattr(program_rows, "gradients",
                        lambda *arguments: [1.001 * g for g in gradients(*arguments)])
    with pytest.raises(AssertionError, match="differences"):
        program_rows.check(WORKLOADS[0])


@pytest.mark.parametrize("core", [cytape.core, reference])
def test_python_hosts_do_what_is_timed(core):
    core_rows.check(PythonHost(core))


def test_best_seconds_takes_the_shortest_run_of_each_program(monkeypatch):
    clock = iter([
        0, 0, 3, 1,  # the first program's turn ends at 1: one run of 3 seconds
        0, 0, 5, 0, 1, 5, 1,  # runs of 5 and of 4
    ])
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=clock.__next__))
    subjects = []
    programs = [timing.Program(subjects.append, lambda: "fresh")] * 2
    assert timing.best_seconds(programs, timing.Effort(1, 1)) == [3, 4]
    assert subjects == ["fresh"] * 3


@pytest.mark.parametrize(
    ("row", "target", "verdict"),
    [
        (Row("", "", 20.0, at_least=15), ">= 15", report.PASSED),
        (Row("", "", 14.9, at_least=15), ">= 15", report.FAILED),
        (Row("", "", 1.25, at_most=1.25), "<= 1.25", report.PASSED),
        (Row("", "", 1.26, at_most=1.25), "<= 1.25", report.FAILED),
        (Row("", "", np.nan, at_most=1.25), "<= 1.25", report.FAILED),
        (Row("", "", 3.0), "", report.NO_TARGET),
    ],
)
def test_verdict(row, target, verdict):
    assert (row.target, row.verdict) == (target, verdict)


def test_numbers_and_times_are_short():
    assert [report.format_number(x) for x in (0.1234, 12.34, 1234.5)] == ["0.12", "12.3", "1,234"]
    times = [report.format_seconds(x) for x in (2.0, 0.0123, 45e-6, 6.7e-9)]
    assert times == ["2.00 s", "12.3 ms", "45.0 us", "6.70 ns"]
