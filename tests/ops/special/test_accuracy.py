"""Derivatives of special functions at many points against mpmath, a few points by default."""

import numpy as np
import pytest

pytest.importorskip("mpmath")
pytest.importorskip("scipy.special")

from tests.cases import each  # noqa: E402
from tests.ops.special.accuracy import errors  # noqa: E402
from tests.ops.special.references import REFERENCES  # noqa: E402


def assert_accurate(name, n, seed):
    check = REFERENCES[name]
    for place, output, arguments, found, right, error in errors(name, check, n, seed):
        worst = np.argmax(np.where(np.isnan(error), np.inf, error))
        assert error[worst] <= check.tolerance, (
            f"{name} in argument {place} of output {output} at {[a[worst] for a in arguments]}: "
            f"{found[worst]}, expected {right[worst]}")


@each(name=REFERENCES)
def test_derivatives_at_a_point(name):
    assert_accurate(name, 1, seed=7)


@pytest.mark.exhaustive
@each(name=REFERENCES)
def test_derivatives_at_many_points(name):
    assert_accurate(name, 50, seed=2)
