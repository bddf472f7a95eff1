"""How keys are compared, and arguments rebuilt."""

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np

import cytape
from cytape.graph.tracing.cache_keys import describe_arguments, has_attributes, structures_of_specs
from cytape.graph.tracing.signature import (
    difference,
    differs_in_caches,
    generalised,
    shapes_agree,
    spec_of_part,
)
from tests.cases import each


def key_of(*arguments):
    return describe_arguments(arguments, {})[:2]


X = np.zeros((2, 3))


def test_keys_that_differ_in_extents_only_have_a_general_one():
    a, b = key_of(np.zeros((2, 3)), 1)[0], key_of(np.zeros((5, 3)), 1)[0]
    general = generalised(a, b)
    assert spec_of_part(general[0]).shape == (None, 3) and general[1] == a[1]
    assert generalised(general, key_of(np.zeros((7, 3)), 1)[0]) == general
    for other in (np.zeros(3), 1), (np.zeros((2, 3), "f4"), 1), (np.zeros((2, 3)), 2), (X,):
        assert generalised(a, key_of(*other)[0]) is None
    ((spec, number), words) = structures_of_specs(((X, 1), {"w": "word"}), general)
    assert spec.shape == (None, 3) and number == 1 and words == {"w": "word"}


@each("shape, wanted, agree", [
    ((2, 3), (2, 3), True), ((2, 3), (None, 3), True), ((2, 3), None, True),
    ((2, 3), (3, 3), False), ((2,), (None, None), False), (None, (2,), False), (None, None, True),
])
def test_shapes(shape, wanted, agree):
    assert shapes_agree(shape, wanted) is agree


def test_the_difference_is_said():
    keys = [key_of(np.zeros(3), 1)[0], key_of(np.zeros(3), "a")[0]]
    assert difference(key_of(np.zeros(4), 1)[0], keys) == (
        "a float64 tensor of shape (4,) where it was a float64 tensor of shape (3,) before")
    assert difference(key_of(np.zeros(3), 2)[0], keys) == "2 where it was 1 before"
    assert "structure" in difference(key_of([X, X])[0], keys)
    assert "graph it is called in" in difference(keys[0], keys)
    v, w = cytape.Variable(1.0), cytape.Variable(1.0)
    of_v, of_w = key_of({"w": v})[0], key_of({"w": w})[0]
    assert "another variable than" in difference(of_w, [of_v])
    assert "another variable than" in difference(of_w, [])
    assert difference(key_of(v)[0], [key_of(2)[0]]) == "a variable where it was 2 before"
    assert difference(key_of(2)[0], [key_of(v)[0]]) == "2 where it was a variable before"


class Lazy(tuple):
    @functools.cached_property
    def total(self):
        return sum(self)

    @functools.cached_property
    def me(self):
        return self


def test_a_cached_object_is_a_part_of_its_own():
    lazy = Lazy([1, 2])
    lazy.name = "a"
    before = key_of(lazy, 5)[0]
    assert (lazy.total, lazy.me) == (3, lazy)
    after = key_of(lazy, 5)[0]
    assert len(after) == len(before) + 2
    assert differs_in_caches(before, after)
    assert not differs_in_caches(before, before)
    assert not differs_in_caches(after, before)
    assert not differs_in_caches(before, key_of(lazy, 6)[0])
    assert not differs_in_caches(before, after[:-1])
    assert differs_in_caches(before[:-1], after[:-1])
    lazy.total = 4
    assert not differs_in_caches(after, key_of(lazy, 5)[0])
    assert not differs_in_caches(before, (*before, SimpleNamespace))


def test_slots_in_which_attrs_has_properties_cached():
    class Declared:
        __attrs_attrs__ = (SimpleNamespace(name="n"),)
        __slots__ = ("n", "scale", "_attrs_cached_hash", "__weakref__")

        def __hash__(self):
            return 1

        def __getattr__(self, name):
            raise AttributeError if name == "__dict__" else AssertionError(name)

    x, y = Declared(), Declared()
    x.n = y.n = 2
    assert key_of(x) == key_of(y)
    y.scale = y._attrs_cached_hash = 4
    assert differs_in_caches(key_of(x)[0], key_of(y)[0])


def test_keys_tell_of_objects_described_by_attributes():
    assert has_attributes(key_of([functools.partial(int)], Frozen(1))[0])
    assert not has_attributes(key_of(X, [1, 2.0], {"a": X}, object(), "word", np.float32)[0])


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int


@dataclasses.dataclass
class Plain:
    a: object
    more: object = None

    def scaled(self, x):
        return x * self.a


@dataclasses.dataclass(eq=False)
class ByIdentity(Plain):
    pass


@dataclasses.dataclass(slots=True, weakref_slot=True)
class WithSlots:
    a: object
    more: object = None

    def scaled(self, x):
        return x * self.a


KINDS_OF_DATACLASSES = [Plain, ByIdentity, WithSlots]
WAYS_TO_PASS = {
    "argument": (lambda d, x: d.scaled(x), lambda d: d),
    "in a list": (lambda ds, x: ds[0].scaled(x), lambda d: [d]),
    "in a dataclass": (lambda outer, x: outer.a.scaled(x), Plain),
    "method": (lambda scaled, x: scaled(x), lambda d: d.scaled),
    "partial": (lambda scaled, x: scaled(x), lambda d: functools.partial(type(d).scaled, d)),
}


@each(kind=KINDS_OF_DATACLASSES, way=WAYS_TO_PASS)
@each("wrapped", [
    np.float64, float, np.array, cytape.constant, cytape.Variable], ids=lambda x: x.__name__)
def test_assigned_attributes_of_dataclasses_are_seen(kind, way, wrapped):
    body, passed = WAYS_TO_PASS[way]
    f = cytape.function(body)
    d = kind(wrapped(1.0))
    argument = passed(d)
    assert float(f(argument, 3.0)) == 3.0
    d.a = wrapped(2.0)
    assert float(f(argument, 3.0)) == 6.0
    d.a = wrapped(1.0)
    assert float(f(argument, 3.0)) == 3.0
    with cytape.GradientTape() as tape:
        x = cytape.constant(3.0)
        tape.watch(x)
        d.a = wrapped(5.0)
        y = f(argument, x)
    assert float(tape.gradient(y, x)) == 5.0


def test_dataclasses_that_are_unchanged_are_traced_once():
    n_calls = []
    f = cytape.function(lambda d, x: (n_calls.append(0), d.scaled(x))[1])
    d = Plain(2.0, {"names": ["a"], "inner": [Plain(1.0)]})
    for _ in range(3):
        f(d, 3.0)
    assert len(n_calls) == 1
    d.more["inner"][0].a = 7.0
    f(d, 3.0)
    assert len(n_calls) == 2


def test_dataclasses_that_contain_themselves_are_described():
    f = cytape.function(lambda d, x: d.more[0].scaled(x))
    d = Plain(2.0)
    d.more = [d]
    assert float(f(d, 3.0)) == 6.0
    d.a = 4.0
    assert float(f(d, 3.0)) == 12.0


def test_equal_dataclasses_have_variables_of_their_own():
    @cytape.function
    def count(d):
        if d.more is None:
            d.more = cytape.Variable(0.0)
        return d.more.assign_add(d.a) + 0.0

    first, second = Plain(1.0), Plain(1.0)
    assert [float(count(d)) for d in (first, second, first, first, second)] == [1, 1, 2, 3, 2]
    assert first.more is not second.more
