"""`convolve` by autograd's signature, which is not SciPy's."""

import math
from typing import Any

import cytape.numpy as np
from cytape.ops.submodules.stack_correlation import stack_correlation_op


def convolve(
        A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """Convolve along some axes, sum products along others, and combine all others.

    Parameters
    ----------
    A, B : array_like
    axes : pair of sequences of int, optional
        Axes of `A` and of `B` to convolve along; all by default.
    dot_axes : pair of sequences of int, optional
        Axes to sum over.
    mode : {"full", "valid", "same"}

    Returns
    -------
    Tensor or ndarray
        The other axes of `A`, the other axes of `B`, and the convolved axes.

    Examples
    --------
    >>> import cytape
    >>> from cytape.autograd.scipy.signal import convolve
    >>> cytape.grad(lambda x: convolve(x, np.array([1.0, 2.0]))[1])(np.ones(2))
    array([2., 1.])
    """
    if mode not in ("full", "valid", "same"):
        raise AssertionError(f"mode is {mode!r}, but must be 'full', 'valid' or 'same'")
    A, B = np.asarray(A), np.asarray(B)
    if axes is None:
        axes = [range(A.ndim)] * 2
    a, others_a = _stacked(A, axes[0], dot_axes[0])
    b, others_b = _stacked(B, axes[1], dot_axes[1])
    lengths = list(zip(a.shape[2:], b.shape[2:], strict=True))
    exchanged = mode == "valid" and any(m < n for m, n in lengths)
    if exchanged:
        if any(m > n for m, n in lengths):
            raise ValueError(
                "one array must be the larger one along all axes to convolve, for mode 'valid'")
        a, b = b, a
    around = [_zeros(mode, n) for n in b.shape[2:]]
    result = stack_correlation_op(
        a, np.flip(b, tuple(range(2, b.ndim))),
        before=tuple([pair[0] for pair in around]), after=tuple([pair[1] for pair in around]))
    if exchanged:
        result = np.swapaxes(result, 0, 1)
    return result.reshape((*others_a, *others_b, *result.shape[2:]))


def _zeros(mode: str, n: int) -> tuple[int, int]:
    """Return the numbers of zeros before and after a signal to convolve with one of length `n`."""
    if mode == "full":
        return n - 1, n - 1
    return (n // 2, (n - 1) // 2) if mode == "same" else (0, 0)


def _stacked(x: Any, axes: Any, summed: Any) -> Any:
    """Merge the axes beside the convolved ones into two, and return the lengths of the first."""
    axes, summed = [axis % x.ndim for axis in axes], [axis % x.ndim for axis in summed]
    others = [axis for axis in range(x.ndim) if axis not in axes and axis not in summed]
    lengths = [[x.shape[axis] for axis in group] for group in (others, summed, axes)]
    x = np.transpose(x, [*others, *summed, *axes])
    return x.reshape([math.prod(lengths[0]), math.prod(lengths[1]), *lengths[2]]), lengths[0]
