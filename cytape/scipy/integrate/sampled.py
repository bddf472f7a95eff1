"""Integrals of samples: `trapezoid`, `simpson`, `romb` and cumulative ones."""

from typing import Any

import numpy as np
import scipy.integrate as _scipys

import cytape.numpy as cnp
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined

SHAPES_DIFFER = "If given, shape of x must be 1-D or the same as y."
LENGTHS_DIFFER = "If given, length of x along axis must be the same as y."


def _operands(name: str, *operands: Any) -> tuple | None:
    """Return operands, of which one is a tensor; None if none is. The first is integrated."""
    if not any(map(is_tensor, operands)):
        return None
    y, *others = map(joined, operands)
    if is_tensor(y) and y.dtype.kind not in "fc":
        y = y.astype(float)
    return together(cnp.asarray(y), *others)


def _along_last(y: Any, x: Any, axis: int, any_length: bool = False) -> tuple:
    """Return samples with the integrated axis last, and the distances of their points, or None."""
    if np.ndim(y) == 0 or not -y.ndim <= axis < y.ndim:
        raise np.exceptions.AxisError(axis, np.ndim(y))
    length = y.shape[axis]
    if length is None and not any_length:
        raise TypeError("the number of samples must be known, got an axis of unknown extent")
    y = cnp.moveaxis(y, axis, -1)
    if x is None:
        return y, None
    x = cnp.asarray(x)
    if x.ndim != 1:
        if x.ndim != y.ndim:
            raise ValueError(SHAPES_DIFFER)
        x = cnp.moveaxis(x, axis, -1)
    if None not in (x.shape[-1], length) and x.shape[-1] != length:
        raise ValueError(LENGTHS_DIFFER)
    return y, cnp.diff(x)


def _quotient(x: Any, y: Any) -> Any:
    """Divide; 0 where the divisor is 0."""
    is_zero = y == 0
    return cnp.where(is_zero, 0.0, x / cnp.where(is_zero, 1.0, y))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate samples by the trapezoidal rule, as `scipy.integrate.trapezoid`.

    Examples
    --------
    >>> import cytape
    >>> from cytape.scipy.integrate import trapezoid
    >>> cytape.grad(trapezoid)([1.0, 2.0, 5.0])
    [np.float64(0.5), np.float64(1.0), np.float64(0.5)]
    """
    given = _operands("trapezoid", y, x, dx)
    if given is None:
        return _scipys.trapezoid(y, x, dx, axis)
    return cnp.trapezoid(*given, axis=axis)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None,
) -> Any:
    """Integrate samples up to each, as `scipy.integrate.cumulative_trapezoid`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import cumulative_trapezoid
    >>> cytape.jacobian(cumulative_trapezoid)(np.ones(3))
    array([[0.5, 0.5, 0. ],
           [0.5, 1. , 0.5]])
    """
    given = _operands("cumulative_trapezoid", y, x, dx)
    if given is None:
        return _scipys.cumulative_trapezoid(y, x, dx, axis, initial)
    y, x, dx = given
    if cnp.shape(y)[axis] == 0:
        raise ValueError("At least one point is required along `axis`.")
    y, d = _along_last(y, x, axis, any_length=True)
    found = cnp.cumsum((dx if d is None else d) * (y[..., 1:] + y[..., :-1]) / 2.0, -1)
    if initial is not None:
        if initial != 0:
            raise ValueError("`initial` must be `None` or `0`.")
        found = cnp.concatenate([cnp.zeros_like(found[..., :1]), found], -1)
    return cnp.moveaxis(found, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate samples by Simpson's rule, as `scipy.integrate.simpson`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import simpson
    >>> cytape.grad(simpson)(np.ones(3))
    array([0.33333333, 1.33333333, 0.33333333])
    """
    given = _operands("simpson", y, x, dx)
    if given is None:
        return _scipys.simpson(y, x, dx=dx, axis=axis)
    y, x, dx = given
    y, d = _along_last(y, x, axis)
    n = y.shape[-1]
    if d is None:
        d = cnp.asarray(dx)[..., None] * np.ones(max(n - 1, 0))
    if n == 2:
        return 0.5 * d[..., 0] * (y[..., 1] + y[..., 0])
    end = n - 1 if n % 2 else n - 2  # number of intervals in pairs
    h0, h1 = d[..., 0:end:2], d[..., 1:end:2]
    both = h0 + h1
    ratio = _quotient(h0, h1)
    found = cnp.sum(both / 6.0 * (
        y[..., 0:end:2] * (2.0 - _quotient(1.0, ratio))
        + y[..., 1:end:2] * both * _quotient(both, h0 * h1)
        + y[..., 2:end + 1:2] * (2.0 - ratio)), -1)
    if n % 2 or n == 0:
        return found
    h0, h1 = d[..., -2], d[..., -1]  # Cartwright's correction for the last interval
    alpha = _quotient(2 * h1**2 + 3 * h0 * h1, 6 * (h0 + h1))
    beta = _quotient(h1**2 + 3.0 * h0 * h1, 6 * h0)
    eta = _quotient(h1**3, 6 * h0 * (h0 + h1))
    return found + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def _first_intervals(y: Any, d: Any) -> Any:
    """Return the integral over the first of each two intervals, by a parabola."""
    first, second = d[..., :-1], d[..., 1:]
    of_both, of_second = first / (first + second), first / second
    product = of_both * of_second
    return first / 6 * ((3 - of_both) * y[..., :-2] + (3 + product + of_both) * y[..., 1:-1]
                        - product * y[..., 2:])


