"""Dropout."""

import numpy as np

from cytape.ops.elementwise import where
from cytape.ops.engine.arguments import is_tensor
from cytape.ops.shared.draws import random_in_shape_of

__all__ = ["dropout"]


def dropout(x, rate, seed=None):
    """Set elements chosen at random to zero, and divide the others by the share that is left.

    Parameters
    ----------
    x : array_like
    rate : float
        The probability that an element is dropped, at least 0 and below 1.
    seed : int, optional
        As for `cytape.numpy.random.random`. In a graph the choice is made anew in each run; the
        gradient is that of the choice that was made.

    Returns
    -------
    Tensor or ndarray
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If the rate is out of range.
    TypeError
        If `x` does not hold floating point numbers.

    Examples
    --------
    >>> import cytape
    >>> y = cytape.nn.dropout(np.ones(100), rate=0.5)
    >>> sorted(set(y.tolist()))
    [0.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
    dtype = x.dtype if is_tensor(x) else np.asarray(x).dtype
    if dtype.kind not in "fc":
        raise TypeError(f"dropout takes floating point numbers, got {dtype}")
    if rate == 0:
        return x
    precision = np.float32 if dtype in (np.float32, np.float16, np.complex64) else np.float64
    kept = random_in_shape_of(x, np.dtype(precision), seed) >= rate
    return where(kept, x / (1 - rate), 0)
