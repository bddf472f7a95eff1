"""`logsumexp`, `softmax` and `log_softmax` by SciPy's signatures.

The ops are those of `cytape.nn`; only weighted sums are composed here.
"""

from typing import Any

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined
from cytape.ops.comparisons import isfinite
from cytape.ops.creation import stop_gradient_op
from cytape.ops.elementwise import absolute, exp, log, sign, where
from cytape.ops.neural import neural_ops
from cytape.ops.reductions import max_op, sum
from cytape.ops.shaping import ndim, squeeze

__all__ = ["log_softmax", "logsumexp", "softmax"]


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False) -> Any:
    """Return the logarithm of a weighted sum of exponentials, as `scipy.special.logsumexp`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.special import logsumexp
    >>> cytape.grad(logsumexp)(np.array([1000.0, 1000.0]), b=np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    a, b = joined(a), joined(b)
    if not is_tensor(a) and not is_tensor(b):
        return special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)
    is_complex = np.iscomplexobj(a) or np.iscomplexobj(b)
    if b is None and not return_sign and not is_complex:
        return neural_ops.logsumexp(a, axis, keepdims)
    a, b = np.broadcast_arrays(*together(a, a.dtype.type(1) if b is None else b))
    largest = max_op(
        stop_gradient_op(where(b == 0, -np.inf, np.real(a))), axis=axis, keepdims=True)
    largest = where(isfinite(largest), largest, 0)
    shifted = a - largest
    most = float(np.log(np.finfo(shifted.dtype).max)) - 1
    is_huge = (b == 0) & (np.real(shifted) > most)  # the power, too, must be finite
    total = sum(b * exp(where(is_huge, most, shifted)), axis, keepdims=True)
    if is_complex:
        size = absolute(total) if return_sign else total
        sign_of_total = total / where(size == 0, 1, size)
    else:
        size = absolute(total) if return_sign else where(total < 0, np.nan, total)
        sign_of_total = sign(total)
    result = log(size) + largest
    if not keepdims:
        result, sign_of_total = squeeze(result, axis), squeeze(sign_of_total, axis)
    return (result, sign_of_total) if return_sign else result


def _axes(x, axis):
    return tuple(range(ndim(x))) if axis is None else axis


def softmax(x, axis=None) -> Any:
    """Return exponentials divided by their sum, as `scipy.special.softmax`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import softmax
    >>> softmax(cytape.constant([0.0, 0.0])).numpy()
    array([0.5, 0.5])
    """
    x = joined(x)
    return neural_ops.softmax(x, _axes(x, axis)) if is_tensor(x) else special.softmax(x, axis)


def log_softmax(x, axis=None) -> Any:
    """Return the logarithm of `softmax`, as `scipy.special.log_softmax`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.special import log_softmax
    >>> log_softmax(cytape.constant([1000.0, 0.0])).numpy()
    array([    0., -1000.])
    """
    x = joined(x)
    if not is_tensor(x):
        return special.log_softmax(x, axis)
    return neural_ops.log_softmax(x, _axes(x, axis))
