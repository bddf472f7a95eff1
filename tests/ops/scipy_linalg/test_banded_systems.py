"""Banded systems: bands of Hermitian matrices, stacks, all ways."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads
from tests import ways
from tests.cases import each

linalg = pytest.importorskip("scipy.linalg")
ours = pytest.importorskip("cytape.scipy.linalg")

BAND = np.array([[0, 1, 0.5, 0.2], [4.0, 5, 6, 5], [0.3, 0.1, -0.4, 0]])
UPPER = np.array([[0, 0, 0.3, 0.1], [0, 0.5, 0.3, 0.1], [3, 4, 5, 6.0]])
LOWER = np.array([[3, 4, 5, 6.0], [0.1, 0.2, 0.3, 0]])
B = np.arange(8.0).reshape(4, 2) + 1


@each("band, lower", [(UPPER, False), (LOWER, True)])
def test_hermitian_bands(band, lower):
    def f(band, b):
        return ours.solveh_banded(band, b, lower=lower)

    for imaginary in (0, 0.2j):
        whole = band + imaginary * (band < 1) * (band != 0)
        np.testing.assert_allclose(
            f(cytape.constant(whole), B), linalg.solveh_banded(whole, B, lower=lower), 1e-14)
        check_grads(f, [whole, B])
    check_grads(f, [np.stack([band, 2 * band]), B[:, 0]])


def test_stacks_of_bands():
    check_grads(lambda band, b: ours.solve_banded((1, 1), band, b),
                [np.stack([BAND, 2 * BAND]), B])


def test_all_ways():
    def dense(band):
        return np.diag(band[1]) + np.diag(band[0, 1:], 1) + np.diag(band[2, :-1], -1)

    ways.check(lambda band: np.sum(ours.solve_banded((1, 1), band, B) ** 2),
               lambda band: np.sum(np.linalg.solve(dense(band), B) ** 2), BAND,
               ways=ways.OF_KNOWN_EXTENTS)


def test_elements_outside_of_the_matrix_have_no_gradient():
    slopes = cytape.grad(lambda band: np.sum(ours.solve_banded((1, 1), band, B)))(BAND)
    assert slopes[0, 0] == slopes[2, 3] == 0 and np.count_nonzero(slopes) == 10


def test_errors_are_scipys():
    with pytest.raises(ValueError, match="lower|upper|diagonals"):
        ours.solve_banded((2, 2), cytape.constant(BAND), B)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        ours.solveh_banded(cytape.constant(-UPPER), B)
