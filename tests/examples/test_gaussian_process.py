"""The Gaussian process example: gradients and recovered parameters."""

import numpy as np
import pytest

from cytape.testing import check_grads

pytest.importorskip("scipy")
gaussian_process = pytest.importorskip("examples.gaussian_process")


def test_the_likelihood_is_the_normal_density_and_its_gradient_right():
    x, y = gaussian_process.observations(12)
    logarithms = np.log([1.2, 0.7, 0.3])
    covariance = gaussian_process.kernel(x, x, 1.2, 0.7) + (0.09 + 1e-10) * np.eye(12)
    np.testing.assert_allclose(
        gaussian_process.negative_log_likelihood(logarithms, x, y),
        (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2,
        1e-9)
    check_grads(lambda p: gaussian_process.negative_log_likelihood(p, x, y), [logarithms])


def test_parameters_are_recovered(capsys):
    amplitude, length, noise = gaussian_process.main(short=True)
    assert 0.7 < amplitude < 3 and 0.5 < length < 1.3 and 0.1 < noise < 0.3
    assert "fitted" in capsys.readouterr().out
