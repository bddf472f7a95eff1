"""Matrices to test with: far from singular ones, and their Hermitian parts."""

import numpy as np

import cytape.numpy as cnp


def regular(rng, shape):
    """Draw matrices with well separated eigenvalues and singular values; of vectors any."""
    values = rng.uniform(-0.5, 0.5, shape)
    if len(shape) > 1:
        m, n = shape[-2:]
        values += np.eye(m, n) * np.arange(2.0, 2 * n + 2, 2)
    return values


def turning(rng, shape):
    """Draw matrices without real eigenvalues."""
    angles = np.zeros(shape[-2:])
    for i in range(0, shape[-1], 2):
        angles[i, i + 1], angles[i + 1, i] = i + 2, -i - 2
    return rng.uniform(-0.5, 0.5, shape) + angles


def hermitian(a):
    """Return the Hermitian part of matrices, arrays or tensors."""
    half = cnp.asarray(a) / 2  # sums of integers would wrap
    return half + cnp.conj(cnp.swapaxes(half, -1, -2))


def squared(a):
    """Return positive definite matrices."""
    return cnp.matmul(a, cnp.conj(cnp.swapaxes(a, -1, -2)))


