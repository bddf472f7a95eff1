"""`autograd.scipy.signal.convolve`: SciPy's values where SciPy has them, sums, and axes."""

import numpy as np
import pytest

from cytape.testing import check_grads
from tests.cases import each

signal = pytest.importorskip("scipy.signal")
convolve = pytest.importorskip("cytape.autograd.scipy.signal").convolve

RNG = np.random.default_rng(0)


@each("a, b", [((5,), (3,)), ((6,), (2,)), ((6, 5), (3, 2)), ((4, 4), (4, 1))])
@each(mode=["full", "valid", "same"])
def test_values_are_scipys(a, b, mode):
    a, b = RNG.normal(size=a), RNG.normal(size=b)
    np.testing.assert_allclose(convolve(a, b, mode=mode), signal.convolve(a, b, mode), atol=1e-12)
    check_grads(lambda a, b: convolve(a, b, mode=mode), [a, b])
    if mode != "same":
        np.testing.assert_allclose(convolve(b, a, mode=mode), convolve(a, b, mode=mode), atol=1e-12)


def test_signals_may_be_shorter_than_kernels():
    a, b = RNG.normal(size=2), RNG.normal(size=5)
    check_grads(lambda a: (convolve(a, b, mode="same") ** 2).sum(), [a], order=2)


def test_other_axes_are_summed_or_combined():
    a, b = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 4, 2))
    for mode in ("full", "valid"):
        found = convolve(a, b, axes=([1], [2]), dot_axes=([0], [0]), mode=mode)
        expected = [sum(signal.convolve(a[i], b[i, j], mode) for i in range(3)) for j in range(4)]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    check_grads(lambda a, b: convolve(a, b, axes=([1], [2]), dot_axes=([0], [0])), [a, b])
    np.testing.assert_allclose(
        convolve(a, b, axes=([], []), dot_axes=([0], [0])), np.tensordot(a, b, ([0], [0])))
    outer = convolve(a, b[:, :, 0], axes=([-1], [-1]))
    assert outer.shape == (3, 3, 8)
    np.testing.assert_allclose(outer[1, 2], signal.convolve(a[1], b[2, :, 0]), atol=1e-12)


def test_bad_arguments():
    with pytest.raises(AssertionError, match="mode"):
        convolve(np.ones(3), np.ones(2), mode="half")
    with pytest.raises(ValueError, match="larger"):
        convolve(np.ones((3, 2)), np.ones((2, 3)), mode="valid")
