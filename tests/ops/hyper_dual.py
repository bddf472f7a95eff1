"""First and second derivatives in plain NumPy, float64, with an estimate of what rounding does.

A hyper-dual array holds, along its first axis, a value, its derivatives in two parameters s and t,
and the mixed one: forward mode by hand, which has no rule in common with cytape. Along its second
axis it holds the same computation many times: once as it is, and repeatedly with every term of
every result moved at random by a rounding error of the dtype that the result has in the program.
How far those lie apart says how exact a program in these dtypes can be.
"""

import numpy as np

VALUE, S, T, ST = range(4)
ROUNDINGS = 2.0  # of a derivative's term in one op: some partials are several operations


class Rounding:
    """Moves terms at random, all but the first of each row of computations."""

    def __init__(self, rng, runs):
        self.rng, self.runs = rng, runs

    def __call__(self, terms, dtype, times=1.0):
        """Return terms of any number of components (first axis), rounded to a dtype."""
        info = np.finfo(dtype)
        moved = self.rng.uniform(0.5, 1.0, terms.shape) * self.rng.choice([-1, 1], terms.shape)
        moved[:, 0] = 0
        return terms + moved * times * (float(info.eps) * terms + float(info.smallest_subnormal))


def constant(array, runs):
    array = np.asarray(array, float)
    result = np.zeros((4, runs, *array.shape))
    result[VALUE] = array
    return result


def moving(array, s, t, rounding):
    """Return an input: what it is, is exact; its derivative is rounded as its gradient will be."""
    result = constant(array, rounding.runs)
    result[S], result[T] = s, t
    result[S:] = rounding(result[S:], array.dtype)
    return result


def aligned(*hypers):
    """Insert axes, so that the arrays can be broadcast behind the two leading axes."""
    ndim = max(x.ndim for x in hypers)
    return [x.reshape(x.shape[:2] + (1,) * (ndim - x.ndim) + x.shape[2:]) for x in hypers]


def elementwise(xs, value, partials, seconds, dtype, rounding):
    """Apply the chain rule.

    Parameters
    ----------
    xs : list of ndarray
        Hyper-dual.
    value : ndarray
        What the function has for their values.
    partials : list of ndarray
        The first derivatives.
    seconds : dict of (int, int) to list of ndarray
        The second ones, for i <= j: terms, which cancel only after they have been rounded.
    dtype : dtype
        The least precise of the program's operands and result: gradients are rounded to it.
    rounding : Rounding

    Returns
    -------
    ndarray
        Hyper-dual.
    """
    xs = aligned(*xs)
    result = np.empty(np.broadcast_shapes(*[x.shape for x in xs]))
    result[VALUE:S] = rounding(np.broadcast_to(value, result.shape[1:])[None], dtype)
    result[S:] = 0
    for x, partial in zip(xs, partials, strict=True):
        result[S:] += rounding(np.broadcast_to(partial * x[S:], result[S:].shape), dtype, ROUNDINGS)
    for (i, j), second in seconds.items():
        products = [xs[i][S] * xs[j][T]] + ([xs[i][T] * xs[j][S]] if i != j else [])
        for product_of_slopes in products:
            for part in second:
                term = np.broadcast_to(part * product_of_slopes, result[ST].shape)[None]
                result[ST:] += rounding(term, dtype, ROUNDINGS)
    return result


def multiply(x, y, dtype, rounding):
    a, b = (z[VALUE] for z in aligned(x, y))
    return elementwise([x, y], a * b, [b, a], {(0, 1): [np.ones_like(a * b)]}, dtype, rounding)


def power(x, n, dtype, rounding):
    """Raise to a power that is a number."""
    v = x[VALUE]
    slope, bend = n * v ** (n - 1.0), n * (n - 1) * v ** (n - 2.0)
    return elementwise([x], v**n, [slope], {(0, 0): [bend]}, dtype, rounding)


def exp(x, dtype, rounding):
    y = np.exp(x[VALUE])
    return elementwise([x], y, [y], {(0, 0): [y]}, dtype, rounding)


def log(x, dtype, rounding):
    v = x[VALUE]
    return elementwise([x], np.log(v), [1 / v], {(0, 0): [-1 / v**2]}, dtype, rounding)


def linear(function, x, dtype, rounding, axis=None):
    """Apply a function of an array and an axis, -1 or None for all, that is linear."""
    axis = tuple(range(2, x.ndim)) if axis is None else axis
    return rounding(function(x, axis), dtype)


def total(x, dtype, rounding, axis=None, keepdims=False):
    return linear(lambda x, axis: np.sum(x, axis, keepdims=keepdims), x, dtype, rounding, axis)


def mean(x, dtype, rounding, axis=None, keepdims=False):
    return linear(lambda x, axis: np.mean(x, axis, keepdims=keepdims), x, dtype, rounding, axis)


def variance(x, dtype, rounding, axis=None):
    center = mean(x, dtype, rounding, axis, keepdims=True)
    spread = x - center
    squares = multiply(spread, spread, dtype, rounding)
    # A gradient is 2 * spread: along s, what it is multiplied by along t has no mean subtracted,
    # and the terms cancel only after they have been rounded.
    for slope in x[S], center[S]:
        term = (2 * slope * x[T])[None]
        squares[ST:] += rounding(term, dtype, ROUNDINGS) - term
    return mean(squares, dtype, rounding, axis)


def product(x, dtype, rounding):
    """Multiply all elements."""
    elements = x.reshape(*x.shape[:2], -1)
    result = elements[..., 0]
    for i in range(1, elements.shape[-1]):
        result = multiply(result, elements[..., i], dtype, rounding)
    return result


def matmul(x, vector, dtype, rounding):
    """Multiply a matrix or vector by a vector."""
    return total(multiply(x, vector, dtype, rounding), dtype, rounding, axis=-1)
