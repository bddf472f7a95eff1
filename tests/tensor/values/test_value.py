"""Where the data of a tensor lie, for each of the three sizes that are kept differently."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import cytape
from cytape.tensor.tensor import tensor_of
from cytape.tensor.values.value import Value
from tests.cases import each

# Elements of float64: within the object, in a buffer, in an ndarray, and both sides of each border.
SIZES = [0, 1, 8, 9, 2048, 2049, 10_000]
BIG = 10_000
DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "longdouble", "complex64",
          "complex128", "clongdouble", "datetime64[s]", "U5"]


def make_by_copy(array):
    return cytape.constant(array)


def make_by_op(array):
    return cytape.constant(array) + 0.0


@each(make=[make_by_copy, make_by_op, tensor_of], size=SIZES)
def test_data_come_back_at_any_size(make, size):
    array = np.arange(float(size))
    tensor = make(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy().dtype == array.dtype
    assert tensor.numpy().flags.aligned
    assert not tensor.numpy().flags.writeable


@each("size", SIZES)
def test_an_array_that_is_not_aligned_is_copied_to_where_it_is(size):
    raw = np.frombuffer(b"\0" + np.arange(float(size)).tobytes(), np.uint8)
    array = raw[1:].view(float)
    tensor = tensor_of(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy().flags.aligned


@each(dtype=DTYPES, shape=[(), (3,), (2, 3), (3, 0), (30, 100)])
def test_data_come_back_in_any_dtype_and_shape(dtype, shape):
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    for tensor in (cytape.constant(array), tensor_of(array.copy())):
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert (tensor.numpy().shape, tensor.numpy().dtype) == (array.shape, array.dtype)


@each("lay_out", [
    np.asfortranarray, np.transpose, lambda a: a[::-1], lambda a: a[:, ::2],
    lambda a: np.broadcast_to(a[0], a.shape), lambda a: a.astype(a.dtype.newbyteorder())])
@each("shape", [(2, 3), (100, 40)])
def test_data_come_back_from_any_memory_layout(lay_out, shape):
    array = lay_out(np.arange(float(np.prod(shape))).reshape(shape))
    for tensor in (cytape.constant(array), tensor_of(array)):
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal((tensor * 2.0).numpy(), array * 2)
        assert tensor.dtype.isnative


@each("size", SIZES)
def test_the_data_are_a_copy(size):
    array = np.zeros(size)
    tensor = cytape.constant(array)
    variable = cytape.Variable(array)
    array += 1
    assert not tensor.numpy().any()
    assert not variable.numpy().any()


@each("size", SIZES)
def test_the_array_outlives_its_tensor(size):
    tensor = cytape.constant(np.arange(float(size))) * 2.0
    array = tensor.numpy()
    del tensor
    gc.collect()
    others = [cytape.constant(np.full(size, np.nan)) * 2.0 for _ in range(20)]
    np.testing.assert_array_equal(array, 2 * np.arange(size))
    del others


def test_big_data_are_not_copied_for_an_ndarray():
    for tensor in (cytape.constant(np.ones(BIG)), cytape.constant(np.ones(BIG)) * 2.0):
        tracemalloc.start()
        arrays = [tensor.numpy() for _ in range(100)]
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert used < tensor.nbytes
        assert all(np.shares_memory(arrays[0], array) for array in arrays)


def test_views_of_big_tensors_are_views():
    tensor = cytape.constant(np.arange(float(BIG)).reshape(100, -1))
    views = [tensor.T, tensor.reshape(-1), tensor[10:], tensor[:, :50], np.swapaxes(tensor, 0, 1)]
    for view in views:
        assert np.shares_memory(view.numpy(), tensor.numpy())


@each("size", [1, 8])
def test_small_data_lie_inside_the_tensor(size):
    """An ndarray alone would take more."""
    one = cytape.constant(np.ones(size))
    warm = [one * 2.0 for _ in range(1000)]
    tracemalloc.start()
    tensors = [one * 2.0 for _ in range(10_000)]
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    bytes_in_list = 8
    assert used / len(tensors) < 200 + bytes_in_list
    del warm


def test_every_value_has_its_own_id():
    tensor = cytape.constant(1.0)
    made = [cytape.constant(1.0), tensor.copy(), tensor + 0.0, tensor.reshape(()), tensor[()],
            cytape.Variable(1.0)]
    assert len({tensor.id, *(other.id for other in made)}) == 1 + len(made)
    assert tensor.id == tensor.id > 0


@each(size=SIZES, make=[make_by_copy, make_by_op])
def test_the_death_of_a_value_is_announced_at_any_size(make, size):
    """Not of a handle: an array of the data keeps the value, and so its tangent."""
    tensor, other = make(np.ones(size)), cytape.constant(1.0)
    accumulator = cytape.ForwardAccumulator([tensor, other], [np.full(size, 2.0), 1.0])
    tangent = weakref.ref(accumulator.jvp(tensor).numpy().base)
    array = tensor.numpy()
    del tensor
    assert tangent() is not None
    del array
    assert tangent() is None
    assert accumulator.jvp(other) is not None


def test_a_value_that_dies_while_an_error_is_raised():
    """Dropping its tangent must not swallow the error."""
    x = cytape.constant(np.ones(3))

    def work():
        with cytape.ForwardAccumulator(x, np.ones(3)):
            y = x * x
            if y.shape:
                raise ArithmeticError("first")
        return y

    with pytest.raises(ArithmeticError, match="first"):
        work()


def test_an_object_is_of_a_size_that_is_cleared_fast():
    assert Value.__basicsize__ == 128


def test_views_of_views_form_no_chain():
    x = cytape.constant(np.arange(300_000.0))
    for _ in range(100_000):  # their death would be a recursion as deep
        x = x[1:]
    assert x.numpy()[0] == 100_000
    x = x.reshape(400, 500)
    for _ in range(100_000):
        x = x.T
    assert x.numpy()[1, 0] == 100_500
    del x


def test_a_view_keeps_the_memory_and_not_what_held_it():
    x = cytape.constant(np.arange(1000.0))
    row = x.reshape(10, 100)[3]
    del x
    others = [cytape.constant(np.zeros(1000)) for _ in range(10)]
    np.testing.assert_array_equal(row, np.arange(300.0, 400.0))
    del others


@each("take", [lambda x: x[:600], lambda x: np.split(x, 2)[0], lambda x: x.reshape(30, 40)])
def test_a_tensor_whose_memory_is_shown_is_not_changed_in_place(take):
    x = cytape.constant(np.zeros(1200)) + 1.0
    array = take(x).numpy()
    x[...] = 5.0
    assert np.all(array == 1.0)
    assert np.all(x.numpy() == 5.0)
