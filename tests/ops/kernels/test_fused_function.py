"""Fused functions against NumPy: dtypes, numbers, layouts, sizes, functions without kernels."""

import numpy as np
import pytest

import cytape
from cytape import nn
from cytape.ops.kernels.fused_function import FusedFunction
from tests.cases import each


def formula(x, y):
    return np.where(x > y, np.exp(-np.abs(x)) * 2, np.minimum(x, 1) - y)


fused = FusedFunction(formula, 2)
LARGE = np.linspace(-4, 4, 6000)


@each("x, y", [
    (LARGE, 0.5), (LARGE, 1), (0.25, LARGE), (LARGE, LARGE[::-1].copy()),
    (LARGE.reshape(60, 100), LARGE.reshape(60, 100) - 1), (LARGE, np.array(0.5)),
    (LARGE, LARGE[::-1]), (LARGE.reshape(60, 100).T, 0.5), (LARGE.reshape(60, 100), LARGE[:100]),
    (LARGE[:5], 0.5), (LARGE[:0], 0.5), (0.1, 0.2), (LARGE.astype(int), 0.5), (LARGE, True),
    (LARGE, LARGE.astype("f4")), (LARGE.tolist(), 0.5), (LARGE.astype("f2"), 0.5)])
@each("dtype", [None, "float32"])
def test_values_shapes_and_dtypes_are_numpys(x, y, dtype):
    if dtype is not None and isinstance(x, np.ndarray) and x.dtype == np.float64:
        x = np.asarray(x, dtype, order="K")
        y = y.astype(dtype) if isinstance(y, np.ndarray) and y.dtype == np.float64 else y
    expected = formula(np.asarray(x) if isinstance(x, list) else x, y)[()]
    found = fused(x, y)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype != np.float64 else 1e-14)


def test_results_are_arrays_of_their_own():
    result = fused(LARGE, 0.5)
    result[:] = 0
    assert not np.shares_memory(result, LARGE)
    assert FusedFunction(lambda x: x + 0, 1)(LARGE).flags.owndata


@each("function", [lambda x: x, lambda x: np.sort(x), lambda x: np.cumsum(x) * 2])
def test_functions_without_kernels(function):
    np.testing.assert_array_equal(FusedFunction(function, 1)(LARGE), function(LARGE))


def test_arguments_that_do_not_fit():
    with pytest.raises(TypeError):
        fused(LARGE)
    with pytest.raises(ValueError):
        fused(LARGE, LARGE[:-1])


@each("name", ["elu", "celu", "selu", "leaky_relu", "log_sigmoid", "softsign", "hard_silu"])
def test_activations_of_large_arrays_and_tensors(name):
    function = getattr(nn, name)
    expected = np.concatenate([function(part) for part in np.split(LARGE, 6)])
    for found in (function(LARGE), function(cytape.constant(LARGE)),
                  cytape.function(function)(cytape.constant(LARGE))):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.isnan(function(np.where(LARGE > 3.9, np.nan, LARGE))[-1])
