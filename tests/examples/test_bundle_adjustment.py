import numpy as np
import pytest

from cytape.testing import check_grads

pytest.importorskip("scipy")
from examples import bundle_adjustment


def test_errors_fall_to_the_noise():
    before, after = bundle_adjustment.main(short=True)
    assert before > 5 and after < bundle_adjustment.NOISE


def test_derivatives_of_pixels():
    rng = np.random.default_rng(0)
    check_grads(bundle_adjustment.pixels, [
        rng.normal(0, 0.3, (3, 6)) + [0, 0, 0, 0, 0, 5.0], rng.normal(size=(3, 3))], order=1)
