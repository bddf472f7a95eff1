"""The modified Bessel function of order 0, `i0`, and the Kaiser window."""

from typing import Any

import numpy as np

from cytape.ops.calls.operands import plain
from cytape.ops.elementwise import where
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import elementwise
from cytape.tensor import convert_to_tensor

__all__ = ["i0", "kaiser"]

_BLOCK = 1 << 12  # elements

# Chebyshev coefficients of exp(-x) I1(x) / x for x to 8, and of exp(-x) sqrt(x) I1(x) beyond:
# Moshier, "Methods and programs for mathematical functions" (1989).
_NEAR = [
    2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16,
    -1.10559694773538630805e-15, 7.60068429473540693410e-15, -5.04218550472791168711e-14,
    3.22379336594557470981e-13, -1.98397439776494371520e-12, 1.17361862988909016308e-11,
    -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9,
    9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7,
    -8.56872026469545474066e-7, 3.47025130813767847674e-6, -1.32731636560394358279e-5,
    4.78156510755005422638e-5, -1.61760815825896745588e-4, 5.12285956168575772895e-4,
    -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
    2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1,
    -1.76416518357834055153e-1, 2.52587186443633654823e-1,
]
_FAR = [
    7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17,
    -3.20952592199342395980e-17, 2.96262899764595013876e-16, 3.30820231092092828324e-16,
    -1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14,
    4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13,
    -7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11,
    3.25260358301548823856e-11, -1.89749581235054123450e-11, -5.58974346219658380687e-10,
    -3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7,
    -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3,
    7.78576235018280120474e-1,
]


def _chebyshev(x, coefficients):
    b0, b1, b2 = coefficients[0], 0.0, 0.0
    for c in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return 0.5 * (b0 - b2)


def _in_blocks(function, x):
    """Call a function block by block, so that its temporaries fit into the cache."""
    x = np.asarray(x)
    if x.size <= _BLOCK:
        return function(x)
    flat = x.ravel()
    blocks = [function(flat[i:i + _BLOCK]) for i in range(0, x.size, _BLOCK)]
    return np.concatenate(blocks).reshape(x.shape)


def _i0(x):
    return np.i0(x).astype(x.dtype, copy=False)


def _i1(x):
    size = np.abs(np.asarray(x, np.float64))
    near = np.minimum(size, 8.0)
    value = _chebyshev(near / 2 - 2, _NEAR) * near * np.exp(near)
    is_far = size > 8
    if is_far.any():
        far = np.maximum(size, 8.0)
        of_far = _chebyshev(32 / far - 2, _FAR) * np.exp(far) / np.sqrt(far)
        value = np.where(is_far, of_far, value)
    return np.copysign(value, x).astype(np.result_type(x, np.float16))


def _i1_partial(y, x):
    at_origin = x == 0
    return i0_op(x) - where(at_origin, 0.5, y / where(at_origin, 1, x))


i1_op = elementwise("BesselI1", lambda x: _in_blocks(_i1, x), _i1_partial)
i0_op = elementwise("BesselI0", lambda x: _in_blocks(_i0, x), lambda y, x: i1_op(x))


@numpy_function(np.i0)
def i0(x) -> Any:
    """Return the modified Bessel function of order 0, as `numpy.i0`.

    Examples
    --------
    >>> from cytape import grad
    >>> grad(np.i0)(2.0).round(6)
    np.float64(1.590637)
    """
    x = convert_to_tensor(x)
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    if x.dtype.kind != "f":
        x = x.astype(np.float64)
    return i0_op(x)


@numpy_function(np.kaiser, "M", "beta")
def kaiser(M, beta) -> Any:  # noqa: N803 (NumPy's name)
    """Return the Kaiser window, as `numpy.kaiser`; it is differentiable in `beta`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.calculus.bessel import kaiser
    >>> kaiser(3, cytape.constant(0.0)).numpy()
    array([1., 1., 1.])
    """
    length = np.float64(plain(M))
    n = np.arange(length)
    if len(n) == 0:
        return beta * n
    if length == 1:
        return i0(beta * np.zeros(1))
    middle = (length - 1) / 2
    arcs = np.sqrt(1 - ((n - middle) / middle) ** 2)
    return i0(beta * arcs) / i0(beta)
