"""Clipping of structures, eager and in functions, and its derivatives; slices of one index."""

import numpy as np
import pytest

import cytape
from cytape.optimizers import clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from cytape.testing import check_grads
from tests.cases import each


def slices(values=((3.0,), (-3.0,), (4.0,)), indices=(0, 0, 2)):
    return cytape.IndexedSlices(cytape.constant(values), cytape.constant(indices), (3, 1))


def test_kinds_of_gradients_stay_as_they_are():
    given = {"a": np.array([3.0, 4.0]), "b": cytape.constant([0.3]), "c": None, "d": slices()}
    found = clip_by_norm(given, 1.0)
    np.testing.assert_allclose(found["a"], [0.6, 0.8])
    assert type(found["a"]) is np.ndarray
    assert type(found["b"]) is cytape.Tensor
    assert found["c"] is None
    np.testing.assert_allclose(found["d"].to_tensor(), [[0], [0], [1]])


def test_slices_of_an_index_are_limited_by_their_sum():
    assert float(global_norm([slices()])) == 4.0
    assert clip_by_value(slices(), -1.0, 1.0).numpy().tolist() == [[0], [0], [1]]
    (found,), norm = clip_by_global_norm([slices()], 2.0)
    assert float(norm) == 4.0
    np.testing.assert_allclose(found.to_tensor(), [[0], [0], [2]])


@each(dtype=["float32", "float16"])
def test_dtypes_are_kept_and_norms_do_not_overflow(dtype):
    given = [np.array([6e4, 8e4 if dtype == "float32" else 6e4], dtype)]
    (found,), _ = clip_by_global_norm(given, 1.0)
    assert found.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(found.astype(float)), 1.0, 2e-3)
    (found,), _ = clip_by_global_norm([np.array([3e30, 4e30], "f4")], 1.0)
    np.testing.assert_allclose(found, [0.6, 0.8], 1e-6)


def test_norms_that_are_not_finite_show():
    found, norm = clip_by_global_norm([np.array([np.inf, 1.0]), np.ones(1)], 1.0)
    assert norm == np.inf
    assert all(np.isnan(x).all() for x in found)


def test_functions_and_derivatives():
    x, y = np.array([3.0, -4.0]), np.array([[1.0]])

    def both(x, y):
        (a, b), norm = clip_by_global_norm([x, y], 2.0)
        return np.sum(a * a * a) + np.sum(b) + norm

    check_grads(both, [x, y])
    check_grads(lambda x: clip_by_norm(x, 10.0), [x])
    expected = both(x, y)
    np.testing.assert_allclose(cytape.function(both)(cytape.constant(x), y), expected)


@each("call", [
    lambda: clip_by_norm([np.ones(1)], 0.0), lambda: clip_by_value(np.ones(1), 1.0, -1.0),
    lambda: global_norm([None])])
def test_refused_arguments(call):
    with pytest.raises(ValueError, match=r"must be|all are None"):
        call()


@each("clip", [clip_by_norm, clip_by_global_norm])
@each("swapped", [np.ones(2), [np.ones(1)], {"w": np.ones(2)}, cytape.constant([1.0])])
def test_a_limit_that_is_no_number_is_refused(clip, swapped):
    with pytest.raises(TypeError, match="gradients come first"):
        clip(1.0, swapped)


@each("gradient", [np.array([3, 4]), np.array([3j, 4]), cytape.constant([3j, 4 + 0j])])
def test_norms_of_integers_and_complex_numbers(gradient):
    expected = np.asarray(gradient) / 5
    np.testing.assert_allclose(clip_by_norm([gradient], 1.0)[0], expected, 1e-15)
    np.testing.assert_allclose(clip_by_global_norm([gradient], 1.0)[0][0], expected, 1e-15)


def test_numbers_are_clipped():
    assert clip_by_norm([3.0, 0.5], 1.0) == [1.0, 0.5]


@each("power", [-200, 200])
def test_norms_neither_overflow_nor_vanish(power):
    size = 10.0**power
    given = [np.array([3 * size, 4 * size]), np.array([12 * size])]
    np.testing.assert_allclose(float(global_norm(given)), 13 * size, 1e-14)
    for options, expected in (({"clip_norm": size}, [-0.6, -0.8, -1]),
                              ({"global_clip_norm": size}, [-3 / 13, -4 / 13, -12 / 13])):
        w = [np.zeros(2), np.zeros(1)]
        cytape.optimizers.SGD(1.0, **options).update(w, given)
        np.testing.assert_allclose(np.concatenate(w) / size, expected, 1e-14)
    found = cytape.function(lambda x: clip_by_norm([x], size)[0])(given[0])
    np.testing.assert_allclose(found / size, [0.6, 0.8], 1e-14)
