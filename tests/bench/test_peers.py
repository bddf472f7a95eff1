"""The comparison with other libraries, without any of them."""

import json
import subprocess
import sys

import numpy as np
import pytest

import cytape.numpy
from bench import peer_report, peers
from bench.peer_libraries import GRADIENT, HVP, JVP, LIBRARIES, Library, to_array
from bench.peer_report import Result
from bench.program_rows import forward, recorded, tensors
from bench.timing import Effort
from bench.workloads import Workload, forward_mode_workloads, more_workloads, workloads
from cytape.testing import check_grads
from tests.cases import each
from tests.tables import table

WORKLOADS = more_workloads(small=True)
ENVIRONMENT = {
    "date": "2025-01-02", "processor": "abacus", "system": "any", "one core": True, "rounds": 2,
    "seconds per round": 0.1, "smoke": False, "not installed": ["MyGrad"], "compiled": ["jax.jit"],
    "versions": {"Python": "3.99", "cytape": "0.0"}}
RESULTS = [
    Result(GRADIENT, "programs", "short", 1e-6, {"cytape": 4e-6, "JAX": 2e-4, "jax.jit": 3e-6},
           {"cytape": 1e-3, "JAX": 2.0, "jax.jit": 30.0}),
    Result(GRADIENT, "others", "long", 1.0, {"cytape": 2.5, "JAX": 2.0, "jax.jit": 1.5},
           {"cytape": 3.0, "JAX": 4.0, "jax.jit": 5.0}),
    Result(HVP, "products", "short", 1e-6, {"cytape": 6e-6, "jax.jit": 5e-6},
           {"cytape": 2e-3, "jax.jit": 40.0}, {"JAX": "TypeError: no"}),
]


