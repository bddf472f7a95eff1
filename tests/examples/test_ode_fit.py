import numpy as np
import pytest

import cytape
from cytape.testing import check_grads

pytest.importorskip("scipy")
from examples import ode_fit


def test_the_parameters_are_recovered():
    fitted = ode_fit.main(short=True)
    np.testing.assert_allclose(fitted, ode_fit.TRUTH, 0.1)
    times, counts = ode_fit.observe(20)
    slope = cytape.grad(ode_fit.misfit)(np.log(fitted), times, counts)
    assert np.abs(slope).max() < 1e-5  # a minimum


def test_the_gradient_of_the_misfit():
    times, counts = ode_fit.observe(20)
    check_grads(
        lambda x: ode_fit.misfit(x, times, counts), [np.log(1.1 * ode_fit.TRUTH)], order=1,
        rtol=1e-4)
