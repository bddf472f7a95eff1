import numpy as np
import pytest

import cytape
from cytape.ops.python.checkpoint_policy import NOTHING, Automatic, Policy, check_budget
from tests.cases import each


@each("policy, kept, but", [
    (None, ("nothing",), ()), ("dots", ("dots",), ()), ("a", ("a",), ()),
    (["a", "Exp"], ("a", "Exp"), ()), (("a", "-b"), ("a",), ("b",)), ({"b", "a"}, ("a", "b"), ()),
    ("-a", ("everything",), ("a",)), (["-a", "-dots"], ("everything",), ("a", "dots"))])
def test_names_of_policies(policy, kept, but):
    found = Policy(policy)
    assert (found.kept, found.but) == (kept, but)


def test_nothing():
    assert NOTHING.kept == ("nothing",)


@each("policy, error, said", [
    (3, TypeError, "a list of names.*got int: 3"), ([3], TypeError, "got list"),
    (np.sin, TypeError, "got ufunc"), ([], ValueError, "has no entries"),
    ("", ValueError, "has no entries"), (["a", "-"], ValueError, "has no entries"),
    (["nothing", "a"], ValueError, "nothing and something"),
    ("-nothing", ValueError, "nothing and something")])
def test_an_invalid_policy_is_refused_before_any_call(policy, error, said):
    with pytest.raises(error, match=said):
        cytape.checkpoint(np.sin, policy=policy)
    with pytest.raises(error, match=said):
        cytape.checkpoint(policy=policy)


@each("name, error", [
    (3, TypeError), (None, TypeError), ("", ValueError), ("-a", ValueError), ("dots", ValueError),
    ("nothing", ValueError), ("everything", ValueError)])
def test_names_that_values_cannot_have(name, error):
    with pytest.raises(error, match="name"):
        cytape.checkpoint_name(cytape.constant(1.0), name)


def test_a_name_changes_nothing():
    x = cytape.constant([1.0, 2.0])
    found = cytape.checkpoint_name({"x": x, "y": [np.ones(2), None, 3]}, "a")
    assert np.array_equal(found["x"], x) and found["y"][1:] == [None, 3]
    assert type(found["y"][0]) is np.ndarray
    assert cytape.grad(lambda x: cytape.checkpoint_name(x, "a") * 3.0)(1.0) == 3.0
    assert float(cytape.jvp(lambda x: cytape.checkpoint_name(x, "a") * 3.0, (1.0,), (2.0,))[1]) == 6
    assert np.array_equal(
        cytape.jacfwd(lambda x: cytape.checkpoint_name(x, "a"))(np.ones(3)), np.eye(3))


@each("budget", [None, 1, np.int64(3), 0.5, 1.0, np.float64(0.1)])
def test_budgets(budget):
    check_budget(budget)


@each("budget, error", [
    (True, TypeError), (np.True_, TypeError), ("1", TypeError), (0, ValueError), (-1, ValueError),
    (0.0, ValueError), (1.5, ValueError), (np.nan, ValueError)])
def test_invalid_budgets(budget, error):
    with pytest.raises(error, match="memory_budget must be"):
        check_budget(budget)


def test_as_little_as_takes_a_third_more_time():
    assert Automatic(None).memory_budget is None


@each(("policy", "ours"), [
    ("dots_saveable", "dots"), (["a", "-everything_saveable"], "everything"),
    ("dots_with_no_batch_dims_saveable", "dots"), ("nothing_saveable", "nothing")])
def test_names_of_another_library_are_told_apart(policy, ours):
    with pytest.raises(ValueError, match=f"unknown here: say '{ours}'"):
        Policy(policy)
