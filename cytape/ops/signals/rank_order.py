"""Median, order and Wiener filters of signals, which are 0 beyond their ends."""

from typing import Any

import numpy as np
import scipy.signal as signal

from cytape.ops.calls.operands import operand
from cytape.ops.elementwise import where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.images.rank_filters import median_filter, rank_filter
from cytape.ops.reductions import mean
from cytape.ops.shaping import ndim
from cytape.ops.signals.convolutions import correlate

__all__ = ["medfilt", "medfilt2d", "order_filter", "wiener"]


def _sizes(size, n_axes):
    return (3 if size is None else size,) * n_axes if np.ndim(size) == 0 else tuple(size)


@numpy_function(signal.medfilt)
def medfilt(volume, kernel_size=None) -> Any:
    """Return medians of windows, as `scipy.signal.medfilt`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import medfilt
    >>> cytape.grad(lambda x: medfilt(x)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    x = operand(volume)
    sizes = _sizes(kernel_size, ndim(x))
    signal.medfilt(np.ones(sizes), sizes)  # SciPy's errors
    return median_filter(x, sizes, mode="constant")


@numpy_function(signal.medfilt2d)
def medfilt2d(input, kernel_size=3) -> Any:
    """Return medians of windows of an image, as `scipy.signal.medfilt2d`."""
    x = operand(input)
    if ndim(x) != 2:
        raise ValueError("object of too small depth for desired array")
    return medfilt(x, kernel_size)


@numpy_function(signal.order_filter)
def order_filter(a, domain, rank) -> Any:
    """Return elements of a rank in windows, as `scipy.signal.order_filter`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import order_filter
    >>> cytape.grad(lambda x: order_filter(x, np.ones(3), 0)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    domain = np.asarray(domain)
    signal.order_filter(np.ones(domain.shape), domain, rank)  # SciPy's errors
    return rank_filter(operand(a), rank, footprint=domain, mode="constant")


@numpy_function(signal.wiener, "im", "noise")
def wiener(im, mysize=None, noise=None) -> Any:
    """Return the Wiener filter of a signal, as `scipy.signal.wiener`.

    Derivatives in the signal and the noise power.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.signal import wiener
    >>> cytape.grad(lambda x: wiener(x, 3, 0.1)[1])(np.array([3.0, 1.0, 2.0])).round(3)
    array([-0.1 ,  1.05,  0.05])
    """
    x = operand(im)
    window = np.ones(_sizes(mysize, ndim(x)))
    means = correlate(x, window, "same") / window.size
    variances = correlate(x * x, window, "same") / window.size - means * means
    noise = mean(variances) if noise is None else noise
    is_noise = variances < noise
    kept = (x - means) * (1 - noise / where(is_noise, 1.0, variances)) + means
    return where(is_noise, means, kept)
