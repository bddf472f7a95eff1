"""Rows of optimizers: the smoke run."""

import pytest

from bench import optimizer_rows


def test_the_smoke_run_prints_all_rows(capsys, monkeypatch):
    for name, value in {"SIZE": 50, "TABLE": (100, 4)}.items():
        monkeypatch.setattr(optimizer_rows, name, value)
    assert not optimizer_rows.main(smoke=True)
    assert len(capsys.readouterr().out.splitlines()) == 6


@pytest.mark.parametrize("measured, missed", [(0.4, False), (0.6, True)])
def test_limits(measured, missed, capsys, monkeypatch):
    monkeypatch.setattr(optimizer_rows, "rows", lambda effort: [("a row", measured, 0.5, "x")])
    assert optimizer_rows.main() is missed
    assert ("MISSED" in capsys.readouterr().out) is missed
