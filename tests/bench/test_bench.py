import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cytape.core
from bench import checkpoint_rows, core_rows, forward_mode_rows, program_rows, report, timing
from bench.chains import PythonHost
from bench.report import Row
from bench.workloads import forward_mode_workloads, workloads
from cytape.core import reference
from tests.cases import each, sampled
from tests.tables import table

WORKLOADS = workloads(small=True)
FORWARD_MODE_WORKLOADS = forward_mode_workloads(small=True)


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("bench")
    run = subprocess.run([sys.executable, "-m", "bench", "--smoke", "--output", folder],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout, folder


MAY_BE_NOTHING = (  # a plan is kept to the byte, and a short chain fits into what the heap has free
    "peak of any of three runs, off the planned by",
    "bookkeeping per binary op, by resident memory",
)


@pytest.mark.exhaustive  # as `make bench-smoke` does
def test_smoke_run_writes_what_it_prints(smoke_run):
    printed, folder = smoke_run
    table = json.loads((folder / "table.json").read_text())
    assert table["environment"]["smoke"]
    assert len(table["rows"]) > 30
    for row in table["rows"]:
        assert row["value"] != 0 or row["name"].endswith(MAY_BE_NOTHING)
        assert f"  {row['name']}" in printed
    assert (folder / "table.png").stat().st_size > 10_000


@pytest.mark.exhaustive
def test_long_chains_end_well_and_tapes_leave_nothing(smoke_run):
    _, folder = smoke_run
    rows = {row["name"]: row for row in json.loads((folder / "table.json").read_text())["rows"]}
    for name in (
        "recorded and differentiated, or dropped: runs that end well",
        "bookkeeping per binary op, by tape.nbytes",
        "live objects, as a multiple of those before",
    ):
        assert rows[name]["verdict"] == report.PASSED, rows[name]


@each("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_gradient_of_workload_is_right(workload):
    program_rows.check(workload)


def test_a_wrong_gradient_is_not_timed(monkeypatch):
    gradients = program_rows.gradients
    monkeypatch.setattr(program_rows, "gradients",
                        lambda *arguments: [1.001 * g for g in gradients(*arguments)])
    with pytest.raises(AssertionError, match="differences"):
        program_rows.check(WORKLOADS[0])


@each("workload", FORWARD_MODE_WORKLOADS, ids=lambda workload: workload.name)
def test_products_of_forward_mode_are_right(workload):
    forward_mode_rows.check(workload)


@pytest.mark.parametrize(("function", "message"), [("jvp", "gradients"), ("hvp", "differences")])
def test_a_wrong_product_is_not_timed(monkeypatch, function, message):
    right = getattr(forward_mode_rows, function)

    def wrong(*arguments, **options):
        answer, product = right(*arguments, **options)
        return answer, [1.001 * p for p in product] if function == "hvp" else 1.001 * product

    monkeypatch.setattr(forward_mode_rows, function, wrong)
    monkeypatch.setattr(forward_mode_rows, "best_seconds", None)
    with pytest.raises(AssertionError, match=f"against {message}"):
        list(forward_mode_rows.forward_mode_rows(smoke=True))


def test_forward_mode_has_a_target_for_each_of_its_programs():
    full_size = forward_mode_workloads()
    assert len(full_size) == 6
    assert all(workload.hvp_at_most for workload in full_size)
    assert sum(workload.batch_at_most is not None for workload in full_size) == 3


def test_rows_of_forward_mode_have_the_targets_of_the_workloads(monkeypatch):
    monkeypatch.setattr(forward_mode_rows, "best_seconds", lambda programs, effort: [2.0, 3.0])
    rows = list(forward_mode_rows.forward_mode_rows(smoke=True))
    assert {row.value for row in rows} == {1.5}
    assert [row.at_most for row in rows] == [
        target
        for name in ("jvp_at_most", "hvp_at_most", "batch_at_most")
        for workload in FORWARD_MODE_WORKLOADS
        if (target := getattr(workload, name)) is not None
    ]


def test_tangents_are_the_same_each_time_and_like_the_inputs():
    (workload,) = (w for w in WORKLOADS if w.name.startswith("MLP"))
    once, again = workload.tangents(), workload.tangents()
    batch = workload.tangents(16)
    for x, t, same, many in zip(workload.inputs, once, again, batch, strict=True):
        np.testing.assert_array_equal(t, same)
        assert (t.shape, t.dtype, many.shape) == (x.shape, x.dtype, (16, *x.shape))


@each("core", [cytape.core, reference])
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


@each(("row", "target", "verdict"), [
    (Row("", "", 20.0, at_least=15), ">= 15", report.PASSED),
    (Row("", "", 14.9, at_least=15), ">= 15", report.FAILED),
    (Row("", "", 1.25, at_most=1.25), "<= 1.25", report.PASSED),
    (Row("", "", 1.26, at_most=1.25), "<= 1.25", report.FAILED),
    (Row("", "", np.nan, at_most=1.25), "<= 1.25", report.FAILED),
    (Row("", "", 3.0), "", report.NO_TARGET)])
def test_verdict(row, target, verdict):
    assert (row.target, row.verdict) == (target, verdict)


def test_numbers_and_times_are_short():
    assert [report.format_number(x) for x in (0.1234, 12.34, 1234.5)] == ["0.12", "12.3", "1,234"]
    times = [report.format_seconds(x) for x in (2.0, 0.0123, 45e-6, 6.7e-9)]
    assert times == ["2.00 s", "12.3 ms", "45.0 us", "6.70 ns"]


@each(
    "network", [checkpoint_rows.mlp, checkpoint_rows.residual_network,
                lambda depth: checkpoint_rows.attention_network(depth, 80, 32)])
def test_every_run_takes_what_was_planned(network):
    row = checkpoint_rows.row_of_agreement("a network", network(12))
    assert row.verdict == report.PASSED


@pytest.mark.parametrize("depths", table([[16, 64]], [[16, 64, 256]]))
@sampled(2, network=[checkpoint_rows.mlp, checkpoint_rows.residual_network],
         checkpoints=["memory", "auto"])
def test_memory_of_activations_grows_as_the_root_of_the_depth(depths, network, checkpoints):
    sizes = [checkpoint_rows.activation_bytes(*network(depth), checkpoints) for depth in depths]
    assert checkpoint_rows.slope(depths, sizes) <= 0.55


def test_memory_of_activations_without_checkpoints_grows_as_the_depth():
    assert checkpoint_rows.slope(
        [16, 64], [checkpoint_rows.activation_bytes(*checkpoint_rows.mlp(depth), None)
                   for depth in (16, 64)]) > 0.9
