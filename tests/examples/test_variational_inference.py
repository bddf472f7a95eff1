"""Variational inference: the posterior of the mean effect, and the gradient of the bound."""

import numpy as np
import pytest

import cytape

pytest.importorskip("scipy.stats")


def test_the_posterior_of_the_mean_is_close_to_the_exact_one():
    from examples.variational_inference import main
    (mean, spread), (exact, exact_spread), bounds = main(short=True)
    assert abs(mean - exact) < 0.3 * exact_spread
    assert 0.7 < spread / exact_spread < 1.2
    assert np.mean(bounds[-50:]) > np.mean(bounds[:10]) + 1


def test_the_gradient_of_the_bound():
    from examples.variational_inference import LOWER, N, bound
    rng = np.random.default_rng(0)
    means, entries = 0.1 * rng.normal(size=N), 0.1 * rng.normal(size=len(LOWER[0]))
    noise, direction = rng.normal(size=(4, N)), rng.normal(size=len(entries))
    slope = cytape.grad(lambda e: bound(means, e, noise))(entries) @ direction
    h = 1e-5
    above, below = (float(bound(means, entries + s * direction, noise)) for s in (h, -h))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), 1e-6)
