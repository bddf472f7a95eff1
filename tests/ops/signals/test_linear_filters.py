"""Recursive filters: values, gradients in coefficients, signals and states, errors."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ways import check

scipy_signal = pytest.importorskip("scipy.signal")
signal = pytest.importorskip("cytape.scipy.signal")
X = np.random.default_rng(0).normal(size=(2, 60))
SOS = scipy_signal.butter(4, 0.3, output="sos")
FREE = np.delete(SOS, 3, 1)


def with_ones(sos):
    return cnp.concatenate([sos[:, :3], np.ones((2, 1)), sos[:, 3:]], 1)


def agree_with_scipy(function, arrays, order=1):
    """Compare a function of a library and arrays for both libraries, and check its gradients."""
    expected = function(scipy_signal, *arrays)
    found = function(signal, *map(cytape.constant, arrays))
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, 1e-9, 1e-9)

    def total(*arrays):
        results = function(signal, *arrays)
        results = results if isinstance(results, tuple) else (results,)
        sums = [np.sum(np.real(x) * np.arange(1.0, x.size + 1).reshape(x.shape)) for x in results]
        return sum(sums, 0.0)

    check_grads(total, arrays, order=order)


@sampled(13, is_complex=[False, True], lengths=[(3, 3), (1, 3), (3, 1), (2, 4), (1, 1), (4, 2)],
         shape_and_axis=[((7,), 0), ((3, 6), -1), ((6, 3), 0), ((2, 2), 1)],
         has_state=[False, True])
def test_one_filter(is_complex, lengths, shape_and_axis, has_state):
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex else 0)

    (n_b, n_a), (shape, axis) = lengths, shape_and_axis
    b, a, x = draw(n_b), 0.3 * draw(n_a), draw(*shape)
    a[0] += 1.5
    states = list(shape)
    states[axis] = max(lengths) - 1
    has_state = has_state and max(lengths) > 1
    agree_with_scipy(
        lambda library, b, a, x, *zi: library.lfilter(b, a, x, axis, *zi),
        [b, a, x, *([draw(*states)] if has_state else [])], order=2)


@each("options", [{}, {"padtype": "even"}, {"padtype": "constant"}, {"padtype": None},
                  {"padlen": 5}, {"padlen": 0}])
def test_filters_that_run_both_ways(options):
    b, a = scipy_signal.butter(3, 0.3)
    agree_with_scipy(lambda library, b, a, x: library.filtfilt(b, a, x, **options), [b, a, X[0]])
    agree_with_scipy(lambda library, x: library.filtfilt(b, a, x, axis=0, **options), [X.T])
    agree_with_scipy(
        lambda library, sos, x: library.sosfiltfilt(with_ones(sos), x, **options), [FREE, X])
    agree_with_scipy(lambda library, x: library.sosfiltfilt(SOS, x, **options), [X])


def test_sections():
    zi = np.random.default_rng(0).normal(size=(2, 2, 2))
    x = X[:, :9]
    agree_with_scipy(lambda library, sos, x: library.sosfilt(with_ones(sos), x), [FREE, x], 2)
    agree_with_scipy(lambda library, x: library.sosfilt(SOS, x, 0), [x], 2)
    agree_with_scipy(lambda library, sos, x, zi: library.sosfilt(with_ones(sos), x, zi=zi),
                     [FREE, x, zi], 2)
    agree_with_scipy(lambda library, sos: library.sosfilt_zi(with_ones(sos)), [FREE])
    agree_with_scipy(lambda library, b, a: library.lfilter_zi(b, a),
                     [np.array([1.0, 2.0, 0.5]), np.array([2.0, -0.5])])
    agree_with_scipy(lambda library, b, a: library.lfilter_zi(b, np.concatenate([[0, 0], a])),
                     [np.array([0.3, 0.2, 0.1]), np.array([1.5, -0.4])])


def test_states_of_broadcast_shape():
    zi = cytape.constant([[0.5]])
    found = signal.lfilter([1.0], [1.0, -0.5], X, zi=zi)
    expected = scipy_signal.lfilter([1.0], [1.0, -0.5], X, zi=zi.numpy())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)


@each("name", ["float32", "float64"])
def test_dtypes_are_scipys(name):
    x, b, a = X.astype(name), np.ones(2, name), np.array([1, -0.5], name)
    assert signal.lfilter(b, a, cytape.constant(x)).dtype == name
    assert signal.sosfilt(SOS, cytape.constant(x)).dtype == float
    assert signal.filtfilt(b, a, cytape.constant(x)).dtype == name


@each("function", [
    lambda x: signal.lfilter(x[:2], cnp.concatenate([[2.0], x[2:4] / 4]), x),
    lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.5], x),
    lambda x: signal.sosfilt(SOS, x)])
def test_all_ways_agree(function):
    x = X[0, :7]
    check(lambda x: cnp.sum(function(x)**3), lambda x: np.sum(by_hand(function, x)**3), x,
          rtol=1e-8)


def by_hand(function, x):
    """Return the same by a loop over samples."""
    def run(b, a, x):
        y = []
        for n in range(len(x)):
            total = sum(b[k] * x[n - k] for k in range(len(b)) if k <= n)
            y.append((total - sum(a[k] * y[n - k] for k in range(1, len(a)) if k <= n)) / a[0])
        return y

    place = function.__code__.co_names
    if "sosfilt" in place:
        for section in SOS:
            x = run(section[:3], section[3:], x)
    elif "concatenate" in place:
        x = run(x[:2], [2.0, x[2] / 4, x[3] / 4], x)
    else:
        x = run([1.0, 0.5], [1.0, -0.5], x)
    return cnp.stack(x)


@each("call", [lambda x: signal.lfilter([], [1.0], x), lambda x: signal.lfilter([1.0], [0, 1.0], x),
               lambda x: signal.lfilter([[1.0]], [1.0], x),
               lambda x: signal.lfilter([1.0], [1.0], x, axis=2),
               lambda x: signal.lfilter([1.0], [1.0, 2.0], x, zi=np.zeros((2, 2))),
               lambda x: signal.sosfilt(np.ones((2, 5)), x),
               lambda x: signal.sosfilt(2 * SOS, x), lambda x: signal.sosfilt(SOS, x, zi=X),
               lambda x: signal.filtfilt([1.0], [1.0, 2.0], x, padlen=60),
               lambda x: signal.filtfilt([1.0], [1.0, 2.0], x, padtype="zero"),
               lambda x: signal.filtfilt([1.0], [1.0, 2.0], x, method="no")])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))


@each("irlen", [None, 3, 40])
def test_initial_states_by_gustafsson(irlen):
    b, a, x = np.array([0.2, 0.3, 0.1]), np.array([2.0, -0.8, 0.3]), X.T[:, :2]

    def f(library, b, a, x):
        return library.filtfilt(b, a, x, 0, method="gust", irlen=irlen)

    expected = f(scipy_signal, b, a, x)
    np.testing.assert_allclose(f(signal, b, a, cytape.constant(x)), expected, 1e-9, 1e-12)
    np.testing.assert_allclose(
        cytape.function(lambda b, a, x: f(signal, b, a, x))(b, a, x), expected, 1e-9, 1e-12)
    check_grads(lambda b, a, x: f(signal, b, a, x), [b, a, x], order=1)
    slope = cytape.grad(lambda x: np.sum(f(signal, [2.0], [0.5], x)))(x)
    np.testing.assert_allclose(slope, np.full(x.shape, 16.0))


def test_unsupported_calls_raise_early_errors():
    unknown = cytape.Spec.of((None,), float)
    with pytest.raises(SymbolicTensorError, match="length of the signal"):
        cytape.function(lambda x: signal.sosfiltfilt(SOS, x), input_signature=[unknown])(X[0])
