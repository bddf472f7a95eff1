"""The example finds the estimates of the literature, by exact gradients."""

import numpy as np
import pytest

import cytape
from examples import kalman_filter


def test_estimates_are_those_of_durbin_and_koopman():
    log_variances, _, log_likelihood = kalman_filter.fit(kalman_filter.FLOWS)
    np.testing.assert_allclose(np.exp(log_variances), [15099, 1469], 2e-3)
    np.testing.assert_allclose(log_likelihood, -632.5456, atol=1e-3)


def test_the_gradient_is_that_of_central_differences():
    def loss(x):
        return kalman_filter.run_filter(x, kalman_filter.FLOWS[:20])[0]

    x, step = np.array([9.0, 7.0]), 1e-5 * np.eye(2)
    expected = [(loss(x + d) - loss(x - d)) / 2e-5 for d in step]
    np.testing.assert_allclose(cytape.grad(loss)(x), expected, 1e-6)


def test_short_mode_draws_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "kalman_filter.png"
    kalman_filter.main(short=True, path=path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "variance of the noise" in capsys.readouterr().out
