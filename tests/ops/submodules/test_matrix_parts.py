"""Common parts of functions of matrices."""

import numpy as np
import pytest

import cytape
from cytape.ops.submodules import matrix_parts
from cytape.tensor.values.spec import symbolic_spec
from tests.cases import each

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])


def test_a_hermitian_matrix_is_its_lower_half_and_the_adjoint_of_that():
    z = A + 1j * A.T
    h = matrix_parts.hermitian_part(z)
    np.testing.assert_array_equal(h, matrix_parts.adjoint(h))
    half = matrix_parts.lower_half(h)
    np.testing.assert_array_equal(half, np.tril(half))
    np.testing.assert_array_equal(half + matrix_parts.adjoint(half), h)


def test_the_adjoint_of_a_real_matrix_is_no_copy():
    assert np.shares_memory(matrix_parts.adjoint(A), A)


def test_negligible_values_are_relative_to_the_largest():
    for dtype in ("float32", "float64"):
        w, eps = np.array([[3.0, 1.0], [0.0, 0.0]], dtype), np.finfo(dtype).eps
        small = np.array([[10 * eps, 100 * eps], [0.0, eps]], dtype)
        found = matrix_parts.is_negligible(small, w)
        np.testing.assert_array_equal(found, [[True, False], [True, False]])
    assert matrix_parts.is_negligible(np.empty((0, 0)), np.empty(0)).shape == (0, 0)


def test_differences_of_zero_have_no_reciprocal_and_no_slope():
    w = np.array([1.0, 1.0 + 1e-15, 3.0])
    with np.errstate(all="raise"):
        found = matrix_parts.reciprocal_differences(w)
    np.testing.assert_allclose(found, [[0, 0, 0.5], [0, 0, 0.5], [-0.5, -0.5, 0]], rtol=1e-14)
    slope = cytape.grad(lambda w: np.sum(matrix_parts.reciprocal_differences(w)[0]))(w)
    np.testing.assert_allclose(slope, [0.25, 0.0, -0.25], rtol=1e-14)


def test_a_sum_of_what_there_is():
    assert matrix_parts.sum_of([]) is None
    assert matrix_parts.sum_of([None, None]) is None
    assert matrix_parts.sum_of([None, 1.0, None, 2.0]) == 3.0


@each("k", [0, 1, 2, 3])
def test_added_columns_stay_perpendicular(k):
    q, _ = np.linalg.qr(A)
    t = np.arange(3.0 * k).reshape(3, k)
    moved = matrix_parts.added_tangent(q, t, k)
    np.testing.assert_array_equal(moved[:, :k], t)
    first, added = q[:, :k], q[:, k:]
    np.testing.assert_allclose(first.T @ moved[:, k:] + t.T @ added, 0, atol=1e-14)
    g = np.arange(9.0).reshape(3, 3)[::-1]
    transposed = matrix_parts.first_gradient(q, g, k)
    np.testing.assert_allclose(np.sum(g * moved), np.sum(transposed * t), atol=1e-12)


@each("shape", [(3,), (), (2, 3), (4, 2, 3)])
def test_shapes_that_do_not_fit_have_numpys_errors(shape):
    with pytest.raises(np.linalg.LinAlgError) as expected:
        np.linalg.inv(np.ones(shape))
    with pytest.raises(np.linalg.LinAlgError) as found:
        matrix_parts.square_shape(symbolic_spec(shape, float), "inv")
    assert str(found.value) == str(expected.value)


def test_a_side_that_is_known_is_that_of_a_square():
    assert matrix_parts.square_shape(symbolic_spec((5, None, 3), float), "inv") == (5, 3, 3)
    assert matrix_parts.square_shape(symbolic_spec((2, None), float), "inv") == (2, 2)


@each("dtype", ["float16", "longdouble", "clongdouble"])
def test_dtypes_that_numpy_does_not_take_have_its_error(dtype):
    with pytest.raises(TypeError) as expected:
        np.linalg.inv(np.eye(2, dtype=dtype))
    with pytest.raises(TypeError) as found:
        matrix_parts.dtype_of(symbolic_spec((2, 2), dtype))
    assert str(found.value) == str(expected.value)


@each("dtypes", [
    ("float32",), ("int8",), ("float32", "int64"), ("float32", "complex64"), ("bool", "complex64")])
def test_dtypes_are_numpys(dtypes):
    a, b = np.eye(2, dtype=dtypes[0]), np.ones(2, dtype=dtypes[-1])
    specs = [symbolic_spec((2, 2), dtype) for dtype in dtypes]
    assert matrix_parts.dtype_of(*specs) == np.linalg.solve(a, b if len(dtypes) > 1 else a).dtype
