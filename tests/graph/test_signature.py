"""What tells calls of a traced function apart."""

import gc
import weakref

import numpy as np
import pytest

import cytape
from cytape.graph.signature import (
    describe,
    difference,
    generalised,
    is_array,
    shapes_agree,
    spec_of_part,
    structures_of_specs,
)


def key_of(*arguments):
    key, tensors = [], []
    for x in arguments:
        describe(x, key, tensors)
    return tuple(key), tensors


class Unhashable:
    __hash__ = None


X = np.zeros((2, 3))


@pytest.mark.parametrize("a, b", [
    (X, cytape.constant(X)),
    (np.float64(1.0), np.array(2.0)),
    ([X, 1], [X + 1, 1]),
    ({"a": 1, "b": X}, {"b": X, "a": 1}),
    (None, None), ("word", "word"), ({1, 2}, {2, 1}), (bytearray(b"a"), bytearray(b"a")),
    tuple(cytape.IndexedSlices(x, np.arange(2), (5, 3)) for x in (X, X + 1)),
 (1.5, 1.5), (float("nan"), float("nan")),
])
def test_alike(a, b):
    assert key_of(a)[0] == key_of(b)[0] and hash(key_of(a)[0]) == hash(key_of(b)[0])


@pytest.mark.parametrize("a, b", [
    (X, X[0]), (X, X.astype("float32")), ([X], (X,)), ([X, X], [X]), ({"a": X}, {"b": X}),
    (1, True), (1, 1.0), (0.0, -0.0), (X, None), ([[X], X], [X, [X]]),
    (cytape.Variable(1.0), cytape.Variable(1.0)), ({1}, {2}), (slice(1), slice(2)),
    (memoryview(b"a"), memoryview(b"b")), (Unhashable(), Unhashable()),
])
def test_told_apart(a, b):
    assert key_of(a)[0] != key_of(b)[0]


def test_only_arrays_and_tensors_are_passed():
    v = cytape.Variable(1.0)
    key, tensors = key_of([X, 1], {"b": np.float32(2.0), "a": v}, cytape.constant(3.0))
    assert [t.dtype for t in tensors] == ["float64", "float32", "float64"]
    assert not is_array(v) and not is_array(1.0) and is_array(np.float64(1.0))


def test_objects_are_not_kept_alive():
    class Thing:
        pass

    thing = Thing()
    key, _ = key_of(thing)
    assert key == key_of(thing)[0]
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None
    assert key != key_of(Thing())[0]


def test_keys_that_differ_in_extents_only_have_a_general_one():
    a, b = key_of(np.zeros((2, 3)), 1)[0], key_of(np.zeros((5, 3)), 1)[0]
    general = generalised(a, b)
    assert spec_of_part(general[0]).shape == (None, 3) and general[1] == a[1]
    assert generalised(general, key_of(np.zeros((7, 3)), 1)[0]) == general
    for other in (np.zeros(3), 1), (np.zeros((2, 3), "f4"), 1), (np.zeros((2, 3)), 2), (X,):
        assert generalised(a, key_of(*other)[0]) is None
    ((spec, number), words) = structures_of_specs(((X, 1), {"w": "word"}), general)
    assert spec.shape == (None, 3) and number == 1 and words == {"w": "word"}


@pytest.mark.parametrize("shape, wanted, agree", [
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
