"""Structures: flatten, pack, map, compare."""

import time
from collections import Counter, OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cytape.tensor import nest
from tests.cases import each

Pair = namedtuple("Pair", "first second")

LEAVES = st.one_of(st.integers(), st.none(), st.text(max_size=2))
STRUCTURES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.lists(children, max_size=3).map(tuple),
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


@each("leaf", [None, 3, "abc", b"abc", np.arange(3)])
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


@each(("first", "second"), [
    ([1], (1,)), ([1], [1, 2]), ([1], 1), (1, [1]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": [1]}),
    (Pair(1, 2), (1, 2)), ([1, [2]], [1, (2,)])])
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


@each("keys", [(1, 2j), (object(), object()), (("a", 1), (1, "a"))])
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
    Shifted(1), Twice(1, 2), Appending("note", [1, 2]), time.gmtime(0)]


@each("structure", SUBCLASSES, ids=lambda x: type(x).__name__)
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


@each(structure=[lambda: deep(200_000), lambda: cyclic(list), lambda: cyclic(dict)], use=[
    nest.flatten, lambda x: nest.map_structure(str, x), lambda x: nest.pack_sequence_as(x, [1, 2]),
    lambda x: nest.assert_same_structure(x, x)])
def test_structures_without_an_end(structure, use):
    with pytest.raises(RecursionError, match="nested too deeply or contains itself"):
        use(structure())


class Box:
    """A registered structure of two leaves, and what does not change."""

    def __init__(self, first, second, name="box"):
        self.first, self.second, self.name = first, second, name


class BoxOfAnotherKind(Box):
    """Not registered."""


nest.register(Box, nest.Rules(
    leaves=lambda box: [box.first, box.second], n_leaves=lambda box: 2,
    with_leaves=lambda box, leaves: Box(*leaves, box.name), static=lambda box: box.name))


def test_objects_of_registered_classes_are_structures():
    structure = {"a": [Box(1, None, "left"), 3], "b": Box(4, 5)}
    assert nest.flatten(structure) == [1, None, 3, 4, 5]
    packed = nest.pack_sequence_as(structure, list("abcde"))
    assert (packed["a"][0].second, packed["a"][0].name, packed["b"].first) == ("b", "left", "d")
    assert nest.map_structure(lambda x: (x, x), Box(1, 2)).second == (2, 2)
    assert nest.pack_sequence_as(Box(1, 2), [3, 4]).first == 3
    with pytest.raises(ValueError, match="got 2 leaves for a structure of 5"):
        nest.pack_sequence_as(structure, [1, 2])


def test_they_can_be_left_whole():
    box = Box(1, 2)
    assert nest.flatten([box, 3], expand=False) == [box, 3]
    assert nest.flatten(box, expand=False) == [box]
    assert nest.pack_sequence_as({"a": [box]}, [7], expand=False) == {"a": [7]}
    assert nest.paths([box, {"k": 1}], "x", expand=False) == ["x[0]", "x[1]['k']"]


def test_subclasses_are_leaves():
    box = BoxOfAnotherKind(1, 2)
    assert nest.flatten([box]) == [box]
    assert nest.rules_of(box) is None


def test_registered_structures_agree_with_their_own_kind():
    nest.assert_same_structure([Box(1, 2)], [Box(3, 4, "other")])
    for other in ([1], [(1, 2)], [BoxOfAnotherKind(1, 2)]):
        with pytest.raises(ValueError, match="structures differ"):
            nest.assert_same_structure([Box(1, 2)], other)
        with pytest.raises(ValueError, match="structures differ"):
            nest.assert_same_structure(other, [Box(1, 2)])


@given(STRUCTURES)
def test_there_is_a_path_to_every_leaf(structure):
    assert [eval(path, {"x": structure}) for path in nest.paths(structure, "x")] == (
        nest.flatten(structure))


def test_paths_of_registered_structures_and_named_tuples():
    assert nest.paths(Pair([1], Box(2, 3)), "p") == ["p.first[0]", "p.second", "p.second"]
    assert nest.paths(5, "p") == ["p"]


@given(STRUCTURES)
def test_flatten_up_to_the_leaves_of_a_structure_itself(structure):
    assert nest.flatten_up_to(structure, structure) == nest.flatten(structure)


def test_flatten_up_to():
    assert nest.flatten_up_to([1, (2,)], ((3, None), [()])) == [(3, None), ()]
    assert nest.flatten_up_to(1, (3, None)) == [(3, None)]
    assert nest.flatten_up_to([Box(1, 2), 3], [None, ()]) == [None, None, ()]
    assert nest.flatten_up_to([Box(1, 2), 3], [None, ()], expand=False) == [None, ()]
    for shallow, structure in (([1, 2], [1]), ({"a": 1}, {"b": 1}), ([1], 5), ([[1]], [5])):
        with pytest.raises(ValueError, match="structures differ"):
            nest.flatten_up_to(shallow, structure)


class Composed:
    def __init__(self, *parts):
        self.parts = parts


nest.compose(Composed, nest.Composition(
    lambda x: x.parts, lambda like, parts: Composed(*parts),
    lambda x: [f".part{i}" for i in range(len(x.parts))]))


def test_objects_that_consist_of_structures():
    x = [Composed(1, {"a": Composed(2)}), (3,)]
    assert nest.flatten(x) == nest.flatten(x, expand=False) == [1, 2, 3]
    assert nest.paths(x, "x") == ["x[0].part0", "x[0].part1['a'].part0", "x[1][0]"]
    packed = nest.pack_sequence_as(x, "abc")
    assert nest.flatten(packed) == ["a", "b", "c"]
    assert type(packed[0].parts[1]["a"]) is Composed
    nest.assert_same_structure(x, packed)
    assert nest.flatten_up_to([Composed(0, None), 0], x) == [1, x[0].parts[1], (3,)]
    assert nest.flatten(nest.map_structure(lambda a, b: a + b, x, x)) == [2, 4, 6]


def test_composed_objects_that_differ():
    with pytest.raises(ValueError, match="a Composed, .*, where the other has a list"):
        nest.assert_same_structure(Composed(1), [1])
    with pytest.raises(ValueError, match="differ in length, 1 and 2"):
        nest.assert_same_structure(Composed(1), Composed(1, 2))
    with pytest.raises(ValueError, match="got 3 leaves for a structure of 2"):
        nest.pack_sequence_as(Composed(1, [2]), [1, 2, 3])


def test_an_object_that_contains_itself():
    x = Composed()
    x.parts = (x,)
    for walk in (nest.flatten, lambda x: nest.assert_same_structure(x, x),
                 lambda x: nest.pack_sequence_as(x, [])):
        with pytest.raises(RecursionError):
            walk(x)
