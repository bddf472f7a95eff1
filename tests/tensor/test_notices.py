"""Warnings point at the user's line, however deep in the package they are issued."""

import inspect
import warnings

import pytest

import cytape
from cytape.tensor.notices import warn


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


def test_each_line_is_told_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("again")
        warn("again")
    assert len(caught) == 2
