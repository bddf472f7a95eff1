"""The survival fit: known estimates, standard errors, and the product-limit estimate."""

import numpy as np
import pytest

import cytape
from cytape.testing import check_grads

pytest.importorskip("scipy.stats")


def test_estimates_are_those_in_the_literature():
    from examples.survival_fit import loss, main
    estimates, errors = main(short=True)
    # R's survreg: intercept 2.248, group 1.267, log(scale) -0.312
    np.testing.assert_allclose(estimates, [2.248, 1.267, 0.312], atol=1e-3)
    np.testing.assert_allclose(errors, [0.166, 0.3106, 0.147], atol=1e-3)
    np.testing.assert_allclose(cytape.grad(loss)(estimates), 0, atol=1e-4)
    check_grads(loss, [np.array([2.0, 0.5, 0.1])])


def test_kaplan_meier():
    from examples.survival_fit import TREATED, TREATED_EVENTS, kaplan_meier
    at, survival = kaplan_meier(TREATED, TREATED_EVENTS)
    np.testing.assert_array_equal(at, [6, 7, 10, 13, 16, 22, 23])
    np.testing.assert_allclose(survival[[0, -1]], [0.857, 0.448], atol=1e-3)
