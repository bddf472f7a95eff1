"""Many small cases in one test: pytest takes longer to set up a test than most of them to run.

`each` and `grouped` stand where `pytest.mark.parametrize` would. All cases run. A failure names its
case in a note below the error; several failures are raised as a group. Fixtures are set up once for
all cases: a test that changes what a fixture made takes `pytest.mark.parametrize`.
"""

import copy
import functools
import inspect
import itertools
import reprlib
from contextlib import contextmanager

import pytest


@contextmanager
def case(name):
    """Name the case of an error inside the block: ``name()`` is called for an error only."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in case {name()}")
        raise


def each(names=(), values=(), /, *, ids=None, **tables):
    """Run a test for each of these values of its parameters, all in one test.

    Parameters are given by names and rows of values, as in ``each("x, y", rows)``, or as keywords
    with a table each, as in ``each(x=[1, 2], y="ab")``, for all combinations.
    """
    names = list(tables) or _split(names)
    values = list(itertools.product(*tables.values()) if tables else values)
    marked = [x for x in itertools.chain(values, *(values if tables else ()))
              if isinstance(x, type(pytest.param()))]
    assert not marked, "values with marks are for pytest.mark.parametrize"
    ids = list(map(ids, values)) if callable(ids) else ids and list(ids)
    if len(names) == 1 and not tables:
        rows = [(value,) for value in values]
    else:
        rows = [tuple(row) for row in values]
    cases = [(f"{names[0]}={ids[i]}" if ids else _name(names, row), row)
             for i, row in enumerate(rows)]  # fmt: skip
    return lambda test: _looped(test, names, lambda _: cases, ())


def grouped(names, rows):
    """Make a test per group of cases, and run it for each of them.

    Parameters
    ----------
    names : str
        Of the parameters.
    rows : iterable of (str, str or callable, tuple, bool)
        Of each case the group, the name or a function that makes it, the values and whether it is
        left to ``make test-all``: those cases of a group are a test of their own.
    """
    names, groups = _split(names), {}
    for group, name, values, is_left in rows:
        groups.setdefault((group, is_left), []).append((name, values))
    parametrize = pytest.mark.parametrize("cases", [
        pytest.param(cases, id=f"{group}-rest", marks=pytest.mark.exhaustive) if is_left
        else pytest.param(cases, id=group) for (group, is_left), cases in groups.items()
    ])  # fmt: skip
    return lambda test: parametrize(_looped(test, names, lambda given: given["cases"], ("cases",)))


def sampled(every, /, **tables):
    """Run a test for combinations of the rows of tables, and by default for one in `every` of them.

    Those are combinations in which the positions of the rows add up to a multiple of `every`. The
    others are a test for ``make test-all``.
    """
    return grouped(list(tables), [
        ("some", _name(tables, row), row, sum(positions) % every > 0)
        for positions, row in zip(
            itertools.product(*[range(len(table)) for table in tables.values()]),
            itertools.product(*tables.values()), strict=True)])


def _split(names):
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _name(names, row):
    def of(value):
        return getattr(value, "__name__", None) or reprlib.repr(value)

    return lambda: ", ".join(f"{n}={of(value)}" for n, value in zip(names, row, strict=True))


def _looped(test, names, cases_of, more):
    signature = inspect.signature(test)
    left = [parameter for name, parameter in signature.parameters.items() if name not in names]
    assert len(left) + len(names) == len(signature.parameters), f"of {names} some are not taken"
    assert not set(more) & signature.parameters.keys(), "grouped twice"

    @functools.wraps(test)
    def looped(**given):
        __tracebackhide__ = True
        cases = cases_of(given)
        fixtures = {name: value for name, value in given.items() if name not in more}
        skipped, failures = [], []
        for name, values in cases:
            own = dict(fixtures)
            if "rng" in own:
                own["rng"] = copy.deepcopy(own["rng"])  # each case draws the same numbers
            try:
                test(**own, **dict(zip(names, values, strict=True)))
            except pytest.skip.Exception as skip:
                skipped.append(skip)
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(f"in case {name() if callable(name) else name}")
                failures.append(error)
        if failures:
            raise failures[0] if len(failures) == 1 else BaseExceptionGroup(
                f"{len(failures)} of {len(cases)} cases failed", failures)
        if cases and len(skipped) == len(cases):
            raise skipped[0]

    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in more]
    looped.__signature__ = signature.replace(parameters=[
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in left] + added)
    return looped
