"""Special cases of conversions: casts that cut the path, nested lists, fill values."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.ops import creation as ops
from tests.cases import each


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, "datetime64[s]"])
def test_cast_to_a_dtype_without_gradient_cuts_the_path(watched, dtype):
    x, gradient = watched([1.0, 2.0])
    back = ops.astype(ops.astype(x, dtype), np.float64)
    assert back.dtype == np.float64
    assert gradient(back) is None


def test_cast_from_integers_has_no_gradient(watched):
    x = cytape.constant([1, 2])
    _, gradient = watched(1.0)
    assert gradient(ops.astype(x, np.float64)) is None


def test_cast_to_real_drops_the_imaginary_part_with_numpys_warning(watched):
    z, gradient = watched([1 + 2j, 3 - 1j])
    with pytest.warns(np.exceptions.ComplexWarning):
        y = ops.astype(z, np.float64)
    np.testing.assert_array_equal(y.numpy(), [1, 3])
    g = gradient(y)
    assert g.dtype == np.complex128
    np.testing.assert_array_equal(g.numpy(), [1, 1])


def test_cast_to_the_same_dtype_is_a_copy_unless_none_is_asked_for():
    x = cytape.constant([1.0])
    y = ops.astype(x, float)
    y += 1.0
    assert (float(x[0]), float(y[0])) == (1.0, 2.0)
    assert ops.astype(x, float, copy=False) is x


def test_cast_of_a_variable_is_a_tensor():
    assert type(ops.astype(cytape.Variable([1.0]), float)) is cytape.Tensor


def test_astype_of_numpy_wants_an_array():
    with pytest.raises(TypeError, match="Input should be a NumPy array"):
        ops.astype([1.0], int)


def test_copy_is_another_tensor(watched):
    x, gradient = watched([1.0, 2.0])
    y = np.copy(x)
    assert y.id != x.id
    np.testing.assert_array_equal(gradient(y * y).numpy(), [2, 4])


def test_array_of_variables():
    a, b = cytape.Variable(1.0), cytape.Variable(2.0)
    with cytape.GradientTape() as tape:
        y = ops.array([a, b, a]) * [1.0, 10.0, 100.0]
    assert [g.item() for g in tape.gradient(y, [a, b])] == [101, 10]


@each("values", [[np.float32(1), 2.0], [np.float32(1), 2], [np.float32(1), 1j], [
    np.float32(1), np.float16(2)]])
def test_array_promotes_as_numpy_does(values):
    tensor = cytape.constant(values[0])
    assert ops.array([tensor, *values[1:]]).dtype == np.array(values).dtype


def test_dtype_and_ndmin_of_array(watched):
    t, gradient = watched([1.0, 2.0])
    y = ops.array([t, t], dtype=np.float32, ndmin=4)
    assert (y.shape, y.dtype) == ((1, 1, 2, 2), np.float32)
    g = gradient(y)
    assert g.dtype == np.float64
    np.testing.assert_array_equal(g.numpy(), [2, 2])


def test_asarray_of_a_tensor_is_the_tensor():
    x = cytape.constant([1.0])
    assert ops.asarray(x) is x
    assert ops.asarray(x, dtype=np.float32).dtype == np.float32


@each("nested", [[0, [1]], [[0, 1], [2]], [[[0]], [[1, 2]]], [[[0]], [1]]])
def test_ragged_lists_raise_numpys_error(nested):
    def filled(part, make):
        return [filled(p, make) for p in part] if isinstance(part, list) else make(float(part))

    with pytest.raises(ValueError, match="inhomogeneous shape|could not broadcast") as expected:
        np.array(filled(nested, float))
    with pytest.raises(ValueError, match="inhomogeneous|broadcast") as actual:
        ops.array(filled(nested, cytape.constant))
    assert type(actual.value) is type(expected.value)


@each("parts", [[[1.0, 2.0], [1.0]], [[1.0], [[1.0]]], [[1.0, 2.0], [[1.0], [1.0]]]])
def test_ragged_lists_of_tensors_raise_the_words_of_numpys_error(parts):
    with pytest.raises(ValueError, match="inhomogeneous") as expected:
        np.array(parts)
    with pytest.raises(ValueError, match="inhomogeneous") as actual:
        ops.array(list(map(cytape.constant, parts)))
    assert str(actual.value) == str(expected.value)


def test_plain_data_is_left_to_numpy():
    x = [[1.0, 2.0], [3.0, 4.0]]
    assert type(ops.array(x, order="F", copy=True)) is np.ndarray
    assert ops.array(x, order="F").flags.f_contiguous
    assert type(ops.asarray(x, np.float32)) is np.ndarray


@each("options", [{}, {"dtype": float}])
def test_asarray_copies_if_it_is_told_to(options):
    x = cytape.constant(np.ones(3))
    y = cytape.numpy.asarray(x, copy=True, **options)
    y[0] = 5.0
    assert x.numpy().tolist() == [1.0, 1.0, 1.0]
    assert cytape.numpy.asarray(x, copy=False, **options) is x
    assert cytape.numpy.asarray(x, **options) is x


def test_a_tensor_is_no_dtype():
    for x in np.arange(3), cytape.constant([1.0]):
        with pytest.raises(TypeError, match="expected a dtype, got a tensor"):
            np.astype(x, cytape.constant(1.0))


@each("wrapped", [lambda f: f, cytape.function])
@each("make, shape", [
    (lambda x: [x[0], 2.0 * x[1]], (2,)), (lambda x: [[x[0], 1.0], [0.0, x[1]]], (2, 2)),
    (lambda x: [x, 2.0 * x], (2, 2)), (lambda x: x, (2,))])
def test_arrays_of_objects_hold_tensors(make, shape, wrapped):
    def f(x, dtype):
        array = cnp.array(make(x), dtype)
        if dtype is object:
            assert type(array) is np.ndarray and array.dtype == object and array.shape == shape
            assert all(isinstance(element, cytape.Tensor) for element in array.flat)
        return np.sum(array * array)

    x = np.array([3.0, 4.0])
    of_objects, plain = (
        wrapped(cytape.grad(lambda x, dtype=dtype: f(x, dtype))) for dtype in (object, None))
    np.testing.assert_array_equal(of_objects(x), plain(x))


def test_a_dtype_makes_tensors_of_arrays_of_objects():
    def f(x):
        return np.sum(cnp.array(cnp.array([[1.0, x]], object).ravel(), float) ** 2)

    assert cytape.grad(f)(2.0) == 4.0
    assert cnp.array(np.array([1, None], object), float).tolist()[0] == 1.0
