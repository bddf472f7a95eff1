"""Loops of normalisation: all axes of small arrays, dtypes, large means."""

import itertools

import numpy as np
import pytest

from cytape.ops.neural import normalisation_loops
from cytape.ops.neural.normalisation import normalise_op
from tests.cases import each
from tests.ops.specs_nn import normalised
from tests.ways import gradient

SHAPES = [(4,), (17,), (2, 3), (9, 33), (3, 1, 2, 4), (2, 2, 2, 2, 2)]


@each("shape", SHAPES)
@each("centered", [True, False])
def test_all_axes(shape, centered, rng):
    x, g = rng.normal(size=shape), rng.normal(size=shape)
    for n in range(1, len(shape) + 1):
        for axis in itertools.combinations(range(len(shape)), n):
            options = {"axis": axis, "epsilon": 0.1, "centered": centered}
            expected = normalised(x, **options)
            for found, value in zip(normalise_op(x, **options), expected, strict=True):
                assert found.flags.c_contiguous
                np.testing.assert_allclose(found, value, 1e-12, 1e-14)
            y, reciprocal = expected
            slope = g - y * (y * g).mean(axis, keepdims=True)
            if centered:
                slope = slope - g.mean(axis, keepdims=True)
            np.testing.assert_allclose(
                gradient(lambda x, options=options: normalise_op(x, **options)[0] * g, x),
                reciprocal * slope, 1e-10, 1e-13)


@each("dtype", ["e", "f", "g", ">f8"])
def test_dtypes(dtype, rng):
    x = (rng.normal(size=(5, 6)) + 100).astype(dtype)[::2]
    y, reciprocal = normalise_op(x, axis=(1,), epsilon=0.1, centered=True)
    assert y.dtype == reciprocal.dtype == x.dtype
    expected = normalised(x.astype(float), (1,), 0.1, True)
    np.testing.assert_allclose(y, expected[0], 2e-3 if dtype == "e" else 1e-6, 1e-6)
    np.testing.assert_allclose(reciprocal, expected[1], 1e-3)


def test_numbers_whose_squares_overflow_warn():
    with pytest.warns(RuntimeWarning, match="overflow"):
        normalise_op(np.array([1e200, -1e200]), axis=(0,), epsilon=0.1, centered=True)
    x = np.array([1e30, -1e30], np.float32)  # its sums are those of double precision
    np.testing.assert_allclose(
        normalise_op(x, axis=(0,), epsilon=0.1, centered=True)[0], [1, -1], 1e-6)


def test_extents_of_the_loops():
    assert normalisation_loops.four_axes((2, 3, 4), (2,)) == (6, 1, 1, 4)
    assert normalisation_loops.four_axes((2, 3, 4), (0, 1)) == (1, 6, 4, 1)
    assert normalisation_loops.four_axes((2, 5, 6, 3, 4), (1, 2, 4)) == (2, 30, 3, 4)
    assert normalisation_loops.four_axes((2, 5, 6, 3), (0, 2)) is None
