"""Sums over alignments, against enumeration of all paths of states."""

import itertools

import numpy as np
import pytest

from cytape.ops.neural.alignment_sums import forward_sums, state_shares

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(4, 2, 5))
SKIPS = np.array([[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], np.uint8)
N_STEPS = np.array([4, 3])


def paths(i, n_steps):
    for path in itertools.product(range(5), repeat=n_steps):
        steps = zip(path, path[1:], strict=False)
        if path[0] < 2 and all(
                late - early in (0, 1) or late - early == 2 and SKIPS[i, late]
                for early, late in steps):
            yield path, np.exp(sum(SCORES[t, i, s] for t, s in enumerate(path)))


def test_sums_are_those_of_all_paths():
    sums = np.exp(forward_sums(SCORES, SKIPS, N_STEPS))
    for i, n in enumerate(N_STEPS):
        for t in range(n):
            expected = np.zeros(5)
            for path, weight in paths(i, t + 1):
                expected[path[-1]] += weight
            np.testing.assert_allclose(sums[t, i], expected, 1e-13)
        np.testing.assert_array_equal(sums[n:, i], np.broadcast_to(sums[n - 1, i], (4 - n, 5)))


def test_shares_are_those_of_all_paths():
    sums = forward_sums(SCORES, SKIPS, N_STEPS)
    after = np.where(np.arange(5) >= 3, 0.0, -1e30) * np.ones((2, 1))
    totals = np.log(np.exp(sums[-1, :, 3:]).sum(1))
    found = state_shares(SCORES, SKIPS, N_STEPS, sums, after, totals)
    for i, n in enumerate(N_STEPS):
        expected = np.zeros((4, 5))
        for path, weight in paths(i, n):
            if path[-1] >= 3:
                expected[range(n), path] += weight / np.exp(totals[i])
        np.testing.assert_allclose(found[:, i], expected, 1e-12, 1e-15)


def test_nan_reaches_sums_and_shapes_are_checked():
    scores = SCORES.copy()
    scores[1, 0, 1] = np.nan
    assert np.isnan(forward_sums(scores, SKIPS, N_STEPS)[-1, 0, 3])
    with pytest.raises(ValueError, match="expected arrays of shapes"):
        forward_sums(SCORES, SKIPS[:, :3].copy(), N_STEPS)
