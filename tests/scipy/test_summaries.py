"""Summaries of samples: SciPy's values, derivatives by differences, refused options."""

import warnings

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
    ("gmean", {}), ("gmean", {"keepdims": True}), ("gmean", {"weights": X[::-1], "axis": (0, 1)}),
    ("hmean", {"weights": X[:, :1]}), ("pmean", {"p": 2, "weights": X[0], "axis": 1}),
    ("skew", {}), ("skew", {"axis": -1}),
    ("kurtosis", {"fisher": False}), ("kurtosis", {"axis": None}), ("sem", {}),
    ("sem", {"ddof": 0, "axis": 1}), ("sem", {"axis": (0, 1)}),
    ("variation", {"ddof": 1}), ("zscore", {}),
    ("zscore", {"axis": None, "ddof": 1}), ("hmean", {}), ("hmean", {"axis": 1, "keepdims": True}),
    ("pmean", {"p": 2.5}), ("pmean", {"p": 0, "axis": None}), ("moment", {"order": 3}),
    ("moment", {"order": 2, "center": 0.3}), ("zmap", {"compare": X[1:]**2}),
    ("zmap", {"compare": X[0], "axis": None, "ddof": 1}), ("circmean", {"axis": 0}),
    ("circmean", {"high": 2.0, "low": -1.0}), ("circvar", {"axis": 1}), ("circstd", {}),
    ("circstd", {"normalize": True, "axis": 0}), ("gstd", {}), ("gzscore", {"axis": 1}),
    ("tmean", {}), ("tmean", {"limits": (0.45, None), "axis": 0}),
    ("tvar", {"limits": (None, 2.0)}), ("tstd", {"axis": 1, "ddof": 0}),
    ("tsem", {"limits": (0.25, 3.0), "axis": None}), ("tmin", {"lowerlimit": 0.5}),
    ("tmax", {"upperlimit": 2.15, "axis": 1}),
    ("iqr", {}), ("iqr", {"axis": 1, "rng": (80, 20), "scale": 2.0, "keepdims": True}),
    ("iqr", {"scale": "normal", "interpolation": "midpoint"}), ("median_abs_deviation", {}),
    ("median_abs_deviation", {"axis": None, "scale": "normal", "center": np.mean}),
    ("trim_mean", {"proportiontocut": 0.3}), ("trim_mean", {"proportiontocut": 0.1, "axis": None}),
    *[("kstat", {"n": n, "axis": 0}) for n in (1, 2, 3, 4)], ("kstat", {}),
    ("kstatvar", {"n": 1, "axis": 0}), ("kstatvar", {"axis": 0})])
def test_summaries(name, options):
    function, expected = getattr(ours, name), getattr(stats, name)(X, **options)
    np.testing.assert_allclose(function(cytape.constant(X), **options), expected, 1e-12, 1e-14)
    np.testing.assert_array_equal(function(X, **options), expected)
    check_grads(lambda x: function(x, **options), [X])
    np.testing.assert_allclose(
        cytape.function(lambda x: function(x, **options))(X), expected, 1e-12, 1e-14)


@each("x", [np.zeros(0), np.zeros((0, 3)), np.zeros(3)])
@each("name", ["entropy", "gmean", "hmean", "circstd"])
@pytest.mark.filterwarnings("ignore")  # SciPy's
def test_summaries_of_nothing(x, name):
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            getattr(ours, name)(cytape.constant(x)), getattr(stats, name)(x))


@each("name, options", [
    ("tmean", {"limits": (0.4, 2.2), "inclusive": (False, True)}),
    ("tmin", {"lowerlimit": 2.15, "axis": 1}), ("tmax", {"upperlimit": 2.1, "inclusive": False})])
def test_limits_at_elements_and_rows_without(name, options):
    np.testing.assert_allclose(
        getattr(ours, name)(cytape.constant(X), **options), getattr(stats, name)(X, **options))


@each("options", [
    *[{"axis": axis, "method": method, "window_length": 1}
      for method in ("van es", "ebrahimi", "vasicek") for axis in (0, 1)],
    {"axis": None, "base": 2.0, "keepdims": True}])
def test_differential_entropy(options):
    x = 20 * X
    np.testing.assert_allclose(
        ours.differential_entropy(cytape.constant(x), **options),
        stats.differential_entropy(x, **options), 1e-12)
    check_grads(lambda x: ours.differential_entropy(x, **options), [x])


