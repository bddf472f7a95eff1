"""The comparison with other libraries, without any of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import cytape.numpy
from bench import peer_report, peers
from bench.peer_libraries import LIBRARIES, Library, to_array
from bench.peer_report import Result
from bench.program_rows import forward, recorded, tensors
from bench.timing import Effort
from bench.workloads import Workload, more_workloads, workloads
from cytape.testing import check_grads

WORKLOADS = more_workloads(small=True)
ENVIRONMENT = {
    "date": "2025-01-02", "processor": "abacus", "system": "any", "one core": True, "rounds": 2,
    "seconds per round": 0.1, "smoke": False, "not installed": ["MyGrad"], "compiled": ["jax.jit"],
    "versions": {"Python": "3.99", "cytape": "0.0"},
}
RESULTS = [
    Result("programs", "short", 1e-6, {"cytape": 4e-6, "JAX": 2e-4, "jax.jit": 3e-6},
           {"cytape": 1e-3, "JAX": 2.0, "jax.jit": 30.0}),
    Result("others", "long", 1.0, {"cytape": 2.5, "JAX": 2.0, "jax.jit": 1.5},
           {"cytape": 3.0, "JAX": 4.0, "jax.jit": 5.0}),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_other_workloads_have_right_gradients(workload):
    _, value = recorded(workload, tensors(workload))
    np.testing.assert_array_equal(value.numpy(), forward(workload, np, workload.inputs))
    check_grads(lambda *inputs: forward(workload, cytape.numpy, inputs), workload.inputs, order=1)


def test_full_size_workloads_have_names_of_their_own():
    names = [workload.name for workload in workloads() + more_workloads()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("workload", workloads(small=True) + WORKLOADS,
                         ids=lambda workload: workload.name)
def test_cytape_takes_part_in_each_comparison(workload):
    result = peers.compare("group", workload, LIBRARIES[:1], Effort(1, 0))
    assert result.name == workload.name
    assert result.ratios == {"cytape": result.gradient_s["cytape"] / result.forward_s}


@pytest.mark.parametrize(("answers", "message"), [
    ([2.0, [1.0, 2.0]], None),
    ([2.1, [1.0, 2.0]], "program: X's value is off by up to 0.1"),
    ([2.0, [1.0, 2.5]], "program: X's gradient 0 is off by up to 0.5"),
    ([2.0, [1.0, np.nan]], "gradient 0 is off by up to nan"),
    ([2.0, [1.0]], "gradient 0 is float64 of shape \\(1,\\), not float64 of shape \\(2,\\)"),
])
def test_wrong_answers_are_refused(answers, message):
    workload = Workload("program", None, [])
    answers = [np.array(x) for x in answers]
    expected = [np.array(2.0), np.array([1.0, 2.0])]
    if message is None:
        peers.check(workload, "X", answers, expected)
    else:
        with pytest.raises(AssertionError, match=message):
            peers.check(workload, "X", answers, expected)


def test_a_library_that_is_wrong_is_not_timed(monkeypatch):
    right = LIBRARIES[0]

    def wrong_gradient(workload):
        def gradient():
            value, gradients = right.gradient(workload)()
            return value, [1.001 * to_array(x) for x in gradients]
        return gradient

    monkeypatch.setattr(peers, "best_seconds", None)
    wrong = Library("X", wrong_gradient, "x")
    with pytest.raises(AssertionError, match="X's gradient 0 is off"):
        peers.compare("group", WORKLOADS[0], [right, wrong], Effort(1, 0))


def test_page_has_ratios_with_the_best_eager_one_in_bold(tmp_path):
    peer_report.write_markdown(
        tmp_path / "page.md", ENVIRONMENT, RESULTS, {"cytape": 0.75}, tmp_path / "dots.svg")
    page = (tmp_path / "page.md").read_text()
    for line in (
        "## Programs",
        "| program | NumPy's forward pass | cytape | JAX | jax.jit |",
        "| short | 1.00 us | **4.00** | 200 | 3.00 |",
        "| long | 1.00 s | 2.50 | **2.00** | 1.50 |",
        "| short | 1.00 | 2,000 | 30,000 |",
        "![the table as a picture](dots.svg)",
        "- Python 3.99, cytape 0.0.",
        "- Not installed: MyGrad.",
    ):
        assert line in page.splitlines()
    assert "mean nothing" not in page


def test_json_and_picture_have_every_result(tmp_path):
    peer_report.write_json(tmp_path / "table.json", ENVIRONMENT, RESULTS, {"cytape": 0.75})
    found = json.loads((tmp_path / "table.json").read_text())
    assert found["environment"] == ENVIRONMENT
    assert [x["name"] for x in found["results"]] == ["short", "long"]
    assert found["results"][1]["ratios"] == {"cytape": 2.5, "JAX": 2.0, "jax.jit": 1.5}

    pytest.importorskip("matplotlib")
    for name in "once.svg", "again.svg":
        peer_report.draw(tmp_path / name, ENVIRONMENT, RESULTS)
    picture = (tmp_path / "once.svg").read_text()
    assert picture == (tmp_path / "again.svg").read_text()
    assert "jax.jit" in picture and "short" in picture


def test_every_library_has_a_dot_of_its_own():
    assert list(peer_report.STYLES) == [library.name for library in LIBRARIES]


def test_smoke_run_needs_no_other_library(tmp_path):
    pytest.importorskip("matplotlib")
    options = [f"--{name}={tmp_path / name}" for name in ("json", "markdown", "plot")]
    run = subprocess.run([sys.executable, "-m", "bench.peers", "--smoke", *options],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "json").read_text())
    assert found["environment"]["versions"]["cytape"]
    assert len(found["results"]) == len(workloads(small=True) + WORKLOADS)
    for result in found["results"]:
        assert result["name"] in run.stdout and result["ratios"]["cytape"] > 0
    assert "mean nothing" in (tmp_path / "markdown").read_text()
    assert (tmp_path / "plot").stat().st_size > 10_000
