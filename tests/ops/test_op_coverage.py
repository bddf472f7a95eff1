"""The page of which functions have derivatives: it is of all names, and says what is so."""

import numpy as np
import pytest

from tests.ops import op_coverage
from tests.ops.op_coverage import (
    COLUMNS,
    PAGE,
    cells_of,
    function_of,
    holds,
    measured,
    page_of,
    peers,
    records_of,
    unexplained,
)
from tests.ops.op_specs import OpSpec, case
from tests.tables import table

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="tests away from the source tree")


def test_all_functions_are_there_by_their_names():
    assert len(peers()) == 268
    for name in peers():
        assert callable(function_of(name))
        assert records_of(name), f"no record of {name} among tests/ops/specs_*.py"


def test_the_page_is_up_to_date():
    page = PAGE.read_text()
    cells = cells_of(page)
    assert page == page_of(cells), "run `python -m tests.ops.op_coverage`"
    assert unexplained(cells) == []


@pytest.mark.parametrize("part", table([0], [1, 2, 3]))
def test_numbers_on_the_page_were_measured(part):
    cells = cells_of(PAGE.read_text())
    names = [*peers()][part::4]
    assert {name: measured(name) for name in names} == {name: cells[name] for name in names}


def test_wrong_derivatives_are_found():
    right = OpSpec("right", lambda x: x**2, lambda x: x**2, [case((3,))])
    wrong = OpSpec("wrong", lambda x: x**2, lambda x: x**3, [case((3,))])
    fails = OpSpec("fails", lambda x: np.asarray(x), np.asarray, [case((3,))])
    for column, measure in op_coverage.MEASURES.items():
        assert holds(measure, right)
        assert not holds(measure, fails)
        if column in ("reverse", "forward"):
            assert not holds(measure, wrong)


def test_exceptions_need_reasons():
    cells = cells_of(PAGE.read_text())
    cells["numpy.sin"] = [False] + cells["numpy.sin"][1:]
    assert unexplained(cells) == [("numpy.sin", COLUMNS[0])]
