"""Initial weights of layers: arrays for variables, drawn so that signals keep their variance.

The number of inputs of an output is the product of all extents of a shape but the last; the last is
the number of outputs (times the size of the kernel, for filters).
"""

import math
from typing import Any

import numpy as np

__all__ = ["glorot_uniform", "he_normal", "lecun_normal", "orthogonal"]


def glorot_uniform(shape, seed=None, dtype=np.float64) -> Any:
    """Return uniform weights of the variance 2 / (inputs + outputs), for `tanh` and `sigmoid`.

    Parameters
    ----------
    shape : tuple of int
        Of at least two axes.
    seed : int or numpy.random.Generator, optional
    dtype : dtype, optional

    Examples
    --------
    >>> from cytape.nn import glorot_uniform
    >>> glorot_uniform((2, 4), seed=0).shape
    (2, 4)
    """
    inputs, outputs = _fans(shape)
    limit = math.sqrt(6 / (inputs + outputs))
    return np.random.default_rng(seed).uniform(-limit, limit, shape).astype(dtype)


def he_normal(shape, seed=None, dtype=np.float64) -> Any:
    """Return normal weights of the variance 2 / inputs, for `relu`; see `glorot_uniform`.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape.nn import he_normal
    >>> he_normal((3, 3, 8, 16), seed=0, dtype=np.float32).dtype
    dtype('float32')
    """
    return _normal(shape, 2, seed, dtype)


def lecun_normal(shape, seed=None, dtype=np.float64) -> Any:
    """Return normal weights of the variance 1 / inputs, for `selu`; see `glorot_uniform`.

    Examples
    --------
    >>> from cytape.nn import lecun_normal
    >>> lecun_normal((2, 4), seed=0).shape
    (2, 4)
    """
    return _normal(shape, 1, seed, dtype)


def orthogonal(shape, seed=None, gain=1.0, dtype=np.float64) -> Any:
    """Return a random matrix with orthonormal rows or columns, whichever are fewer, times `gain`.

    Examples
    --------
    >>> from cytape.nn import orthogonal
    >>> w = orthogonal((4, 2), seed=0)
    >>> (w.T @ w).round(6) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    rows, columns = math.prod(_extents(shape)[:-1]), shape[-1]
    draws = np.random.default_rng(seed).normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(draws)
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # uniformly distributed
    return (gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)


def _extents(shape):
    extents = tuple(shape)
    if len(extents) < 2:
        raise ValueError(f"weights must have at least two axes, got shape {extents}: write "
                         "(inputs, outputs); offsets begin as numpy.zeros(outputs)")
    return extents


def _fans(shape):
    *kernel, inputs, outputs = _extents(shape)
    return math.prod(kernel) * inputs, math.prod(kernel) * outputs


def _normal(shape, scale, seed, dtype):
    spread = math.sqrt(scale / max(_fans(shape)[0], 1))
    return np.random.default_rng(seed).normal(0.0, spread, shape).astype(dtype)
