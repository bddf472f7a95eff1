"""Distributions: what does not fit; their numbers and derivatives are in `test_random.py`."""

import numpy as np
import pytest

import cytape
import cytape.numpy as cnp


def test_shapes_that_do_not_fit():
    vector, matrix = np.ones(2), np.eye(2)
    for mean, cov in [(vector, np.eye(3)), (matrix, matrix), (vector, vector)]:
        with pytest.raises(ValueError, match="mean must be a vector"):
            cnp.random.multivariate_normal(cytape.constant(mean), cov)


def test_draws_have_the_covariance_that_was_given():
    cnp.random.seed(1)
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    for given in (cytape.constant(cov), cov):
        drawn = cnp.random.multivariate_normal(cytape.constant([1.0, -1.0]), given, 20_000)
        np.testing.assert_allclose(np.cov(drawn.numpy().T), cov, atol=0.08)
        np.testing.assert_allclose(np.mean(drawn.numpy(), 0), [1.0, -1.0], atol=0.08)


@pytest.mark.parametrize("name", ["pareto", "power", "weibull"])
def test_parameters_out_of_range_are_numpys_error(name):
    with pytest.raises(ValueError, match="a < 0|a <= 0"):
        getattr(cnp.random, name)(-1.0)
    with pytest.raises(ValueError, match="a < 0|a <= 0"):
        getattr(cnp.random, name)(-1.0, seed=3)
