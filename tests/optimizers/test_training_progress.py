"""Progress with and without tqdm."""

import io
import sys
import types

import numpy as np
import pytest

import cytape
from cytape.optimizers import progress


def test_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    file = io.StringIO()
    bar = progress(range(4), file=file, interval=0.0)
    for i in bar:
        bar.set_postfix(loss=cytape.constant(1 / (i + 1)), phase="a")
    assert file.getvalue().splitlines() == [
        "1/4  25 %  loss=1  phase=a", "2/4  50 %  loss=0.5  phase=a",
        "3/4  75 %  loss=0.333333  phase=a", "4/4  100 %  loss=0.25  phase=a"]


def test_lines_of_an_unknown_number(capsys):
    assert list(progress(iter("ab"), plain=True)) == ["a", "b"]
    assert capsys.readouterr().err == "2\n"
    assert list(progress([], plain=True)) == []
    assert list(progress(np.arange(2), total=2, plain=True)) == [0, 1]
    assert capsys.readouterr().err == "0\n2/2  100 %\n"


def test_tqdm_is_used_if_it_is_installed(monkeypatch):
    class Bar:
        def __init__(self, iterable, total, file):
            self.given = list(iterable), total, file

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    assert progress(range(3), file=sys.stdout).given == ([0, 1, 2], 3, sys.stdout)


def test_a_bar_of_tqdm():
    tqdm = pytest.importorskip("tqdm")
    file = io.StringIO()
    bar = progress(range(3), file=file)
    assert isinstance(bar, tqdm.tqdm)
    for _ in bar:
        bar.set_postfix(loss=1.0)
    assert "3/3" in file.getvalue()
