"""Calls that take the same branches: paths, conditions, groups, many paths, errors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.graph.batching.branch_paths import (
    MOST_PATHS,
    along,
    conditions,
    groups_of,
    manner_of,
    note_manner,
)
from cytape.graph.tracing.kept_traces import identity_of

X, Y = np.array([0.0, 2.0, 3.0, -1.0, 5.0]), np.array([1.0, 1.0, -2.0, 1.0, 0.5])


def branching(x, y):
    if x > 1:
        return x * y if y > 0 and x < 4 else x - y
    return cnp.sin(y)


def groups(function, *arrays):
    return groups_of(
        lambda path, i: conditions(path, function, *[x[i] for x in arrays]), len(arrays[0]))


def test_groups_take_the_same_branches():
    found = groups(branching, X, Y)
    assert {tuple([taken for _, taken in path]): tuple(calls) for path, calls in found} == {
        (False,): (0, 3), (True, True, True): (1,), (True, False): (2,), (True, True, False): (4,)}
    for path, calls in found:
        values = cytape.vmap(lambda x, y, path=path: along(path, branching, x, y))(
            X[calls], Y[calls])
        np.testing.assert_array_equal(
            values, [branching(x, y) for x, y in zip(X[calls], Y[calls], strict=True)])


def test_functions_without_branches_are_one_group():
    (path, calls), = groups(lambda x, y: x * y, X, Y)
    assert path == () and len(calls) == 5


def test_many_paths():
    def steps(x):
        while x > 1:
            x = x - 1
        return x

    assert len(groups(steps, np.arange(1.0, 6.0))) == 5
    assert groups(steps, np.arange(1.0, 2.0 + MOST_PATHS)) is None


def test_conditions_of_others_are_errors_as_before():
    path = next(path for path, _ in groups(branching, X, Y) if len(path) == 2)
    with pytest.raises(SymbolicTensorError, match="decides about a branch"):
        along(path[:1], cytape.vmap(branching), X, Y)
    with pytest.raises(SymbolicTensorError, match="another condition"):
        along(path[1:], cytape.vmap(branching), X, Y)
    with pytest.raises(SymbolicTensorError, match="float"):
        along((), cytape.vmap(float), X)
    with pytest.raises(SymbolicTensorError, match="where"):
        cytape.function(lambda x: x if x > 0 else -x)(cytape.constant(1.0))


def test_manners_are_kept_by_identity():
    identity, other = identity_of(branching), identity_of(groups)
    assert manner_of(None) == manner_of(identity) == "together"
    note_manner(None, "groups")
    note_manner(identity, "groups")
    assert manner_of(identity) == "groups" and manner_of(other) == manner_of(None) == "together"
