"""Reductions that skip NaN: keywords, slices of nothing, warnings."""

import warnings

import numpy as np
import pytest

import cytape
from tests.cases import each

X = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
TAKEN = np.array([[True, True, False], [True, False, True]])


@each("call", [
    lambda x: np.nansum(x, where=TAKEN), lambda x: np.nanprod(x, axis=0, where=TAKEN),
    lambda x: np.nansum(x, axis=1, initial=2.0), lambda x: np.nanprod(x, initial=2.0),
    lambda x: np.nanmax(x, axis=1, initial=4.5), lambda x: np.nanmin(x, initial=-1.0, where=TAKEN),
    lambda x: np.nanmean(x, where=TAKEN), lambda x: np.nanvar(x, axis=1, where=TAKEN),
    lambda x: np.nanstd(x, ddof=1), lambda x: np.nanstd(x, correction=1, keepdims=True),
    lambda x: np.nanvar(x, mean=np.nanmean(x, keepdims=True)),
    lambda x: np.nansum(x, dtype="float32"), lambda x: np.nanmean(x, axis=1, dtype="float32")])
def test_keywords_are_numpys(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = call(cytape.constant(X)), call(X)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        gradient = cytape.grad(lambda x: np.sum(call(x)))(X)
    assert np.isfinite(gradient).all()
    assert not gradient[np.isnan(X)].any()


@each("function, words", [
    (np.nanmax, "All-NaN"), (np.nanmin, "All-NaN"), (np.nanmean, "Mean of empty slice"),
    (np.nanvar, "Degrees of freedom"), (np.nanstd, "Degrees of freedom")])
def test_slices_of_nothing_but_nan_warn(function, words):
    x = cytape.constant([[np.nan, np.nan], [1.0, 2.0]])
    with pytest.warns(RuntimeWarning, match=words):
        found = function(x, axis=1)
    assert np.isnan(found.numpy()).tolist() == [True, False]


def test_ties_share_and_equal_elements_have_no_deviation():
    assert cytape.grad(np.nanmax)(np.array([2.0, np.nan, 2.0])).tolist() == [0.5, 0, 0.5]
    assert cytape.grad(np.nanstd)(np.array([2.0, np.nan, 2.0])).tolist() == [0, 0, 0]


def test_integers_have_no_nan():
    x = np.array([[3, 1], [2, 5]])
    for function in (np.nansum, np.nanmax, np.nanmean, np.nanstd, np.nanprod):
        found = function(cytape.constant(x), axis=0)
        assert found.dtype == function(x, axis=0).dtype
        np.testing.assert_allclose(found, function(x, axis=0))