def test_description():
    with np.errstate(invalid="ignore"):  # the skewness of one element
        number = ours.describe(cytape.constant(2.5), ddof=0)
    assert number.nobs == 1 and number.variance == 0 and number.minmax[1] == 2.5
    for axis in (0, None):
        found = ours.describe(cytape.constant(X), axis)
        expected = stats.describe(X, axis)
        assert type(found) is type(expected) and found.nobs == expected.nobs
        for one, wanted in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, wanted, 1e-12)


@each("call, match", [
    (lambda x: ours.describe(x[:0]), "must not be empty"),
    (lambda x: ours.differential_entropy(x, window_length=2), "Window length"),
    (lambda x: ours.differential_entropy(x, method="best", window_length=1), "`method` must"),
    (lambda x: ours.tmean(x, (9.0, 10.0)), "No array values"),
    (lambda x: ours.iqr(x, scale="best"), "not a valid scale"),
    (lambda x: ours.kstat(x, 5), "1<=n<=4"), (lambda x: ours.kstatvar(x, 3), "n=1 or n=2"),
    (lambda x: ours.trim_mean(x, 0.8), "too big"),
    (lambda x: ours.median_abs_deviation(x, scale="best"), "not a valid scale")])
def test_arguments_that_scipy_refuses(call, match):
    for x in (X, cytape.constant(X)):
        with pytest.raises(ValueError, match=match):
            call(x)


def test_options_without_derivatives_are_refused():
    with pytest.raises(ValueError, match="nan_policy='propagate' only"):
        ours.skew(cytape.constant(X), nan_policy="omit")
    with pytest.raises(ValueError, match="describe takes tensors with bias=True"):
        ours.describe(cytape.constant(X), bias=False)
    with pytest.raises(ValueError, match="`base` must be a positive number"):
        ours.entropy(cytape.constant(X), base=-1)
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


def test_slopes_at_a_zero_are_infinite_in_that_element_only():
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(
        cytape.grad(ours.entropy)(x), [np.inf, np.log(2) * 2 / 9, -np.log(2) / 9])
    slopes = cytape.grad(lambda p: ours.entropy(p, np.ones(3)))(x)
    np.testing.assert_allclose(slopes, [-np.inf, -np.log(2) * 2 / 9, np.log(2) / 9])
    np.testing.assert_array_equal(cytape.grad(ours.gmean)(x), [np.inf, 0, 0])


def test_weights_of_a_mean_have_derivatives():
    slopes = cytape.grad(lambda w: ours.gmean(np.exp(X[0]), weights=w))(X[1])
    mean = X[0] @ X[1] / np.sum(X[1])
    np.testing.assert_allclose(slopes, np.exp(mean) * (X[0] - mean) / np.sum(X[1]))


@each("name", ["entropy", "gmean", "hmean", "moment", "sem", "skew", "variation"])
def test_numbers_and_more_degrees_of_freedom_than_elements(name):
    of_many = {"ddof": 5} if name in ("sem", "variation") else {}
    for x, options in ((np.array(3.0), {}), (X, of_many)):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(
                getattr(ours, name)(cytape.constant(x), **options),
                getattr(stats, name)(x, **options), 1e-12, 1e-12)


@each("weights, slope", [(None, 3.0), (np.array([1.0, 2.0, 1.0]), 4.0)])
def test_means_with_zeros(weights, slope):
    found = cytape.grad(lambda a: ours.hmean(a, weights=weights))(np.array([0.0, 1.0, 4.0]))
    np.testing.assert_allclose(found, [slope, 0, 0])
    assert ours.hmean(cytape.constant([0.0, 1.0]), weights=None) == 0


def test_the_distance_of_equal_samples_has_no_slope():
    value, slope = cytape.value_and_grad(ours.energy_distance)(np.ones(2), np.ones(3))
    assert value == 0 and not np.any(slope)


def test_the_deviation_of_equal_angles_has_no_slope():
    value, slope = cytape.value_and_grad(ours.circstd)(np.full(3, 0.7))
    assert value == 0 and not np.any(slope)


@each("name", ["tmean", "tvar", "tstd", "tsem"])
@each("extreme", [np.inf, np.nan])
@each("limits", [None, (0.0, 5.0), (0.0, np.inf)])
def test_elements_without_limits(name, extreme, limits):
    x = np.array([1.0, 2.0, extreme, 3.0])
    with np.errstate(invalid="ignore"):
        value, slope = cytape.value_and_grad(lambda x: getattr(ours, name)(x, limits))(x)
        np.testing.assert_allclose(value, getattr(stats, name)(x, limits))
    if extreme == np.inf and limits == (0.0, 5.0):
        rest = cytape.grad(lambda x: getattr(ours, name)(x, limits))(x[[0, 1, 3]])
        np.testing.assert_allclose(slope, np.insert(rest, 2, 0.0))
