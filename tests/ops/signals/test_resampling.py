"""Trends, smoothing, other rates and analytic signals: values and gradients against SciPy's."""

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from tests.cases import each, sampled
from tests.ops.signals.test_linear_filters import agree_with_scipy
from tests.ways import check

scipy_signal = pytest.importorskip("scipy.signal")
signal = pytest.importorskip("cytape.scipy.signal")
X = np.random.default_rng(0).normal(size=(3, 40))
Z = X + 1j * X[::-1]


@each(x=[X, Z], options=[{}, {"type": "constant"}, {"bp": [10, 25]}, {"axis": 0, "bp": [0, 1]}])
def test_detrend(x, options):
    agree_with_scipy(lambda library, x: library.detrend(x, **options), [x])


@sampled(5, x=[X, Z], num=[1, 2, 3, 20, 21, 40, 41, 60, 61, 80],
         options=[{}, {"window": "hann"}])
def test_resample(x, num, options):
    agree_with_scipy(lambda library, x: library.resample(x, num, axis=1, **options), [x])
    agree_with_scipy(lambda library, x: library.resample(x[:, :39], num, axis=1, **options), [x])


def test_resample_with_times_windows_and_spectra():
    found = signal.resample(cytape.constant(X), 6, np.arange(3.0))
    for one, other in zip(found, scipy_signal.resample(X, 6, np.arange(3.0)), strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)
    for window in (lambda f: 1 + f**2, np.hanning(40)):
        agree_with_scipy(lambda library, x, window=window: library.resample(
            x, 30, axis=1, window=window), [X])
    agree_with_scipy(lambda library, z: library.resample(z, 30, axis=1, domain="freq"), [Z])


@each(rates=[(1, 2), (3, 2), (2, 3), (4, 2), (1, 5)], x=[X, Z])
def test_rates(rates, x):
    agree_with_scipy(lambda library, x: library.upfirdn([1.0, 2.0, 0.5, -1.0], x, *rates), [x])
    agree_with_scipy(lambda library, x: library.resample_poly(x, *rates, axis=1), [x])


@sampled(7, n_taps=[1, 3, 4, 7], rates=[(1, 1), (2, 1), (1, 3), (3, 2), (2, 5)], n=[1, 2, 6])
def test_taps(n_taps, rates, n):
    rng = np.random.default_rng(0)
    agree_with_scipy(lambda library, h, x: library.upfirdn(h, x, *rates),
                     [rng.normal(size=n_taps), rng.normal(size=(2, n))], order=2)


@each("padtype", ["mean", "median", "minimum", "maximum"])
def test_backgrounds(padtype):
    agree_with_scipy(lambda library, x: library.resample_poly(
        x, 2, 3, axis=1, padtype=padtype), [X])


def test_own_windows_have_gradients():
    window = np.random.default_rng(0).normal(size=7)
    agree_with_scipy(lambda library, x, window: library.resample_poly(
        x, 2, 3, axis=1, window=window), [X, window])


@each(mode=["interp", "mirror", "constant", "nearest", "wrap"],
      options=[(7, 2), (5, 3, 1, 0.5), (4, 2), (3, 1)])
def test_savgol_filters(mode, options):
    agree_with_scipy(lambda library, x: library.savgol_filter(x, *options, mode=mode), [X])
    if options == (3, 1):
        agree_with_scipy(lambda library, x: library.savgol_filter(x, 3, 1, axis=0, mode=mode), [X])


@each("n", [None, 39, 50, 1, 2])
def test_analytic_signals(n):
    agree_with_scipy(lambda library, x: library.hilbert(x, n), [X])


@each("options", [{}, {"zero_phase": False}, {"ftype": "fir"}, {"n": 3},
                  {"ftype": "fir", "zero_phase": False}])
def test_decimate(options):
    agree_with_scipy(lambda library, x: library.decimate(x, 3, **options), [X])


def test_dtypes_are_scipys():
    for x in (X.astype("float32"), (9 * X).astype(int)):
        for function in (
                lambda library, x: library.detrend(x), lambda library, x: library.hilbert(x),
                lambda library, x: library.savgol_filter(x, 5, 2),
                lambda library, x: library.resample(x, 20, axis=1),
                lambda library, x: library.resample_poly(x, 2, 3, axis=1),
                lambda library, x: library.decimate(x, 2)):
            expected = function(scipy_signal, x)
            found = function(signal, cytape.constant(x))
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@each("name", ["detrend", "hilbert", "savgol_filter", "resample_poly"])
def test_all_ways_agree(name):
    options = {"savgol_filter": (3, 1), "resample_poly": (2, 3)}.get(name, ())
    matrix = np.stack([np.imag(getattr(scipy_signal, name)(row, *options)) if name == "hilbert" else
                       getattr(scipy_signal, name)(row, *options) for row in np.eye(6)], -1)

    def function(x):
        y = getattr(signal, name)(x, *options)
        return np.sum((np.imag(y) if name == "hilbert" else y)**3)

    from tests.ways import OF_KNOWN_EXTENTS

    check(function, lambda x: np.sum((matrix @ x)**3), X[0, :6], rtol=1e-8,
          ways=OF_KNOWN_EXTENTS)


@each("call", [lambda x: signal.detrend(x, type="cubic"), lambda x: signal.detrend(x, bp=50),
               lambda x: signal.hilbert(1j * x), lambda x: signal.hilbert(x, 0),
               lambda x: signal.savgol_filter(x, 41, 2), lambda x: signal.savgol_filter(x, 3, 3),
               lambda x: signal.savgol_filter(x, 3, 1, mode="odd"),
               lambda x: signal.resample(x, 3, domain="wave"),
               lambda x: signal.resample(x, 3, window=np.ones(7)),
               lambda x: signal.resample_poly(x, 0, 1), lambda x: signal.resample_poly(x, 1.5, 1),
               lambda x: signal.resample_poly(x, 2, 1, padtype="no"),
               lambda x: signal.resample_poly(x, 2, 1, padtype="mean", cval=1.0),
               lambda x: signal.upfirdn([], x), lambda x: signal.upfirdn([1.0], x, 0),
               lambda x: signal.decimate(x, 2, ftype="fft"), lambda x: signal.decimate(x, 2.5)])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))


@each("call", [lambda x: signal.upfirdn([1.0, 2.0], x, mode="wrap"),
               lambda x: signal.resample_poly(x, 2, 1, padtype="line"),
               lambda x: signal.decimate(x, 2, ftype=scipy_signal.dlti([1.0], [1.0, 0.5]))])
def test_options_that_need_arrays(call):
    call(X)
    with pytest.raises(NotImplementedError, match="of tensors takes"):
        call(cytape.constant(X))


def test_lengths_must_be_known():
    unknown = [cytape.Spec.of((None,), float)]
    with pytest.raises(SymbolicTensorError, match="hilbert needs to know the length"):
        cytape.function(signal.hilbert, input_signature=unknown)(X[0])


@each(type=["constant", "linear"], dtype=["f2", "f4", "f8", "i4"])
def test_dtypes_of_trends_in_functions(type, dtype):
    x = np.arange(6).astype(dtype) ** 2
    expected = scipy_signal.detrend(x, type=type)
    found = cytape.function(lambda x: signal.detrend(x, type=type))(cytape.constant(x))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-2 if dtype == "f2" else 1e-4, 1e-5)
