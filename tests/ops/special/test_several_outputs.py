"""Functions of several outputs in all modes and places, and outputs that are not used."""

import numpy as np
import pytest

import cytape
from tests.ways import check

special = pytest.importorskip("scipy.special")


def test_all_ways():
    def f(x):
        sine, _, _, phase = special.ellipj(x, 0.3)
        return np.sum(sine * phase + special.sici(x)[1])

    def plain(x):
        sine, _, _, phase = special.ellipj(x, 0.3)
        return np.sum(sine * phase + special.sici(x)[1])

    check(f, plain, [0.4, 1.5])


def test_broadcast_operands_of_other_dtypes():
    u, m = cytape.constant(np.ones((3, 1), np.float32)), cytape.constant(np.full(4, 0.25))
    with cytape.GradientTape() as tape:
        tape.watch([u, m])
        y = special.ellipj(u, m)[2]
    assert y.shape == (3, 4)
    in_u, in_m = tape.gradient(y, [u, m])
    assert (in_u.shape, in_u.dtype, in_m.shape, in_m.dtype) == ((3, 1), "float32", (4,), "float64")
    step = 1e-6
    difference = special.ellipj(1.0, 0.25 + step)[2] - special.ellipj(1.0, 0.25 - step)[2]
    np.testing.assert_allclose(in_m.numpy(), 3 * difference / (2 * step), 1e-8)


def test_the_written_result():
    x, out = cytape.constant([0.5]), [cytape.constant(np.zeros(1)) for _ in range(2)]
    special.sici(x, out=tuple(out))
    np.testing.assert_array_equal(out[1].numpy(), special.sici([0.5])[1])
