"""Correlations of images: values and gradients in all boundary modes, errors."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ways import check

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror",
         "grid-constant"]


def agree_with_scipy(function, arrays, order=1):
    expected = function(scipy_ndimage, *arrays)
    found = function(ndimage, *map(cytape.constant, arrays))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-10, 1e-10)
    check_grads(lambda *arrays: np.real(function(ndimage, *arrays)), arrays, order=order)


def draw(shape, is_complex):
    rng = np.random.default_rng(len(shape))
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex else 0)


@sampled(13, name=["correlate", "convolve"], mode=MODES, cval=[0.0, 0.7], is_complex=[False, True],
         call=[((5, 4), (3, 2), 0, None), ((5, 4), (2, 3), (0, -1), None), ((3,), (5,), 0, None),
               ((3,), (4,), 1, None), ((4, 3, 3), (3, 2), (1, 0), (0, 2)), ((4, 3), (3,), -1, 1),
               ((2, 2), (5, 7), 0, None)])
def test_weights_of_several_axes(name, mode, cval, is_complex, call):
    shape, sizes, origin, axes = call
    options = {"mode": mode, "cval": cval, "origin": origin, "axes": axes}
    agree_with_scipy(lambda library, x, w: getattr(library, name)(x, w, **options),
                     [draw(shape, is_complex), draw(sizes, is_complex)])


@sampled(7, name=["correlate1d", "convolve1d"], mode=MODES, cval=[0.0, 0.7],
         is_complex=[False, True],
         call=[((5, 4), 3, 0, 0), ((5, 4), 4, 1, -1), ((3,), 7, -2, 0)])
def test_weights_of_one_axis(name, mode, cval, is_complex, call):
    shape, size, origin, axis = call
    options = {"mode": mode, "cval": cval, "origin": origin, "axis": axis}
    agree_with_scipy(lambda library, x, w: getattr(library, name)(x, w, **options),
                     [draw(shape, is_complex), draw((size,), is_complex)])


@sampled(6, mode=MODES, cval=[0.0, 0.7], is_complex=[False, True],
         options=[{"size": 3}, {"size": (2, 5), "origin": (0, 1)},
                  {"size": 4, "axes": 0, "origin": -1}, {"size": 1}])
def test_means(mode, cval, is_complex, options):
    agree_with_scipy(lambda library, x: library.uniform_filter(x, mode=mode, cval=cval, **options),
                     [draw((5, 4), is_complex)])


def test_second_order_and_constants():
    x, w = draw((5, 4), False), draw((3, 2), False)
    agree_with_scipy(lambda library, x, w: library.correlate(x, w, mode="mirror"), [x, w], 2)
    check_grads(lambda x, w, c: ndimage.convolve(x, w, mode="constant", cval=c),
                [x, w, np.array(0.3)])


def test_many_weights_use_fourier_transforms():
    x, w = draw((3, 4), False), draw((17, 17), False)
    agree_with_scipy(lambda library, x, w: library.correlate(x, w), [x, w])


def test_all_ways_agree():
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    weights = np.array([[1.0, 2.0], [0.5, -1.0]])
    matrix = np.stack([scipy_ndimage.correlate(row.reshape(2, 3), weights).ravel()
                       for row in np.eye(6)], -1)
    check(lambda x: np.sum(ndimage.correlate(x, weights)**3),
          lambda x: np.sum((matrix @ x.reshape(6))**3), x)
    check(lambda x: np.sum(ndimage.uniform_filter1d(x, 2, mode="constant", cval=x[0, 0])**3),
          lambda x: np.sum(((x + np.pad(x[:, :-1], ((0, 0), (1, 0))) + np.array(
              [[1.0, 0, 0], [1.0, 0, 0]]) * x[0, 0]) / 2)**3), x)


@each("call", [lambda x: ndimage.correlate(x, np.ones(3)),
               lambda x: ndimage.correlate(x, np.ones((3, 3)), origin=2),
               lambda x: ndimage.correlate(x, np.ones((3, 3)), mode="odd"),
               lambda x: ndimage.correlate(x, np.ones((3, 3)), mode=("wrap", "wrap")),
               lambda x: ndimage.correlate(x, np.ones((3, 3)), axes=0),
               lambda x: ndimage.correlate1d(x, np.ones((3, 3))),
               lambda x: ndimage.correlate1d(x, []), lambda x: ndimage.correlate1d(x, [1.0], 2),
               lambda x: ndimage.uniform_filter1d(x, 0),
               lambda x: ndimage.uniform_filter1d(x, 2, 3),
               lambda x: ndimage.uniform_filter1d(x, 3, origin=2),
               lambda x: ndimage.uniform_filter(x, (2, 2, 2))])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(np.ones((3, 4)))
    with pytest.raises(expected.type):
        call(cytape.constant(np.ones((3, 4))))


@each("shape", [(0, 3), (3, 0)])
def test_gradients_of_empty_images(shape):
    for f in (lambda x: ndimage.gaussian_filter(x, 1.0), lambda x: ndimage.uniform_filter(x, 2),
              lambda x: ndimage.correlate(x, np.ones((2, 2))), ndimage.sobel, ndimage.laplace):
        assert f(cytape.constant(np.zeros(shape))).shape == shape
        assert cytape.grad(lambda x: np.sum(f(x)))(np.zeros(shape)).shape == shape  # noqa: B023
