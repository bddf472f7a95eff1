"""Convolutions by `scipy.signal`: values, gradients, broadcast axes, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ways import check

scipy_signal = pytest.importorskip("scipy.signal")
signal = pytest.importorskip("cytape.scipy.signal")
MODES = ["full", "same", "valid"]


def agree_with_scipy(name, shapes, options, is_complex):
    """Check value, dtype and gradients, or that SciPy's error is raised."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex else 0)
              for shape in shapes]
    function = getattr(signal, name)
    try:
        expected = getattr(scipy_signal, name)(*arrays, **options)
    except ValueError:
        with pytest.raises(ValueError):
            function(*map(cytape.constant, arrays), **options)
        return
    found = function(*map(cytape.constant, arrays), **options)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-10, 1e-10)
    check_grads(lambda x, y: np.real(function(x, y, **options)), arrays, order=1)


@sampled(11, name=["convolve", "correlate"], mode=MODES, method=["auto", "direct", "fft"],
         shapes=[((5,), (3,)), ((5,), (4,)), ((3,), (6,)), ((4,), (4,)), ((5, 4), (2, 3)),
                 ((2, 3), (5, 4)), ((2, 5), (3, 2))], is_complex=[False, True])
def test_all_axes(name, mode, method, shapes, is_complex):
    agree_with_scipy(name, shapes, {"mode": mode, "method": method}, is_complex)


@sampled(11, name=["fftconvolve", "oaconvolve"], mode=MODES, axes=[None, 0, (1,), -1, (0, 1)],
         shapes=[((5, 4), (2, 3)), ((5, 4), (5, 2)), ((5, 4), (1, 2)), ((1, 4), (5, 2)),
                 ((5, 2), (5, 4)), ((2, 3), (5, 4))], is_complex=[False, True])
def test_some_axes(name, mode, axes, shapes, is_complex):
    agree_with_scipy(name, shapes, {"mode": mode, "axes": axes}, is_complex)


@sampled(11, name=["convolve2d", "correlate2d"], mode=MODES,
         ends=[("fill", 0), ("fill", 1.5), ("wrap", 0), ("symm", 0)],
         shapes=[((5, 4), (2, 3)), ((5, 4), (3, 2)), ((5, 4), (4, 2)), ((2, 3), (5, 4)),
                 ((4, 5), (1, 1))], is_complex=[False, True])
def test_matrices(name, mode, ends, shapes, is_complex):
    options = {"mode": mode, "boundary": ends[0], "fillvalue": ends[1]}
    agree_with_scipy(name, shapes, options, is_complex)


def test_numbers_and_arrays():
    two = cytape.constant(2 + 1j)
    assert signal.convolve(two, 3j).numpy() == scipy_signal.convolve(2 + 1j, 3j)
    assert signal.correlate(two, 3j).numpy() == scipy_signal.correlate(2 + 1j, 3j)
    assert signal.convolve(cytape.constant([1, 2]), [1, 1]).dtype == int
    assert type(signal.convolve([1.0, 2.0], [1.0])) is np.ndarray


@each("function", [lambda x, y: signal.convolve(x, y, "same"),
                   lambda x, y: signal.fftconvolve(x, y, "same"),
                   lambda x, y: signal.correlate(x, y, "full", "direct"),
                   lambda x, y: signal.oaconvolve(x, y, "valid")])
def test_all_ways_agree(function):
    x = np.linspace(-1, 1, 6)
    def products(x):
        return np.sum(function(x, x[:3])**3)

    matrix = np.stack([[function(e, d[:3]) for d in np.eye(6)] for e in np.eye(6)])
    matrix = np.moveaxis(matrix, -1, 0)
    check(products, lambda x: np.sum((x @ (matrix @ x[:, None])[..., 0].T)**3), x, rtol=1e-8)


def test_each_of_a_batch_has_its_own_operand():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(6.0).reshape(3, 2)
    for mode in MODES:
        found = cytape.vmap(lambda x, y, mode=mode: signal.fftconvolve(x, y, mode))(x, y)
        expected = [scipy_signal.fftconvolve(*pair, mode) for pair in zip(x, y, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        found = cytape.vmap(lambda y, mode=mode: signal.fftconvolve(x[0], y, mode))(y)
        expected = [scipy_signal.fftconvolve(x[0], row, mode) for row in y]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@each("name", ["convolve2d", "correlate2d"])
@each("mode", MODES)
def test_fill_values_may_be_tensors(name, mode):
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0).reshape(2, 2) - 1

    def f(fill, xp):
        return getattr(xp, name)(x.astype(np.float32), y, mode, "fill", fill)

    tensor = cytape.constant(np.array([[1.5]]))
    np.testing.assert_allclose(f(tensor, signal), f(1.5, scipy_signal), rtol=1e-14)
    if mode != "valid":
        zero, one = [f(fill, scipy_signal) for fill in (0, 1)]
        check(lambda fill: np.sum(f(fill, signal)**2),
              lambda fill: np.sum((zero + fill * (one - zero))**2), 1.5, rtol=1e-8)
    with pytest.raises(ValueError):
        f(cytape.constant([1.0, 2.0]), signal)


@each("call", [lambda x: signal.convolve(x, x[:, :2], "most"), lambda x: signal.convolve(x, [1.0]),
               lambda x: signal.convolve(x, x, method="slow"), lambda x: signal.correlate(x, 1.0),
               lambda x: signal.fftconvolve(x, x, axes=()), lambda x: signal.convolve2d(x[0], x[0]),
               lambda x: signal.convolve2d(x, x, boundary="odd"),
               lambda x: signal.convolve2d(x, x, "some"),
               lambda x: signal.fftconvolve(x, x[:2], axes=1)])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(np.ones((3, 4)))
    with pytest.raises(expected.type):
        call(cytape.constant(np.ones((3, 4))))


@each(name=["fftconvolve", "oaconvolve"], mode=["full", "same", "valid"],
      lengths=[(0, 3), (3, 0), (0, 0)])
def test_signals_without_elements(name, mode, lengths):
    arrays = [np.ones(n) for n in lengths]
    expected = getattr(scipy_signal, name)(*arrays, mode)
    for trace in (lambda f: f, cytape.function):
        found = trace(lambda x, y: getattr(signal, name)(x, y, mode))(*map(cytape.constant, arrays))
        np.testing.assert_array_equal(found, expected)
    gradients = cytape.grad(lambda x, y: np.sum(getattr(signal, name)(x, y, mode)), (0, 1))(*arrays)
    for gradient, x in zip(gradients, arrays, strict=True):
        np.testing.assert_array_equal(gradient, np.zeros(x.shape))


@each(name=["fftconvolve", "oaconvolve"], dtype=["f2", "f4", "i4", "c8"],
      shapes=[((7,), (3,)), ((7,), (1,)), ((3, 5), (1, 2))])
def test_dtypes_in_functions(name, dtype, shapes):
    x, y = [np.ones(shape, dtype) for shape in shapes]
    expected = getattr(scipy_signal, name)(x, y)
    found = cytape.function(getattr(signal, name))(cytape.constant(x), cytape.constant(y))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-5)
