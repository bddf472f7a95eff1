"""Keys of traces: differences between calls of a traced function."""


import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import pathlib
import struct
import types
from array import array
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import cytape
from cytape.graph.tracing.cache_keys import describe_arguments, with_tensors
from cytape.graph.tracing.signature import is_array, is_object
from tests.cases import each


def key_of(*arguments):
    return describe_arguments(arguments, {})[:2]


class Unhashable:
    __hash__ = None


class Thing:
    def __init__(self, n=0):
        self.n = n

    def method(self):
        return self.n

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)


class Words(dict):
    def __repr__(self):
        return f"Words({super().__repr__()})"


class Numbers(list):
    pass


class Triple(tuple):
    pass


class Named(str):
    pass


class Count(int):
    pass


class Slotted:
    __slots__ = ("a", "__b")

    def __init__(self, a, b):
        self.a, self.__b = a, b


@dataclasses.dataclass(frozen=True)
class Options:
    rate: Any = 0.1
    more: Any = ()


@dataclasses.dataclass(frozen=True)
class SlottedOptions(Slotted):
    __slots__ = ("c",)
    c: Any

    def __init__(self, a, b, c):
        object.__setattr__(self, "c", c)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "_Slotted__b", b)


@dataclasses.dataclass
class Mutable:
    rate: Any = 0.1


class Color(enum.Enum):
    RED, GREEN = 1, 2


class Level(enum.IntEnum):
    LOW, HIGH = 1, 2


Pair = namedtuple("Pair", "first second")
Couple = namedtuple("Couple", "first second")


def with_attribute(x, value):
    x.note = value
    return x


def nan_of(bits):
    return struct.unpack("=d", struct.pack("=Q", bits))[0]


X = np.zeros((2, 3))
THING, OTHER_THING = Thing(), Thing()