def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None,
) -> Any:
    """Integrate samples up to each by Simpson's rule, as `scipy.integrate.cumulative_simpson`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import cumulative_simpson
    >>> cytape.grad(lambda y: cumulative_simpson(y)[-1])(np.ones(3))
    array([0.33333333, 1.33333333, 0.33333333])
    """
    given = _operands("cumulative_simpson", y, x, dx, initial)
    if given is None:
        return _scipys.cumulative_simpson(y, x=x, dx=dx, axis=axis, initial=initial)
    y, x, dx, initial = given
    if y.shape[axis] is not None and y.shape[axis] < 3:
        found = cnp.moveaxis(cumulative_trapezoid(y, x, dx, axis), axis, -1)
    else:
        y, d = _along_last(y, x, axis)
        if d is None:
            dx = cnp.asarray(dx)
            d = (cnp.moveaxis(dx, axis, -1) if dx.ndim else dx[None]) * np.ones(y.shape[-1] - 1)
        n = y.shape[-1]
        forwards = _first_intervals(y, d)
        backwards = cnp.flip(_first_intervals(cnp.flip(y, -1), cnp.flip(d, -1)), -1)
        # The first of two intervals, then the second one, by turns.
        is_second = np.arange(n - 1) % 2 == 1
        is_second[-1] = True
        parts = cnp.where(
            is_second, backwards[..., np.maximum(np.arange(n - 1) - 1, 0)],
            forwards[..., np.minimum(np.arange(n - 1), n - 3)])
        found = cnp.cumsum(parts, -1)
    if initial is not None:
        initial = cnp.asarray(initial)
        initial = cnp.moveaxis(initial, axis, -1) if initial.ndim else initial
        found = cnp.concatenate([
            cnp.zeros_like(found[..., :1]) + initial, found + initial], -1)
    return cnp.moveaxis(found, -1, axis)


def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Integrate samples by Romberg's rule, as `scipy.integrate.romb`.

    Examples
    --------
    >>> import cytape
    >>> import numpy as np
    >>> from cytape.scipy.integrate import romb
    >>> cytape.grad(romb)(np.ones(3))
    array([0.33333333, 1.33333333, 0.33333333])
    """
    given = _operands("romb", y, dx)
    if given is None:
        return _scipys.romb(y, dx, axis, show)
    y, dx = given
    y, _ = _along_last(y, None, axis)
    # The result is linear in the samples: SciPy's, of unit vectors, are the weights.
    return dx * cnp.sum(y * _scipys.romb(np.eye(y.shape[-1]), axis=0), -1)
