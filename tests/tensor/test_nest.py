"""Structures: flatten, pack, map, compare."""

import time
from collections import Counter, OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cytape.tensor import nest

Pair = namedtuple("Pair", "first second")

LEAVES = st.one_of(st.integers(), st.none(), st.text(max_size=2))
STRUCTURES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.tuples(children, children).map(lambda pair: Pair(*pair)),
        st.dictionaries(st.text(max_size=2), children, max_size=3),
    ),
    max_leaves=12,
)


@given(STRUCTURES)
def test_packing_what_was_flattened_gives_the_structure_back(structure):
    packed = nest.pack_sequence_as(structure, nest.flatten(structure))
    assert packed == structure
    assert type(packed) is type(structure)
    nest.assert_same_structure(structure, packed)


@given(STRUCTURES)
def test_map_structure_visits_every_leaf_once(structure):
    mapped = nest.map_structure(lambda leaf: [leaf], structure)
    assert nest.flatten(mapped) == nest.flatten(structure)


@pytest.mark.parametrize("leaf", [None, 3, "abc", b"abc", np.arange(3)])
def test_everything_else_is_a_leaf(leaf):
    assert nest.flatten(leaf)[0] is leaf
    assert nest.pack_sequence_as(leaf, ["new"]) == "new"


def test_empty_structures_have_no_leaves():
    for empty in ([], (), {}, [[], ({},)]):
        assert nest.flatten(empty) == []
        assert nest.pack_sequence_as(empty, []) == empty


def test_dicts_are_flattened_by_sorted_key_and_packed_in_their_own_order():
    structure = {"b": 1, "a": 2}
    assert nest.flatten(structure) == [2, 1]
    assert list(nest.pack_sequence_as(structure, ["x", "y"]).items()) == [("b", "y"), ("a", "x")]
    nest.assert_same_structure(structure, {"a": 0, "b": 0})


def test_packing_keeps_the_types():
    assert type(nest.map_structure(abs, OrderedDict(a=-1))) is OrderedDict
    assert nest.map_structure(abs, Pair(-1, -2)) == Pair(1, 2)
    filled = defaultdict(list, a=-1)
    packed = nest.map_structure(abs, filled)
    assert packed == {"a": 1}
    assert packed["missing"] == []
    assert filled == {"a": -1}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1], (1,)),
        ([1], [1, 2]),
        ([1], 1),
        (1, [1]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": [1]}),
        (Pair(1, 2), (1, 2)),
        ([1, [2]], [1, (2,)]),
    ],
)
def test_different_structures_are_told_apart(first, second):
    with pytest.raises(ValueError, match="structures differ"):
        nest.assert_same_structure(first, second)
    with pytest.raises(ValueError, match="structures differ"):
        nest.map_structure(lambda x, y: x, first, second)


def test_packing_the_wrong_number_of_leaves():
    with pytest.raises(ValueError, match="got 3 leaves for a structure of 2"):
        nest.pack_sequence_as([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="got 1 leaves for a structure of 2"):
        nest.pack_sequence_as([1, 2], [1])


def test_keys_of_several_types():
    first = {"b": 1, 2: 2, None: 3, 1.5: 4, "a": 5, (1, 2): 6}
    second = dict(reversed(first.items()))
    assert nest.flatten(first) == nest.flatten(second) == [4, 2, 3, 5, 1, 6]
    assert list(nest.pack_sequence_as(second, list("abcdef"))) == list(second)
    assert nest.map_structure(lambda x, y: x == y, first, second) == dict.fromkeys(first, True)
    assert nest.map_structure(lambda x, y: (x, y), {1: 1, "a": 2}, {"a": 3, True: 4}) == {
        1: (1, 4), "a": (2, 3)}


@pytest.mark.parametrize("keys", [(1, 2j), (object(), object()), (("a", 1), (1, "a"))])
def test_keys_that_cannot_be_sorted(keys):
    with pytest.raises(TypeError, match="sortable"):
        nest.flatten(dict.fromkeys(keys, 0))


class Shifted(Pair):
    def __new__(cls, start):
        return super().__new__(cls, start, start + 1)


class Twice(tuple):
    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


class Adding(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, self.get(key, 0) + value)


class Appending(list):
    def __init__(self, note, items=()):
        super().__init__(items)
        self.note = note

    def __setitem__(self, place, value):
        raise TypeError("no")


SUBCLASSES = [
    Counter(b=3, a=2), OrderedDict(b=3, a=2), defaultdict(int, b=3, a=2), Adding(b=3, a=2),
    Shifted(1), Twice(1, 2), Appending("note", [1, 2]), time.gmtime(0),
]


@pytest.mark.parametrize("structure", SUBCLASSES, ids=lambda x: type(x).__name__)
def test_containers_with_methods_of_their_own_are_packed_as_they_were(structure):
    negative = nest.map_structure(lambda x: -x, structure)
    assert type(negative) is type(structure)
    assert nest.flatten(negative) == [-x for x in nest.flatten(structure)]
    assert getattr(negative, "note", None) == getattr(structure, "note", None)
    if isinstance(structure, dict):
        assert list(negative) == list(structure)


def deep(n):
    structure = []
    for _ in range(n):
        structure = [structure]
    return structure


def cyclic(kind):
    structure = kind()
    structure.append(structure) if kind is list else structure.update(a=structure)
    return structure


@pytest.mark.parametrize("structure", [
    lambda: deep(200_000), lambda: cyclic(list), lambda: cyclic(dict)])
@pytest.mark.parametrize("use", [
    nest.flatten, lambda x: nest.map_structure(str, x), lambda x: nest.pack_sequence_as(x, [1, 2]),
    lambda x: nest.assert_same_structure(x, x)])
def test_structures_without_an_end(structure, use):
    with pytest.raises(RecursionError, match="nested too deeply or contains itself"):
        use(structure())
