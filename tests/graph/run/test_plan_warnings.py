"""Floating point warnings of ops that ran without NumPy's checks."""

import warnings

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.graph.run.plan_warnings import say
from cytape.ops import OPS
from tests.cases import each

ERRORS = dict.fromkeys(("divide", "over", "under", "invalid"), "warn")


@each("found, message", [
    (1, "divide by zero"), (2, "overflow"), (4, "underflow"), (8, "invalid value")])
def test_warnings_are_in_numpys_words(found, message):
    with pytest.warns(RuntimeWarning, match=f"^{message} encountered in log$"):
        say(OPS["Log"], found, ERRORS)
    with pytest.warns(RuntimeWarning, match=f"^{message} encountered in reduce$"):
        say(OPS["Sum"], found, ERRORS)
    with pytest.raises(FloatingPointError, match=message):
        say(OPS["Log"], found, dict.fromkeys(ERRORS, "raise"))


def test_ignored_warnings_are_ignored(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        say(OPS["Log"], 15, dict.fromkeys(ERRORS, "ignore"))
        say(OPS["Log"], 0, ERRORS)
    say(OPS["Log"], 1, dict.fromkeys(ERRORS, "print"))
    assert capsys.readouterr().err == "Warning: divide by zero encountered in log\n"


def test_functions_are_called_and_logs_written():
    calls = []

    class Log:
        write = calls.append

    for to, how in ((lambda *args: calls.append(args), "call"), (Log(), "log")):
        before = np.seterrcall(to)
        try:
            say(OPS["Exp"], 2, dict.fromkeys(ERRORS, how))
        finally:
            np.seterrcall(before)
    assert calls == [("overflow", 2), "Warning: overflow encountered in exp\n"]


def _nothing(h):
    return h - h


def runs_of(function, array, n_runs=3):
    """Say what each run warns of: of a program whose input is its own, and may be overwritten."""
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder("float64", array.shape)
        y = function(cnp.cumsum(x))
    session, found = cytape.Session(graph), []
    for _ in range(n_runs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session.run(y, {x: array})
        found.append([(str(each.message), each.filename) for each in caught])
    return found


@each("start, function, messages", [
    (0.0, lambda h: -cnp.log(h), ["divide by zero encountered in log"]),
    (-1.0, lambda h: cnp.square(cnp.sqrt(h)) * h, ["invalid value encountered in sqrt"]),
    (1e200, lambda h: cnp.log(_nothing(h * h)), [
        "overflow encountered in multiply", "invalid value encountered in subtract"]),
    (1e308, lambda h: cnp.sum(h * 1.0 + 0.0), ["overflow encountered in reduce"]),
])
def test_fused_ops_that_wrote_over_their_operands_say_the_same(start, function, messages):
    array = np.zeros(5000)
    array[0] = start
    first, *others = runs_of(function, array)
    assert [message for message, _ in first] == messages
    assert others == [first] * 2
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=messages[0]):
        runs_of(function, array)


@each("function", [
    lambda h: -h, cnp.absolute, lambda h: cnp.maximum(h, 0.0), lambda h: h > 0, cnp.isnan,
    cnp.sign, cnp.rint])  # fmt: skip
@each("dtype", ["float32", "float64"])
def test_loops_that_clear_the_flags_lose_no_warning(function, dtype):
    with cytape.Graph().as_default() as graph:
        x = cytape.placeholder(dtype, (5000,))
        y = function(cnp.log(x))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        cytape.Session(graph).run(y, {x: np.zeros(5000, dtype)})
