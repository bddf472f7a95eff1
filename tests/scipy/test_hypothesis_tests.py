"""Tests of samples: SciPy's statistics and p-values, their derivatives, refused options."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each

stats = pytest.importorskip("scipy.stats")
ours = pytest.importorskip("cytape.scipy.stats")
rng = np.random.default_rng(0)
TABLE = np.array([[16.0, 8.0], [12.0, 24.0]])
X, Y, Z = rng.gamma(2.0, size=(9, 2)), rng.gamma(2.5, size=(7, 2)), rng.gamma(3.0, size=(8, 2))
P = np.array([0.1, 0.3, 0.4])
COUNTS, EXPECTED = np.array([16.0, 18.0, 12.0, 14.0]), np.array([0.2, 0.3, 0.1, 0.4])


@each("name, samples, options", [
    ("ttest_1samp", (X, 1.2), {}), ("ttest_1samp", (X, X[:1]), {"alternative": "less"}),
    ("ttest_1samp", (X, 0.4), {"axis": None}),
    ("ttest_rel", (X, X[::-1]**2), {"alternative": "greater"}), ("ttest_ind", (X, Y), {}),
    ("ttest_ind", (X, Y), {"equal_var": False}), ("ttest_ind", (X.T, Y.T), {"axis": 1}),
    ("ttest_ind", (X, Y[:1]), {}),
    ("ttest_ind_from_stats", (1.0, 2.0, 5, 1.4, 2.1, 6), {"equal_var": False}),
    ("f_oneway", (X, Y, Z), {}), ("bartlett", (X, Y, Z), {}), ("bartlett", (X, Y), {"axis": None}),
    ("levene", (X, Y, Z), {}), ("levene", (X, Y, Z), {"center": "mean"}),
    ("skewtest", (X,), {}), ("kurtosistest", (X,), {"alternative": "less"}),
    ("skewtest", (X[:5],), {}), ("normaltest", (X,), {}), ("jarque_bera", (X,), {"axis": 0}),
    ("chisquare", (COUNTS,), {}), ("power_divergence", (COUNTS,), {"lambda_": 0.5}),
    *[("combine_pvalues", (P,), {"method": method})
      for method in ("fisher", "pearson", "mudholkar_george", "tippett", "stouffer")],
    ("combine_pvalues", (P,), {"method": "stouffer", "weights": [1.0, 2.0, 3.0]}),
    ("pointbiserialr", (X[:, 0] > 1, X[:, 1]), {})])
def test_statistics_and_pvalues(name, samples, options):
    function = getattr(ours, name)
    with np.errstate(all="ignore"):
        expected = getattr(stats, name)(*samples, **options)
    places = [i for i, x in enumerate(samples) if np.asarray(x).dtype.kind == "f"]

    def call(*moving):
        given = list(samples)
        for i, x in zip(places, moving, strict=True):
            given[i] = x
        return function(*given, **options)

    arrays = [np.asarray(samples[i]) for i in places]
    found = call(*map(cytape.constant, arrays))
    assert type(found).__name__ == type(expected).__name__
    for place, wanted in enumerate(expected):
        np.testing.assert_allclose(found[place], wanted, 1e-10)
        np.testing.assert_allclose(
            cytape.function(lambda *x, place=place: call(*x)[place])(*arrays), wanted, 1e-10)
        if np.all(np.isfinite(wanted)):
            check_grads(lambda *x, place=place: call(*x)[place], arrays, order=1 + (place == 0))
    assert type(function(*samples, **options)) is type(expected)


@each("power", [None, "log-likelihood", "mod-log-likelihood", "cressie-read", 3])
def test_frequencies_beside_expected_ones(power):
    expected = stats.power_divergence(COUNTS, EXPECTED * 60, 1, 0, power)

    def call(x):
        return ours.power_divergence(x, EXPECTED * np.sum(x), 1, 0, power)

    np.testing.assert_allclose(call(cytape.constant(COUNTS)), expected, 1e-12)
    check_grads(lambda x: call(x).statistic, [COUNTS])
    check_grads(lambda x: call(x).pvalue, [COUNTS], order=1)


@each("name, sizes", [
    ("f_oneway", (1, 3)), ("levene", (1, 3)), ("bartlett", (0, 3)), ("bartlett", (1, 3)),
    ("ttest_ind", (0, 3)), ("ttest_ind", (1, 1)), ("ttest_ind", (1, 3)), ("kstatvar", (0,)),
    *[(name, (1,)) for name in ("kstat", "kstatvar")],
    *[(name, (0,)) for name in ("tmean", "tvar", "tstd", "tsem", "tmin", "tmax", "iqr")]])
def test_few_elements(name, sizes):
    samples = [np.array([0.5, 2.0, 3.0])[:n] for n in sizes]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = getattr(stats, name)(*samples)
        found = getattr(ours, name)(*map(cytape.constant, samples))
    np.testing.assert_allclose(found, expected)


@each("table, options", [
    (TABLE, {}), (TABLE, {"correction": False}),
    (np.array([[7.0, 12.0, 3.0], [9.0, 4.0, 5.0]]), {"lambda_": "log-likelihood"}),
    (COUNTS, {}), (np.arange(1.0, 13).reshape(2, 3, 2), {})])
def test_contingency(table, options):
    found = ours.chi2_contingency(cytape.constant(table), **options)
    expected = stats.chi2_contingency(table, **options)
    assert type(found) is type(expected) and found.dof == expected.dof
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, 1e-10, 1e-12)
    for name in ("statistic", "pvalue"):
        check_grads(
            lambda x, name=name: getattr(ours.chi2_contingency(x, **options), name), [table],
            order=1)


def test_derivatives_of_a_group_of_one_element():
    check_grads(lambda x: ours.f_oneway(x, X[:, 0], Y[:, 0]).statistic, [X[:1, 1]])


@each("name", ["tmean", "tvar", "tsem", "iqr", "skewtest", "kurtosistest", "kstat", "f_oneway"])
def test_single_precision(name):
    x = X[:, 0].astype(np.float32)
    samples = (x, x[::2]) if name == "f_oneway" else (x,)
    found = getattr(ours, name)(*map(cytape.constant, samples))
    for one, wanted in zip(np.atleast_1d(found), np.atleast_1d(getattr(stats, name)(*samples)),
                           strict=True):
        np.testing.assert_allclose(one, wanted, 1e-4)
    assert {np.asarray(x).dtype for x in (found if isinstance(found, tuple) else [found])} == {
        np.dtype(np.float32)}


def test_confidence_intervals():
    found = ours.ttest_1samp(cytape.constant(X), 1.0).confidence_interval(0.9)
    np.testing.assert_allclose(found, stats.ttest_1samp(X, 1.0).confidence_interval(0.9))


def test_single_precision_and_unknown_extents():
    x = cytape.constant(X.astype(np.float32))
    result = ours.ttest_1samp(x, 1.2)
    assert result.statistic.dtype == result.pvalue.dtype == np.float32
    traced = cytape.function(
        lambda x, y: ours.ttest_ind(x, y).pvalue,
        input_signature=[cytape.Spec.of((None, 2), float)] * 2)
    np.testing.assert_allclose(traced(X, Y), stats.ttest_ind(X, Y).pvalue)


@each("call, error, match", [
    (lambda x: ours.ttest_ind(x, Y, trim=0.1), ValueError, "trim=0 only"),
    (lambda x: ours.ttest_rel(x, X, nan_policy="omit"), ValueError, "nan_policy='propagate' only"),
    (lambda x: ours.ttest_rel(x, X, alternative="more"), ValueError, "alternative"),
    (lambda x: ours.ttest_ind(x, Y, axis=(0, 1)), ValueError, "one axis"),
    (ours.f_oneway, TypeError, "At least two samples"),
    (ours.bartlett, ValueError, "at least two"),
    (lambda x: ours.levene(x, Y, center="trimmed"), ValueError, "'mean' or 'median'"),
    (lambda x: ours.levene(x, Y, center="mode"), ValueError, "center must be"),
    (lambda x: ours.chisquare(x, 2 * X), ValueError, "sum of the observed"),
    (lambda x: ours.chi2_contingency(-x), ValueError, "must be nonnegative"),
    (lambda x: ours.chi2_contingency(x * [1.0, 0.0]), ValueError, "zero element"),
    (lambda x: ours.power_divergence(x, lambda_="best"), ValueError, "invalid string"),
    (lambda x: ours.combine_pvalues(x / 9, "best"), ValueError, "Invalid method"),
    (lambda x: ours.f_oneway(x, Y, equal_var=False), ValueError, "equal_var=True only")])
def test_refused_options(call, error, match):
    with pytest.raises(error, match=match):
        call(cytape.constant(X))
