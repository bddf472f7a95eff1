"""The fit of the README: parameters within their errors, and a picture."""

import numpy as np
import pytest

pytest.importorskip("scipy.optimize")


def test_parameters_are_those_of_the_data(tmp_path):
    pytest.importorskip("matplotlib")
    from examples.oscillation_fit import NOISE, TRUE, fit, main, observations, oscillation
    parameters = main(picture=tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 10_000
    t, y = observations()
    fitted, covariance = fit(t, y)
    np.testing.assert_array_equal(parameters, fitted)
    deviation = fitted - TRUE
    assert deviation @ np.linalg.solve(covariance, deviation) < 13.3  # 99 %, 4 degrees of freedom
    assert 0.8 * NOISE < np.std(oscillation(fitted, t) - y) < 1.2 * NOISE