@each("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_other_workloads_have_right_gradients(workload):
    _, value = recorded(workload, tensors(workload))
    np.testing.assert_array_equal(value.numpy(), forward(workload, np, workload.inputs))
    check_grads(lambda *inputs: forward(workload, cytape.numpy, inputs), workload.inputs, order=1)


def test_full_size_workloads_have_names_of_their_own():
    names = [workload.name for workload in workloads() + more_workloads()]
    assert len(set(names)) == len(names)


COMPARISONS_BY_NAME = {
    (measure.name, workload.name): (measure, workload)
    for measure, _, members in peers.comparisons(smoke=True) for workload in members}
COMPARISONS = [*COMPARISONS_BY_NAME]


@pytest.mark.parametrize("comparison", table(
    COMPARISONS[::3], [one for i, one in enumerate(COMPARISONS) if i % 3]), ids=" of ".join)
def test_cytape_takes_part_in_each_comparison(comparison):
    measure, workload = COMPARISONS_BY_NAME[comparison]
    result = peers.compare(measure, "group", workload, LIBRARIES[:1], Effort(1, 0))
    assert (result.measure, result.name) == (measure, workload.name)
    assert result.ratios == {"cytape": result.seconds["cytape"] / result.forward_s}
    assert not result.failures


@each(("value", "gradients", "message"), [
    (2.0, [[1.0, 2.0]], None), (2.1, [[1.0, 2.0]], "program: X's value is off by up to 0.1"),
    (2.0, [[1.0, 2.5]], "program: X's gradient 0 is off by up to 0.5"),
    (2.0, [[1.0, np.nan]], "gradient 0 is off by up to nan"),
    (2.0, [[1.0]], "gradient 0 is float64 of shape \\(1,\\), not float64 of shape \\(2,\\)"),
    (2.0, [], "program: X has \\['value'\\], not \\['value', 'gradient 0'\\]")])
def test_wrong_answers_are_refused(value, gradients, message):
    workload = Workload("program", None, [])
    answers = peers.arrays_by_name(GRADIENT, (np.array(value), [np.array(x) for x in gradients]))
    expected = {"value": np.array(2.0), "gradient 0": np.array([1.0, 2.0])}
    if message is None:
        peers.check(workload, "X", answers, expected)
    else:
        with pytest.raises(AssertionError, match=message):
            peers.check(workload, "X", answers, expected)


@pytest.mark.parametrize(("measure", "name"), [
    (GRADIENT, "gradient 0"), (JVP, "tangent"), (HVP, "product 0")])
def test_a_library_that_is_wrong_is_not_timed(monkeypatch, measure, name):
    right = LIBRARIES[0]

    def wrong(workload):
        def program():
            answer, derivatives = getattr(right, measure.name)(workload)()
            if isinstance(derivatives, list):
                return answer, [1.001 * to_array(x) for x in derivatives]
            return answer, 1.001 * to_array(derivatives)
        return program

    monkeypatch.setattr(peers, "best_seconds", None)
    with pytest.raises(AssertionError, match=f"X's {name} is off"):
        peers.compare(measure, "group", forward_mode_workloads(small=True)[0],
                      [right, Library("X", "x", wrong, wrong, wrong)], Effort(1, 0))


def test_a_library_without_a_derivative_is_left_out_and_one_that_raises_fails():
    def no_program(workload):
        raise ValueError("no such op:\na long story")

    right, *_ = LIBRARIES
    libraries = [right, Library("X", "x", right.gradient), Library("Y", "y", None, no_program)]
    workload = forward_mode_workloads(small=True)[0]
    result = peers.compare(JVP, "group", workload, libraries, Effort(1, 0))
    assert list(result.seconds) == list(result.first_call_s) == ["cytape"]
    assert result.failures == {"Y": "ValueError: no such op:"}
    assert result.cells(["cytape", "Y"]) == [result.ratios["cytape"], "fails"]


def test_cytape_may_not_fail():
    def no_program(workload):
        raise ValueError("no such op")

    with pytest.raises(ValueError, match="no such op"):
        peers.compare(GRADIENT, "group", WORKLOADS[0], [Library("cytape", "cytape", no_program)],
                      Effort(1, 0))


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
        "## Products",
        "| short | 1.00 us | **6.00** | fails | 5.00 |",
        "- JAX fails on short: TypeError: no",
        "| a Hessian-vector product | cytape | JAX | jax.jit |",
        "| short | 2.00 | fails | 40,000 |",
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
    assert [(x["measure"], x["name"]) for x in found["results"]] == [
        ("gradient", "short"), ("gradient", "long"), ("hvp", "short")]
    assert found["results"][1]["ratios"] == {"cytape": 2.5, "JAX": 2.0, "jax.jit": 1.5}
    assert found["results"][2]["failures"] == {"JAX": "TypeError: no"}

    pytest.importorskip("matplotlib")
    for name in "once.svg", "again.svg":
        peer_report.draw(tmp_path / name, ENVIRONMENT, RESULTS)
    picture = (tmp_path / "once.svg").read_text()
    assert picture == (tmp_path / "again.svg").read_text()
    for text in "jax.jit", "short", "a whole gradient", "a Hessian-vector product":
        assert text in picture


def test_the_legend_of_all_libraries_fits_into_the_picture():
    pytest.importorskip("matplotlib")
    everybody = dict.fromkeys(peer_report.STYLES, 1.0)
    result = Result(GRADIENT, "group", "a program", 1.0, everybody, everybody)
    figure = peer_report.picture(ENVIRONMENT, [result])
    figure.draw_without_rendering()
    legend, = figure.legends
    assert len(legend.get_texts()) == len(peer_report.STYLES)
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_every_library_has_a_dot_of_its_own():
    assert list(peer_report.STYLES) == [library.name for library in LIBRARIES]


@pytest.mark.exhaustive  # as `make bench-smoke` does
def test_smoke_run_needs_no_other_library(tmp_path):
    pytest.importorskip("matplotlib")
    options = [f"--{name}={tmp_path / name}" for name in ("json", "markdown", "plot")]
    run = subprocess.run([sys.executable, "-m", "bench.peers", "--smoke", *options],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "json").read_text())
    assert found["environment"]["versions"]["cytape"]
    assert len(found["results"]) == sum(
        len(members) for _, _, members in peers.comparisons(smoke=True))
    for result in found["results"]:
        assert result["name"] in run.stdout and result["ratios"]["cytape"] > 0
    assert "mean nothing" in (tmp_path / "markdown").read_text()
    assert (tmp_path / "plot").stat().st_size > 10_000
