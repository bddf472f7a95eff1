"""Summaries of samples: SciPy's values, derivatives by differences, refused options."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")
X = np.array([[0.3, 1.2, 2.1], [0.9, 0.4, 3.5], [2.2, 1.1, 0.7], [1.4, 2.6, 0.2]])


@each("name, options", [
    ("entropy", {}), ("entropy", {"base": 2, "axis": 1}), ("entropy", {"qk": X[::-1]}),
    ("entropy", {"qk": X[0]}),
    ("gmean", {}), ("gmean", {"keepdims": True}), ("skew", {}), ("skew", {"axis": -1}),
    ("kurtosis", {"fisher": False}), ("kurtosis", {"axis": None}), ("sem", {}),
    ("sem", {"ddof": 0, "axis": 1}), ("variation", {"ddof": 1}), ("zscore", {}),
    ("zscore", {"axis": None, "ddof": 1}), ("hmean", {}), ("hmean", {"axis": 1, "keepdims": True}),
    ("pmean", {"p": 2.5}), ("pmean", {"p": 0, "axis": None}), ("moment", {"order": 3}),
    ("moment", {"order": 2, "center": 0.3}), ("zmap", {"compare": X[1:]**2}),
    ("zmap", {"compare": X[0], "axis": None, "ddof": 1})])
def test_summaries(name, options):
    function, expected = getattr(ours, name), getattr(stats, name)(X, **options)
    np.testing.assert_allclose(function(cytape.constant(X), **options), expected, 1e-12, 1e-14)
    np.testing.assert_array_equal(function(X, **options), expected)
    check_grads(lambda x: function(x, **options), [X])
    np.testing.assert_allclose(
        cytape.function(lambda x: function(x, **options))(X), expected, 1e-12, 1e-14)


def test_options_without_derivatives_are_refused():
    with pytest.raises(ValueError, match="nan_policy='propagate' only"):
        ours.skew(cytape.constant(X), nan_policy="omit")
    with pytest.raises(ValueError, match="weights=None only"):
        ours.gmean(cytape.constant(X), weights=np.ones(X.shape))
    with pytest.raises(ValueError, match="bias=True only"):
        ours.kurtosis(cytape.constant(X), bias=False)
    with pytest.raises(ValueError, match="single order only"):
        ours.moment(cytape.constant(X), [2, 3])
    with pytest.raises(ValueError, match="exponent of type int or float"):
        ours.pmean(cytape.constant(X), "2")


def test_means_of_negative_numbers_are_nan():
    x = cytape.constant([[1.0, -2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(np.isnan(ours.hmean(x)), [False, True])
    slopes = cytape.grad(lambda c: ours.zmap(X[0], c)[1])(X[1])
    step = np.array([1e-6, 0, 0])
    expected = (stats.zmap(X[0], X[1] + step) - stats.zmap(X[0], X[1] - step))[1] / 2e-6
    np.testing.assert_allclose(slopes[0], expected, 1e-7)
