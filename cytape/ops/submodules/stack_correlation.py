"""Cross-correlation of stacks of padded signals in any number of dimensions, summed over channels.

``z[p, q, s] = sum over d and k of x[p, d, s + k] y[q, d, k]``, where s and k are positions in the
dimensions. `before` and `after` are numbers of zeros around x, per dimension; negative ones
leave so many of its numbers out. The derivatives are
correlations of the same form.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.rearranging import flip
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import swapaxes
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["stack_correlation_op"]


def _correlate(x, y, before, after):
    """Multiply the matrix of windows of `x` by the matrix of signals of `y`."""
    if any(before) or any(after):
        ends = list(zip(x.shape[2:], map(int, before), map(int, after), strict=True))
        padded = np.zeros((*x.shape[:2], *[m + i + j for m, i, j in ends]), x.dtype)
        inside = [slice(max(i, 0), i + m + min(j, 0)) for m, i, j in ends]
        read = [slice(max(-i, 0), m + min(j, 0)) for m, i, j in ends]
        padded[(..., *inside)] = x[(..., *read)]
        x = padded
    (p, d, *extents), (q, e, *sizes) = x.shape, y.shape
    counts = [m - n + 1 for m, n in zip(extents, sizes, strict=True)]
    if d != e or min(counts, default=1) < 1:
        raise ValueError(f"stacks of shapes {x.shape} and {y.shape} have no correlation")
    strides = x.strides
    windows = as_strided(
        x, (p, *counts, d, *sizes), (strides[0], *strides[2:], strides[1], *strides[2:]))
    n_products = d * math.prod(sizes)
    z = windows.reshape(p * math.prod(counts), n_products) @ y.reshape(q, n_products).T
    z = z.reshape(p, *counts, q)
    return z.transpose(0, z.ndim - 1, *range(1, z.ndim - 1))


def _spec(x, y, before, after):
    shapes = [shape_rules.shape_of(each, "correlation") for each in (x, y)]
    lengths = [None if m is None or n is None else m + i + j - n + 1
               for m, n, i, j in zip(shapes[0][2:], shapes[1][2:], before, after, strict=True)]
    return symbolic_spec(
        (shapes[0][0], shapes[1][0], *lengths), np.result_type(x.dtype, y.dtype))


def _for_first(op, g, y):
    sizes = y.shape[2:]
    if None in sizes:
        return NotImplemented
    return stack_correlation_op(
        g, swapaxes(flip(y, tuple(range(2, g.ndim))), 0, 1),
        before=tuple([n - 1 - i for n, i in zip(sizes, op.attrs["before"], strict=True)]),
        after=tuple([n - 1 - i for n, i in zip(sizes, op.attrs["after"], strict=True)]))


def _for_second(op, x, g):
    return swapaxes(
        stack_correlation_op(swapaxes(x, 0, 1), swapaxes(g, 0, 1), **op.attrs), 0, 1)


stack_correlation_op = multilinear(
    "StackCorrelation", _correlate, _for_first, _for_second, shape_rule=_spec)
