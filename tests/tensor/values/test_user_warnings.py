"""Warnings point at the user's line, however deep in the package they are issued."""

import inspect
import math
import pickle
import re
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import cytape
from cytape.errors import DetachedError, SymbolicTensorError
from cytape.tensor.values.user_warnings import NUMPY, warn, warn_of_line, warning_user
from tests.cases import each


class Notice(UserWarning):
    pass


def test_the_caller_is_named_where_nothing_of_the_package_is_between():
    with pytest.warns(Notice, match="look here") as caught:
        line = inspect.currentframe().f_lineno + 1
        warn("look here", Notice)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_the_user_s_line_is_named_from_within_the_package():
    with pytest.warns(UserWarning, match="does not depend on") as caught:
        line = inspect.currentframe().f_lineno + 1
        cytape.hessian(lambda x: 3.0)(1.0)  # some ten calls deep
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_a_warning_of_another_thread_keeps_its_line():
    def elsewhere():
        warnings.warn("of the thread", Notice, stacklevel=1)

    def function():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        warnings.warn("of the call", Notice, stacklevel=1)

    with pytest.warns(Notice) as caught:
        line = inspect.currentframe().f_lineno + 1
        warning_user(function)
    found = {str(each.message): each.lineno for each in caught}
    assert found == {"of the thread": elsewhere.__code__.co_firstlineno + 1, "of the call": line}


@each("call, x", [
    (np.nanmax, [np.nan]), (np.nanmean, [np.nan]), (np.nanvar, [np.nan]), (np.cov, [1.0]),
    *[(function, []) for function in (
        np.mean, np.var, np.std, np.median, np.average, np.nanmean, np.nanstd, np.cov)],
    (cytape.grad(lambda x: np.mean(x[1:])), [1.0]), (cytape.function(np.mean), []),
    (cytape.function(lambda x: x.var(ddof=1)), [1.0]), (np.nanmedian, [np.nan]),
    (lambda x: np.polyfit(x, [2.0, 3.0], 2), [1.0, 1.0]),
    (lambda x: np.fft.fftn(x, s=(2, 3)), np.ones((2, 3))),
    (lambda x: np.fft.fftn(x, s=(2, None), axes=(0, 1)), np.ones((2, 3))),
    (lambda x: cytape.numpy.random.random_integers(5, size=x.shape), [1.0])])
def test_warnings_of_numpy_s_name_the_user_s_line(call, x):
    with pytest.warns() as caught:
        call(cytape.constant(x))
    assert {found.filename for found in caught} == {__file__}


def test_each_line_is_told_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("again")
        warn("again")
    assert len(caught) == 2


def test_a_line_that_ran_before_is_warned_of_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for line in (7, 7, 8):
            warn_of_line("model.py", line, "lost", RuntimeWarning)
    assert [(w.filename, w.lineno, w.category) for w in caught] == [
        ("model.py", 7, RuntimeWarning), ("model.py", 8, RuntimeWarning)]


def test_the_user_s_line_is_named_where_numpy_is_between():
    names = {}
    exec(compile("def call(f, *args): return f(*args)", NUMPY + "lib.py", "exec"), names)
    with pytest.warns(Notice) as caught:
        line = inspect.currentframe().f_lineno + 1
        names["call"](warn, "look here", Notice)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
    with cytape.Graph().as_default() as graph:
        x = graph.placeholder("float64", ())
        line = inspect.currentframe().f_lineno + 1
        names["call"](cytape.numpy.sin, x)
        with pytest.raises(SymbolicTensorError, match=f"{re.escape(__file__)}, line {line + 2}"):
            names["call"](float, x)
    assert graph.location_of(1)[:2] == (__file__, line)


@each(("lose", "words"), [
    (lambda x: float(x[0]), r"float\(\) in .*\n.*math module"),
    (lambda x: np.zeros(3).dot(x), r"NumPy, which asks.*\n.*not a method of an array.*\n"),
    (lambda x: np.array([x[0], x[1]]), r"NumPy, which asks.*\nWrite cytape\.numpy\.array\("),
    (lambda x: np.testing.assert_allclose(x, 0.0), r"by numpy\.testing\.assert_allclose, which"),
    (lambda x: np.fill_diagonal(np.eye(3), x), r"numpy\.fill_diagonal.*\n.*cytape\.numpy\.zeros"),
    (lambda x: np.full(3, x), r"numpy\.full, .*\n.*cytape\.numpy\.full"),
    (lambda x: np.vectorize(math.exp)(x), r"numpy\.vectorize.*\n.*cytape\.vmap"),
    (pickle.dumps, r"pickle or copy.*\n.*tensor\.copy\(\)")])
def test_the_error_is_a_few_lines_of_what_was_passed_and_what_to_do(lose, words):
    x = cytape.constant([1.0, 2.0, 3.0])
    with cytape.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(DetachedError, match=words) as caught:
            lose(x)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 4
    assert "(shape (" in lines[0]
    assert lines[-1].startswith("If the gradient should stop here, say tensor.numpy()")


def in_package(name, source):
    """Return the function `call` of a module of an installed package, compiled from source."""
    names = {"__name__": f"{name}.core"}
    exec(compile(source, f"/usr/lib/python3/site-packages/{name}/core.py", "exec"), names)
    return names["call"]


@each("name, advice", [
    ("pandas", "by pandas, which takes plain arrays and numbers, .*tensor @ frame"),
    ("xarray", "by xarray.*DataArray.data"), ("matplotlib", "by matplotlib.*Plot tensor.numpy"),
    ("torch", "by torch.*cytape.custom_gradient"), ("astropy", r"by float\(\) .*print with f"),
])
def test_the_user_s_line_is_named_where_other_packages_are_between(name, advice):
    call = in_package(name, "def call(x): return float(x)")
    place = rf"{advice[:3]}.* in {re.escape(__file__)}, line (\d+) \(in .*{name}/core.py, line 1\)"
    with cytape.GradientTape() as tape:
        x = cytape.constant(1.0)
        tape.watch(x)
        with pytest.raises(DetachedError, match=f"(?s){advice}") as error:
            call(x)
    line = int(re.search(place, str(error.value))[1])
    assert line == inspect.currentframe().f_lineno - 2
    graph = cytape.Graph()
    with graph.as_default(), pytest.raises(SymbolicTensorError, match=f"(?s){advice}"):
        call(graph.placeholder("float64", ()))


def test_the_line_of_a_notebook_is_that_of_its_cell(monkeypatch):
    shell = SimpleNamespace(compile=SimpleNamespace(
        format_code_name=lambda file: ("Cell", "In[5]") if file == "/tmp/kernel/17.py" else None))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(DetachedError, match=f"in {__file__}, line "):
        cytape.grad(lambda x: float(x))(1.0)
    program = compile("cytape.grad(lambda x: float(x))(1.0)", "/tmp/kernel/17.py", "exec")
    with pytest.raises(DetachedError, match=r"in In\[5\], line 1: its gradient"):
        exec(program, {"cytape": cytape})
    with cytape.profile() as p:
        exec(compile("cytape.numpy.sin(x)", "/tmp/kernel/17.py", "exec"),
             {"cytape": cytape, "x": cytape.constant(1.0)})
    assert "In[5]:1" in str(p)
