"""Progress of long computations."""

import sys
import types

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops.python import progress_reports
from cytape.ops.python.progress_reports import Progress, progress_of


@pytest.fixture
def calls(monkeypatch):
    """Return a list of the reports of a function, which is called at every step."""
    monkeypatch.setattr(progress_reports, "INTERVAL", 0.0)
    found = []

    class Calls(list):
        def __call__(self, done, total):
            found.append((done, total))

        def taken(self):
            taken, found[:] = list(found), []
            return taken

    return Calls()


def each(n, total="n"):
    return [(i + 1, n if total == "n" else total) for i in range(n)]


def test_reports_are_rare():
    found = []
    progress = Progress(lambda *report: found.append(report), 100_000)
    for _ in range(100_000):
        progress.step()
    assert found[-1] == (100_000, 100_000) and len(found) < 50


def test_the_end_is_reported_once():
    found = []
    progress = Progress(lambda *report: found.append(report), 2)
    progress.step()
    progress.step()
    progress.end()
    progress.finish()
    assert found == [(2, 2)]


@pytest.mark.parametrize("argument", [3, "bar", [print]])
def test_arguments_are_checked(argument):
    with pytest.raises(TypeError, match="progress must be a function"):
        progress_of(argument, None)
    with pytest.raises(TypeError, match="progress must be a function"):
        cytape.while_loop(lambda i: i < 2, lambda i: i + 1, [0], progress=argument)


def test_gradients(calls):
    x = cytape.constant(1.0)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x
        for _ in range(5):
            y = y * x
        unneeded = np.sin(x)
    assert float(tape.gradient(y, x, progress=calls)) == 6.0
    assert calls.taken() == [*each(5, 6), (6, 6)]
    assert float(tape.gradient(y, x, progress=False)) == 6.0 and calls.taken() == []
    del unneeded
    with cytape.profile() as p:
        tape.gradient(y, x, progress=calls)
    assert [row.name for row in p.rows if row.backward] == ["Multiply"]


def test_an_error_of_the_function_ends_the_gradient(calls):
    x = cytape.constant(1.0)
    with cytape.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tape.gradient(y, x, progress=stop)
    assert float(tape.gradient(y, x)) == 3.0


def loop(x, calls, maximum=None):
    return cytape.while_loop(
        lambda i, y: i < 4, lambda i, y: (i + 1, y * x), (0, x), maximum_iterations=maximum,
        progress=calls)[1]


@pytest.mark.parametrize("maximum", [None, 4, 9])
def test_eager_loops(calls, maximum):
    assert float(loop(cytape.constant(2.0), calls, maximum)) == 32.0
    assert calls.taken() == each(4, maximum)


@pytest.mark.parametrize("maximum", [None, 4, 9])
def test_traced_loops(calls, maximum):
    f = cytape.function(lambda x: loop(x, calls, maximum))
    for _ in range(3):
        assert float(f(cytape.constant(2.0))) == 32.0
        assert calls.taken() == each(4, maximum)


def test_gradients_of_traced_loops(calls):
    f = cytape.function(lambda x: loop(x, calls))
    for _ in range(3):
        assert cytape.grad(f)(2.0) == 5 * 2.0**4
        assert calls.taken()[:4] == each(4, None)
    assert cytape.hessian(f)(2.0) == 20 * 2.0**3
    assert cytape.jvp(f, (2.0,), (1.0,)) == (32.0, 80.0)


def test_loops_in_graphs(calls):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", ())
        y = loop(x, calls, 4)
    for _ in range(2):
        assert cytape.Session(graph).run(y, {x: 2.0}) == 32.0
        assert calls.taken() == each(4)


@pytest.mark.parametrize("wrap", [lambda f: f, cytape.function], ids=["eager", "traced"])
def test_scans(calls, wrap):
    x = cnp.array([1.0, 2.0, 3.0, 4.0])
    f = wrap(lambda x: cytape.scan(lambda y, e: y * e, x, progress=calls)[-1])
    for _ in range(2):
        assert float(f(x)) == 24.0
        assert calls.taken() == each(3)
    assert cytape.grad(f)(x).tolist() == [24.0, 12.0, 8.0, 6.0]


LOOPS = [
    lambda x, calls: cytape.scan(lambda y, e: y * e, cnp.stack([x] * 5), progress=calls)[-1],
    lambda x, calls: loop(x, calls, 4),
    lambda x, calls: cytape.checkpointed_scan(np.sin, x, 4, 2, progress=calls)]


@pytest.mark.parametrize("f", LOOPS, ids=["scan", "while_loop", "checkpointed_scan"])
@pytest.mark.parametrize("wrap", [lambda f: f, cytape.function], ids=["eager", "traced"])
def test_steps_of_all_members_of_a_batch_are_counted(calls, f, wrap):
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = wrap(cytape.vmap(lambda x: f(x, calls)))
    elements = wrap(cytape.vmap(cytape.vmap(lambda x: f(x, calls))))
    expected = [f(row, None) for row in x]
    for _ in range(2):
        np.testing.assert_allclose(rows(x), expected)
        assert calls.taken() == each(12)
        np.testing.assert_allclose(elements(x), expected)
        assert calls.taken() == each(24)
    cytape.vmap(lambda x: f(x, calls), chunk_size=2)(x)
    assert calls.taken() == [*each(8), *each(4)]


@pytest.mark.parametrize("wrap", [lambda f: f, cytape.function], ids=["eager", "traced"])
def test_checkpointed_scans(calls, wrap):
    f = wrap(lambda x: cytape.checkpointed_scan(np.sin, x, 6, 2, progress=calls))
    plain = lambda x: np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(x))))))  # noqa: E731
    assert float(f(cytape.constant(1.0))) == float(plain(1.0))
    assert calls.taken() == each(6)
    assert cytape.grad(f)(1.0) == pytest.approx(cytape.grad(plain)(1.0))
    found = calls.taken()
    assert found[:6] == each(6) and found[-1] == (6, 6)
    if wrap is not cytape.function:
        assert found[6:] == each(6)[1:]


def test_lines_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress_reports, "INTERVAL", 0.0)
    loop(cytape.constant(2.0), True, 4)
    assert capsys.readouterr().err == "4/4  100 %\n"
    monkeypatch.setattr(progress_reports, "LINE_INTERVAL", 0.0)
    loop(cytape.constant(2.0), True)
    assert capsys.readouterr().err.split() == ["1", "2", "3", "4"]


def test_a_bar(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total):
            self.total, self.n, self.is_open = total, 0, True
            bars.append(self)

        def update(self, n):
            self.n += n

        def close(self):
            self.is_open = False

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(progress_reports, "INTERVAL", 0.0)
    for wrap in (lambda f: f, cytape.function):
        wrap(lambda x: loop(x, True))(cytape.constant(2.0))
        bar = bars.pop()
        assert (bar.n, bar.total, bar.is_open) == (4, None, False)
    assert not bars


def test_tqdms_bar(capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    loop(cytape.constant(2.0), True, 4)
    assert "4/4" in capsys.readouterr().err
