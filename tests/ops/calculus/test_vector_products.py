"""Products of vectors along axes: errors, and vectors of a plane."""

import warnings

import numpy as np
import pytest

import cytape


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_vectors_of_a_plane():
    x, y = np.array([1.0, 2.0]), np.array([[3.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(np.cross(cytape.constant(x), y), np.cross(x, y))
    np.testing.assert_array_equal(np.cross(cytape.constant(x), np.ones(3)), np.cross(x, np.ones(3)))


def test_nothing_warns_of_vectors_in_space():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.cross(cytape.constant(np.ones(3)), np.ones(3))


def test_a_vector_that_is_watched_after_its_conjugate_was_taken_is_followed():
    v, m = cytape.constant([1 + 2j, 3 - 1j]), cytape.constant([[1.0 + 1j, 2], [3, 4]])
    with cytape.GradientTape() as tape:
        tape.watch(m)
        y = np.sum(np.real(np.vecmat(v, m)))
        tape.watch(v)
    np.testing.assert_allclose(tape.gradient(y, v), [3 + 1j, 7])
