"""Geometric transforms of images: values, gradients in images and parameters, errors."""

import warnings

import numpy as np
import pytest

import cytape
from cytape.errors import SymbolicTensorError
from cytape.testing import check_grads
from tests.cases import each, sampled
from tests.ops.images.test_correlations import MODES, agree_with_scipy

scipy_ndimage = pytest.importorskip("scipy.ndimage")
ndimage = pytest.importorskip("cytape.scipy.ndimage")
X = np.random.default_rng(0).normal(size=(5, 6))
MATRIX, OFFSET = np.array([[0.91, 0.21], [-0.17, 1.12]]), np.array([0.33, -0.37])


@sampled(6, mode=MODES, order=[1, 3], prefilter=[True, False],
         factors=[{"zoom": (1.7, 0.6)}, {"zoom": 2}, {"zoom": 1.3, "grid_mode": True},
                  {"zoom": 1}])
def test_zoom(mode, order, prefilter, factors):
    options = {"order": order, "mode": mode, "cval": 0.8, "prefilter": prefilter, **factors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree_with_scipy(lambda library, x: library.zoom(x, **options), [X])


@sampled(5, mode=MODES, order=[1, 3], prefilter=[True, False], by=[0.3, (0.3, -1.2)])
def test_shift(mode, order, prefilter, by):
    options = {"order": order, "mode": mode, "cval": 0.8, "prefilter": prefilter}
    agree_with_scipy(lambda library, x, by: library.shift(x, by, **options), [X, np.array(by)])


@sampled(5, mode=MODES, order=[1, 3], prefilter=[True, False], shape=[None, (4, 3)],
         matrix=[MATRIX, MATRIX.diagonal()])
def test_affine_transforms(mode, order, prefilter, shape, matrix):
    options = {"order": order, "mode": mode, "cval": 0.8, "prefilter": prefilter,
               "output_shape": shape}

    def function(library, x, matrix, offset):
        return library.affine_transform(x, matrix, offset, **options)

    arrays = [X, matrix, OFFSET]
    found = function(ndimage, *map(cytape.constant, arrays))
    np.testing.assert_allclose(found, function(scipy_ndimage, *arrays), 1e-10, 1e-10)
    if order == 3 and shape is not None:  # linear interpolation has kinks at elements
        check_grads(lambda *arrays: function(ndimage, *arrays), arrays, order=1)


@sampled(6, mode=MODES, order=[1, 3], prefilter=[True, False],
         turn=[{"angle": 20.0}, {"angle": 90.0}, {"angle": 33, "reshape": False},
               {"angle": -50.0, "axes": (0, 1)}])
def test_rotations(mode, order, prefilter, turn):
    options = {"order": order, "mode": mode, "cval": 0.8, "prefilter": prefilter, **turn}
    agree_with_scipy(lambda library, x: library.rotate(x, **options), [X])


def test_rotations_of_stacks_and_angles():
    x = np.random.default_rng(0).normal(size=(3, 2, 4))
    agree_with_scipy(lambda library, x: library.rotate(x, 25.0, axes=(0, 2)), [x])
    check_grads(lambda a: ndimage.rotate(X, a, reshape=False, mode="mirror"), [np.array(33.0)])
    turned = ndimage.rotate(X, cytape.constant(33.0))
    np.testing.assert_allclose(turned, scipy_ndimage.rotate(X, 33.0), 1e-10, 1e-10)


def test_homogeneous_matrices():
    matrix = np.column_stack([MATRIX, OFFSET])
    agree_with_scipy(lambda library, x: library.affine_transform(x, matrix), [X])
    bottom = np.vstack([matrix, [0, 0, 1]])
    found = ndimage.affine_transform(X, cytape.constant(bottom))
    np.testing.assert_allclose(found, scipy_ndimage.affine_transform(X, bottom), 1e-10, 1e-10)


def test_complex_images():
    z = X + 1j * X.T.reshape(5, 6)
    for function in (lambda library, z: library.zoom(z, 1.5, mode="nearest"),
                     lambda library, z: library.zoom(z, 1.5, grid_mode=True, mode="nearest"),
                     lambda library, z: library.rotate(z, 15),
                     lambda library, z: library.shift(z, 0.3, cval=1j)):
        agree_with_scipy(function, [z])


def test_traced_transforms():
    shifted = cytape.function(lambda x, by: ndimage.shift(x, by))
    np.testing.assert_allclose(
        shifted(cytape.constant(X), cytape.constant(0.3)), scipy_ndimage.shift(X, 0.3), 1e-10)
    with pytest.raises(SymbolicTensorError, match="reshape=False"):
        cytape.function(lambda a: ndimage.rotate(X, a))(cytape.constant(3.0))
    unknown = [cytape.Spec.of((None, 3), float)]
    with pytest.raises(SymbolicTensorError, match="zoom needs to know the extents"):
        cytape.function(lambda x: ndimage.zoom(x, 2), input_signature=unknown)(X[:, :3])


@each("call", [lambda x: ndimage.zoom(x, (2, 2, 2)), lambda x: ndimage.zoom(x, 2, order=6),
               lambda x: ndimage.shift(x, (1.0, 2.0, 3.0)), lambda x: ndimage.shift(x, 1, mode="x"),
               lambda x: ndimage.affine_transform(x, np.eye(3)[:2, :1]),
               lambda x: ndimage.affine_transform(x, np.eye(4)),
               lambda x: ndimage.affine_transform(x, 2.0),
               lambda x: ndimage.affine_transform(x, np.ones((3, 3))),
               lambda x: ndimage.affine_transform(x, np.eye(2), (1.0, 2.0, 3.0)),
               lambda x: ndimage.rotate(x[0], 3), lambda x: ndimage.rotate(x, 3, axes=(0,)),
               lambda x: ndimage.rotate(x, 3, axes=(0, 2))])
def test_errors_are_scipys(call):
    with pytest.raises(Exception) as expected:
        call(X)
    with pytest.raises(expected.type):
        call(cytape.constant(X))
