"""Objects that rules reach, and whether they were written to."""

from collections import deque

import numpy as np

from cytape.autodiff.contents import MOST_COMPARED, Contents, Scope, reached, sample_of
from cytape.ops.python.bound_names import Bindings
from tests.cases import each


def contents_of(rule):
    return Contents(rule, Bindings(rule, copies=False).found)


class Looked:
    @property
    def __dict__(self):
        raise AssertionError


def test_only_attributes_that_are_named_are_reached():
    class Owner:
        def __init__(self):
            self.read, self.other = np.ones(2), np.zeros(2)

    owner = Owner()

    def rule(x):
        return x * owner.read

    for scope, n in (Scope(rule), 1), (Scope(rule, every=True), 2):
        found = [x for _, x in reached([("", rule)], scope).values() if isinstance(x, np.ndarray)]
        assert len(found) == n


def test_objects_are_not_asked():
    owner = Looked()
    assert not list(contents_of(lambda x: x * owner.scale).changed())


@each("make", [list, deque, lambda x: dict(enumerate(x)), tuple])
def test_elements_of_containers_are_compared(make):
    kept = make([np.ones(2), 3.0])
    contents = contents_of(lambda x: x * kept[0])
    assert list(contents.changed()) == []
    kept[0][1] = 5.0
    assert list(contents.changed()) == ["kept"]


@each("make", [list, deque, set])
def test_elements_that_are_added_are_seen(make):
    kept = make([2.0, 3.0])
    contents = contents_of(lambda x: x * sum(kept))
    assert list(contents.changed()) == []
    (kept.add if make is set else kept.append)(5.0)
    assert list(contents.changed()) == ["kept"]


def test_functions_of_other_packages_are_not_looked_into():
    from numpy.linalg import norm

    assert contents_of(lambda x: norm(x)).are_empty()


@each("make", [np.ones, lambda n: np.ones((n, 2))[:, 0], lambda n: np.ones(n)[::-1]])
def test_a_sample_sees_writes_to_few_elements_of_large_arrays(make):
    n = MOST_COMPARED // 8
    for size in n // 2, 40 * n + 3:
        array = make(size)
        for write in (
                lambda x: x.__setitem__(-1, 2.0), lambda x: x.__setitem__(size // 2, 3.0),  # noqa: B023
                lambda x: x.__setitem__([0, size // 2], x[[size // 2, 0]]),  # noqa: B023
                lambda x: x.__setitem__(slice(None), x[::-1].copy()),
                lambda x: x.__setitem__(slice(None), np.arange(x.size) + np.arange(x.size) // 1024),
                lambda x: x.__setitem__(slice(None), x % 2), lambda x: np.subtract(1, x, x),
                lambda x: x.__imul__(-1), lambda x: x.__setitem__(slice(None), np.roll(x, 1024))):
            before = sample_of(array)
            write(array)
            assert sample_of(array) != before