@each("a, b", [
    (X, cytape.constant(X)), (np.float64(1.0), np.array(2.0)), ([X, 1], [X + 1, 1]),
    ({"a": 1, "b": X}, {"a": 1, "b": X + 1}),
    (None, None), ("word", "wor" + "d"), ({1, 2}, {2, 1}), (bytearray(b"a"), bytearray(b"a")),
    tuple(cytape.IndexedSlices(x, np.arange(2), (5, 3)) for x in (X, X + 1)),
    (1.5, 1.5), (float("nan"), float("nan")), (1j, 1j), (10**30, 10**30),
    (slice(1, None), slice(1, None)), (range(3), range(0, 3, 1)),
    (memoryview(b"a"), memoryview(b"a")), (array("d", [1.0]), array("d", [1.0])),
    (np.dtype("f4"), np.dtype(np.float32)),
    (Options(2.0), Options(2.0)), (Options([X.shape, {1: 2}]), Options([X.shape, {1: 2}])),
    (SlottedOptions(1, 2, 3), SlottedOptions(1, 2, 3)),
    (Pair(X, 1), Pair(X, 1)), (Named("a"), Named("a")), (Numbers([X]), Numbers([X])),
    (collections.defaultdict(list, a=X), collections.defaultdict(list, a=X)),
    (collections.deque([1, 2]), collections.deque([1, 2])),
    (types.MappingProxyType({1: 2}), types.MappingProxyType({1: 2})),
    (THING.method, THING.method), (THING.__init__, THING.__init__),
    (functools.partial(max, 1, key=abs), functools.partial(max, 1, key=abs)),
    (decimal.Decimal("1.0"), decimal.Decimal("1.0")),
    (fractions.Fraction(1, 2), fractions.Fraction(2, 4)),
    (pathlib.Path("a/b"), pathlib.Path("a") / "b"),
    (datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
     datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
    (Color.RED, Color(1)), (Level.LOW, Level(1)), ({1: X, "a": X}, {1: X, "a": X}),
])
def test_alike(a, b):
    assert key_of(a)[0] == key_of(b)[0] and hash(key_of(a)[0]) == hash(key_of(b)[0])


@each("a, b", [
    (X, X[0]), (X, X.astype("float32")), ([X], (X,)), ([X, X], [X]), ({"a": X}, {"b": X}),
    (1, True), (1, 1.0), (0.0, -0.0), (X, None), ([[X], X], [X, [X]]),
    (cytape.Variable(1.0), cytape.Variable(1.0)), ({1}, {2}), (slice(1), slice(2)),
    (memoryview(b"a"), memoryview(b"b")), (Unhashable(), Unhashable()),
    ({"a": X, "b": X}, {"b": X, "a": X}), ({1: X}, {True: X}), ({1: X}, {1.0: X}),
    ({(1, 2): X}, {(True, 2): X}), ({0.0: X}, {-0.0: X}), ({"a": 1}, {"a": True}),
    ({1}, {True}), ({1}, {1.0}), ({0.0}, {-0.0}), (frozenset({1}), {1}),
    (frozenset({(1, 0)}), frozenset({(True, 0)})), ({0, 8}, {8, 0}),
    (nan_of(0x7FF8 << 48), nan_of(0xFFF8 << 48)), (1.0, np.float64(1.0)),
    (nan_of(0x7FF8 << 48), nan_of((0x7FF8 << 48) + 1)),
    (complex(0.0, 0.0), complex(0.0, -0.0)), (complex(-0.0, 0.0), complex(0.0, 0.0)),
    (Options(2), Options(2.0)), (Options(2), Options(True)), (Options(0.0), Options(-0.0)),
    (Options({1}), Options({True})), (Options(Options(1)), Options(Options(1.0))),
    (Options(np.float64(1)), Options(1.0)), (Options(np.float32(1)), Options(np.float64(1))),
    (Options(np.int32(1)), Options(np.int64(1))), (Options(X), Options(X.copy())),
    (Options(np.datetime64(1, "s")), Options(np.datetime64(1, "ms"))),
    (Options(cytape.constant(X)), Options(cytape.constant(X))),
    (SlottedOptions(1, 2, 3), SlottedOptions(1, 2.0, 3)),
    (SlottedOptions(1, 2, 3), SlottedOptions(True, 2, 3)),
    (Mutable(), Mutable()), (THING, OTHER_THING), (THING.method, OTHER_THING.method),
    (Color.RED, Color.GREEN), (Level.LOW, 1), (Level.LOW, Level.HIGH), (Count(1), 1),
    (Named("a"), "a"), (with_attribute(Named("a"), 1), with_attribute(Named("a"), 2)),
    (with_attribute(Count(1), 1), with_attribute(Count(1), True)),
    (Words(a=X), {"a": X}), (with_attribute(Words(a=X), 1), with_attribute(Words(a=X), 2)),
    (with_attribute(Numbers([X]), 1), with_attribute(Numbers([X]), 2)),
    (with_attribute(Triple([X]), 1), with_attribute(Triple([X]), 2)),
    (Pair(X, X), Couple(X, X)), (Pair(X, X), (X, X)),
    (collections.OrderedDict(a=X), {"a": X}),
    (collections.OrderedDict(a=X, b=X), collections.OrderedDict(b=X, a=X)),
    (collections.defaultdict(list, a=X), collections.defaultdict(set, a=X)),
    (collections.deque([1], 3), collections.deque([1], 4)), (collections.deque([1]), [1]),
    (slice(1), slice(True)), (slice(1), slice(1.0)), (slice(0.0), slice(-0.0)),
    (range(0), range(2, 1)), (range(0, 3, 2), range(0, 4, 2)),
    (bytearray(b"a"), b"a"), (array("d", [0.0]), array("d", [-0.0])),
    (array("i", [1]), array("l", [1])), (memoryview(b"a"), b"a"),
    (np.dtype("f8"), np.dtype(">f8")), (np.dtype("l"), np.dtype("q")), (np.dtype("f8"), float),
    (np.dtype("f8"), np.dtype("f8", metadata={"unit": "m"})),
    (np.dtype([("a", "f8")]), np.dtype([("b", "f8")])),
    (functools.partial(max, 1), functools.partial(max, True)),
    (functools.partial(max, 1), functools.partial(min, 1)),
    (functools.partial(max, a=1, b=2), functools.partial(max, b=2, a=1)),
    (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    (decimal.Decimal("0"), decimal.Decimal("-0")), (fractions.Fraction(1), 1),
    (datetime.datetime(2020, 1, 1, fold=0), datetime.datetime(2020, 1, 1, fold=1)),
    (datetime.UTC, datetime.timezone(datetime.timedelta(0), "Z")),
    (types.MappingProxyType({1: 2, 3: 4}), types.MappingProxyType({3: 4, 1: 2})),
    ([].append, [].append), (len, max), (Options, Mutable), ("a", b"a"), (..., None),
    (X, [0.0]), (cytape.IndexedSlices(X, np.arange(2)), (X, np.arange(2))),
    (cytape.IndexedSlices(X, np.arange(2), (5, 3)), cytape.IndexedSlices(X, np.arange(2), (6, 3))),
    (lambda: 1, lambda: 1), (math, struct),
])
def test_told_apart(a, b):
    assert key_of(a)[0] != key_of(b)[0]


class WithoutHash(type):
    __hash__ = None


@each("base, argument", [
    (object, lambda cls: cls()), (object, lambda cls: [cls()]), (object, lambda cls: {"a": cls()}),
    (list, lambda cls: cls()), (int, lambda cls: cls()), (object, lambda cls: {1: cls()}),
    (object, lambda cls: functools.partial(max, cls())),
])
def test_a_class_without_a_hash_is_named(base, argument):
    cls = WithoutHash("Odd", (base,), {})
    with pytest.raises(TypeError, match="class Odd, which cannot be hashed: .* WithoutHash a __ha"):
        describe_arguments((argument(cls),), {})


def test_structures_of_one_leaf_each_have_keys_of_their_own():
    leaves = [X, 1, "a", None, (), THING, Options(1)]
    around = [lambda x: x, lambda x: [x], lambda x: (x,), lambda x: {"a": x}, lambda x: {2: x},
              lambda x: Pair(x, x), lambda x: [x, x], lambda x: Options(x), lambda x: Options((x,)),
              lambda x: {"a": [x], "b": x}, lambda x: {"a": x, "b": [x]}, lambda x: Words(a=x)]
    structures = [outer(inner(x)) for outer in around for inner in around for x in leaves]
    keys = {key_of(x)[0]: repr(x) for x in structures}
    assert len(keys) == len({repr(x) for x in structures})


def test_only_arrays_and_tensors_are_passed():
    v = cytape.Variable(1.0)
    key, tensors = key_of([X, 1], {"b": np.float32(2.0), "a": v}, cytape.constant(3.0))
    assert [t.dtype for t in tensors] == ["float64", "float32", "float64"]
    assert not is_array(v) and not is_array(1.0) and is_array(np.float64(1.0))


def test_objects_are_named_by_their_ids():
    for x, named in (THING, THING), (THING.method, THING), (Options(THING), THING):
        key, _, objects, _ = describe_arguments((x,), {})
        assert any(one is named for one in objects)
        assert (id(named),) in [part[2:] for part in key if is_object(part)]
    assert describe_arguments(([1, "a", 2.0, {3: None}, Options()],), {})[2] == []


def test_tensors_are_replaced_where_they_were_found():
    default = with_attribute(Words(b=X, a=[X + 1, 2]), "kept")
    arguments = (
        {"z": X, 1: (X + 2, None), None: Pair(X + 3, "b")}, default,
        cytape.IndexedSlices(X + 4, np.arange(2)), with_attribute(Numbers([X + 5]), "kept"),
        with_attribute(Triple([X + 6]), "kept"), Options(X))
    replaced = []
    result = with_tensors(arguments, lambda x: replaced.append(np.asarray(x)) or len(replaced) - 1)
    for mine, theirs in zip(replaced, key_of(*arguments)[1], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert result[0] == {"z": 0, 1: (1, None), None: Pair(2, "b")}
    assert list(result[0]) == ["z", 1, None]
    assert result[1] == {"b": 3, "a": [4, 2]} and type(result[1]) is Words
    assert (result[2].values, result[2].indices) == (5, 6)
    assert result[3:5] == ([7], (8,)) and result[5] is arguments[5]
    assert [x.note for x in (result[1], result[3], result[4])] == ["kept"] * 3
    assert default["b"] is X


def test_arrays_of_tensors_are_described_by_their_tensors_and_what_does_not_change():
    ones = cytape.TensorArray("float64", 2).write(0, np.ones(3))
    key, tensors = key_of(ones)
    assert [tensor.shape for tensor in tensors] == [(2, 3), (2,), ()]
    assert key == key_of(cytape.TensorArray("float64", 2).write(1, np.zeros(3)))[0]
    for other in (
        cytape.TensorArray("float64", 2).write(0, np.ones(4)), cytape.TensorArray("float64", 2),
        cytape.TensorArray("float32", 2).write(0, np.ones(3, np.float32)),
        cytape.TensorArray("float64", 2, dynamic_size=True).write(0, np.ones(3)),
        cytape.TensorArray("float64", 2, infer_shape=False, element_shape=(3,)),
    ):
        assert key_of(other)[0] != key
    replaced = with_tensors([ones], lambda x: x if x.dtype != float else x * 2.0)[0]
    assert replaced.stack().numpy().tolist() == [[2.0] * 3, [0.0] * 3]
