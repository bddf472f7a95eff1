"""Specs: one shared object per shape and dtype, and what it knows."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import cytape
from cytape import Spec
from cytape.tensor.values.spec import spec_like, symbolic_spec
from tests.cases import each


def test_one_object_per_shape_and_dtype():
    spec = Spec.of((2, 3), "float32")
    assert Spec.of([2, 3], np.float32) is spec
    assert Spec.of((np.int64(2), np.uint8(3)), np.dtype("f4")) is spec
    assert cytape.constant(np.ones((2, 3), np.float32)).spec is spec
    assert (cytape.constant(np.float32([[1], [2]])) * np.ones(3, np.float32)).spec is spec
    others = [((3, 2), "float32"), ((2, 3), "float64"), ((6,), "float32"), ((2, 3, 1), "float32")]
    assert all(Spec.of(*other) is not spec for other in others)


@each("shape", [(), (0,), (7,), (2, 3), (4, 0, 2), (1,) * 64])
@each("dtype", ["float64", "float16", "int8", "bool", "complex64"])
def test_a_spec_knows_what_its_arrays_know(shape, dtype):
    array = np.empty(shape, dtype)
    spec = Spec.of(shape, dtype)
    for attribute in ("shape", "dtype", "size", "nbytes", "ndim"):
        assert getattr(spec, attribute) == getattr(array, attribute)
    assert cytape.constant(array).spec is spec


@each("dtype, trainable", [
    ("float16", True), ("float32", True), ("float64", True), ("longdouble", True),
    ("complex64", True), ("complex128", True), ("clongdouble", True), ("bool", False),
    ("int8", False), ("uint64", False), ("U3", False), ("datetime64[s]", False)])
def test_only_floating_and_complex_specs_are_trainable(dtype, trainable):
    assert Spec.of((2,), dtype).trainable is trainable


@each("attribute", ["shape", "dtype", "size", "nbytes", "ndim", "trainable"])
def test_a_spec_cannot_be_changed(attribute):
    spec = Spec.of((2,), float)
    with pytest.raises(AttributeError):
        setattr(spec, attribute, getattr(spec, attribute))


def test_specs_are_only_made_by_of():
    with pytest.raises(TypeError, match="Spec.of"):
        Spec()


@each("shape, error", [
    ((-1,), ValueError), ((2.5,), TypeError), (("two",), (TypeError, ValueError)),
    ((2**40, 2**40), ValueError), (3, TypeError)])
def test_shapes_that_no_array_has(shape, error):
    with pytest.raises(error):
        Spec.of(shape, float)


@each("dtype", [">f8" if np.little_endian else "<f8", object, "no dtype"])
def test_dtypes_that_no_tensor_has(dtype):
    with pytest.raises((TypeError, ValueError)):
        Spec.of((2,), dtype)


def test_the_repr_makes_the_spec_again():
    spec = Spec.of((2, 3), "complex64")
    assert repr(spec) == "Spec.of((2, 3), 'complex64')"
    assert eval(repr(spec)) is spec


@each("again", [copy.copy, copy.deepcopy, lambda spec: pickle.loads(pickle.dumps(spec))])
def test_copies_are_the_same_object(again):
    spec = Spec.of((2, 3), "float32")
    assert again(spec) is spec


def test_a_spec_stays_shared_while_it_has_owners():
    spec = Spec.of((1, 2, 3), "float32")
    tensor = cytape.constant(np.ones((3, 2, 1)))
    for extent in range(20_000):
        Spec.of((extent, 0, 11), "float32")
    assert Spec.of((1, 2, 3), "float32") is spec
    assert Spec.of((3, 2, 1), "float64") is tensor.spec
    assert (tensor + 1.0).spec is tensor.spec


def test_specs_of_ever_new_shapes_do_not_pile_up():
    def many(first):
        for extent in range(first, first + 20_000):
            cytape.constant(np.empty((extent, 0)))

    many(0)
    tracemalloc.start()
    try:
        many(100_000)
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_shape_whose_bytes_cannot_be_counted_is_an_error():
    column = cytape.numpy.broadcast_to(cytape.constant(0.0), (2**31, 1))
    for operation in (lambda x, y: x + y, lambda x, y: x @ y):
        with pytest.raises(ValueError, match="too big"):
            operation(column, column.T)


@each("shape", [(-1,), (2, -3), (None, -1)])
def test_symbolic_extents_are_not_negative(shape):
    with pytest.raises(ValueError, match="not negative"):
        symbolic_spec(shape, "float64")


def test_nothing_is_like_no_spec():
    with pytest.raises(TypeError, match="expected a spec"):
        spec_like(None, "float64")


def test_a_spec_is_asked_for():
    for args in ((), ((2,),), ((2,), float)):
        with pytest.raises(TypeError, match=r"Spec\.of\(shape, dtype\)"):
            cytape.Spec(*args)
    with pytest.raises(TypeError, match=r"Spec\.of"):
        cytape.Spec(shape=(2,), dtype=float)


def test_dtypes_whose_specs_meet_in_the_cache_are_told_apart():
    for n in range(500):  # some of these shapes have the same place for both
        for dtype in (np.float32, np.int32):
            assert cytape.constant(np.empty((n, 0), dtype)).dtype == dtype


@each("extent", [1, None])
def test_there_are_no_more_axes_than_arrays_can_have(extent):
    assert symbolic_spec((extent,) * 64, np.dtype(float)).ndim == 64
    with pytest.raises(ValueError, match="64 axes at most, got 65"):
        symbolic_spec((extent,) * 65, np.dtype(float))
    with pytest.raises(ValueError, match="64"):
        cytape.function(lambda x: cytape.numpy.array(x, ndmin=100))(np.ones((2, 3)))
