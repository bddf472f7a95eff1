"""Measurements of every op, and the page about them."""

import subprocess
import sys

import numpy as np
import pytest

import bench.ops.__main__ as op_prices
from bench.ops import report
from bench.ops.calls import Call, calls, named
from bench.ops.report import Price
from bench.timing import Effort
from tests.cases import each
from tests.ops import specs_calculus, specs_elementwise, specs_statistics

CALLS = {call.name: call for call in calls()}
OURS = [op_prices.EAGER, op_prices.COMPILED]
PRICES = [
    Price("tame", 10, 1e-6, {"cytape": 2e-6, "autograd": 9e-6}),
    Price("wild", 10, 1e-6, {"cytape": 7e-6}),
    Price("view", 10, 1e-7, {"cytape": 3e-6}, is_view=True)]


def function_of_numpy(name):
    function = np
    for part in name.partition(",")[0].split("."):
        function = getattr(function, part, None)
    return function


def test_every_function_with_a_record_is_measured():
    measured = list(map(function_of_numpy, CALLS))
    for specs in specs_elementwise, specs_calculus, specs_statistics:
        for spec in specs.SPECS:
            if spec.differentiable is not False and spec.ref is getattr(np, spec.op, None):
                assert spec.ref in measured


@each("name", ["exp", "clip", "max", "concatenate", "linalg.qr", "nansum"])
def test_function_is_measured(name):
    price = op_prices.price(CALLS[name], 10, Effort(1, 0), OURS)
    assert (price.name, price.size, set(price.added_s)) == (name, 10, set(OURS))
    assert price.forward_s > 0
    assert not price.is_view
    assert all(added >= 0 for added in price.added_s.values())


def test_view_is_known_as_one():
    assert op_prices.price(CALLS["transpose"], 10, Effort(1, 0), OURS).is_view


def test_integer_operands_are_not_differentiated():
    assert set(op_prices.price(CALLS["ldexp"], 10, Effort(1, 0), OURS).added_s) == set(OURS)


def test_calls_that_cannot_be_traced_are_left_out():
    price = op_prices.price(CALLS["trim_zeros"], 10, Effort(1, 0), OURS)
    assert set(price.added_s) == {op_prices.EAGER}


def test_another_gradient_is_an_error(monkeypatch):
    def wrong(*arguments):
        return lambda: (1.0, [np.ones(3)])

    monkeypatch.setitem(op_prices.GRADIENTS, op_prices.COMPILED, wrong)
    call = Call("square", named("square"), lambda size: [(3,)])
    with pytest.raises(AssertionError, match="cytape.function computes another gradient"):
        op_prices.price(call, 3, Effort(1, 0), OURS)


def test_page_has_summary_and_table(tmp_path):
    page = tmp_path / "page.md"
    report.write_markdown(page, PRICES, ["cytape", "autograd"], tmp_path / "page.svg")
    text = page.read_text()
    assert "](page.svg)" in text
    assert "| cytape | 10 | 2 | 4.50 | 50% | wild 7.00, tame 2.00 |" in text
    assert "| `view` | 100 ns | +3.00 us | - |" in text


@pytest.mark.exhaustive
def test_picture_is_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    for name in "first", "second":
        report.draw(tmp_path / name, PRICES, ["cytape", "autograd"])
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.exhaustive  # as `make bench-smoke` does
def test_smoke_run_measures_all(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "bench.ops", "--smoke", "--markdown", tmp_path / "page.md"],
        capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert all(f"| `{name}` |" in (tmp_path / "page.md").read_text() for name in CALLS)
