"""Loops over cases in a test: all are run, and a failure names its own."""

import numpy as np
import pytest

from tests.cases import each, grouped

SEEN = []


@each("x", [1, 2], ids=["one", "two"])
@each("y, z", [("a", "b"), ("c", "d")])
def product(x, y, z, place):
    SEEN.append((x, y, z, place))
    if place == "fails" and y == "c" or place == "fails once" and (x, y) == (2, "c"):
        raise ValueError("of c")
    if place == "skips" or place == "skips some" and x == 1:
        pytest.skip("not here")


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


@each(x=[1, 2], y="ab")
@each(z=[(3, 4)])
def combinations(x, y, z):
    SEEN.append((x, y, z))
    assert y == "a"


def test_keywords_are_combined():
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as caught:
        combinations()
    assert SEEN == [(x, y, (3, 4)) for x in (1, 2) for y in "ab"]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["in case z=(3, 4)", f"in case x={x}, y='b'"] for x in (1, 2)]


def test_all_cases_are_run():
    product(place="here")
    expected = [(x, *yz, "here") for x in (1, 2) for yz in (("a", "b"), ("c", "d"))]
    assert SEEN == expected


def test_a_failure_names_its_case():
    with pytest.raises(ValueError, match="of c") as caught:
        product(place="fails once")
    assert caught.value.__notes__ == ["in case y='c', z='d'", "in case x=two"]


def test_all_failures_are_reported():
    with pytest.raises(ExceptionGroup, match="2 of 2 cases failed") as caught:
        product(place="fails")
    assert [error.__notes__[-1] for error in caught.value.exceptions] == [
        "in case x=one", "in case x=two"]
    assert len(SEEN) == 4


def test_it_is_skipped_where_all_cases_are():
    product(place="skips some")
    assert len(SEEN) == 4
    with pytest.raises(pytest.skip.Exception, match="not here"):
        product(place="skips")


def test_parameters_must_be_those_of_the_test():
    with pytest.raises(AssertionError):
        each("w", [1])(lambda x: None)


@each("times", range(2))
def test_each_case_draws_the_same_numbers(times, rng):
    assert rng.normal() == np.random.default_rng(0).normal()


def by_group(x):
    SEEN.append(x)


def test_groups_are_tests_of_which_some_are_left_out():
    rows = [("a", "a1", (1,), False), ("b", "b2", (2,), False), ("a", "a3", (3,), True),
            ("a", "a4", (4,), False)]  # fmt: skip
    made = grouped("x", rows)(by_group)
    (mark,) = made.pytestmark
    names, parameters = mark.args
    assert [(p.id, [m.name for m in p.marks]) for p in parameters] == [
        ("a", []), ("b", []), ("a-rest", ["exhaustive"])]
    for parameter in parameters:
        made(**{names: parameter.values[0]})
    assert SEEN == [1, 4, 2, 3]
