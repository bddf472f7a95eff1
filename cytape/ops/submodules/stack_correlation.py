"""Cross-correlation of stacks of signals in any number of dimensions, with sums over channels.

``z[p, q, s] = sum over d and k of x[p, d, s + k] y[q, d, k]``, where s and k are positions in the
dimensions. The derivatives are correlations of the same form.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cytape.ops.choosing.padding import pad
from cytape.ops.engine.op_kinds import multilinear
from cytape.ops.rearranging import flip
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import swapaxes
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["stack_correlation_op"]


def _correlate(x, y):
    axes = tuple(range(2, x.ndim))
    windows = sliding_window_view(x, y.shape[2:], axes)
    n_axes = len(axes)
    summed = [1, *range(2 + n_axes, 2 + 2 * n_axes)]
    return np.moveaxis(np.tensordot(windows, y, (summed, [1, *axes])), -1, 1)


def _spec(x, y):
    shapes = [shape_rules.shape_of(each, "correlation") for each in (x, y)]
    lengths = [None if None in pair else pair[0] - pair[1] + 1
               for pair in zip(*[shape[2:] for shape in shapes], strict=True)]
    return symbolic_spec(
        (shapes[0][0], shapes[1][0], *lengths), np.result_type(x.dtype, y.dtype))


def _for_first(op, g, y):
    axes = tuple(range(2, g.ndim))
    if None in y.shape[2:]:
        return NotImplemented
    around = [(0, 0), (0, 0), *[(y.shape[axis] - 1,) * 2 for axis in axes]]
    return stack_correlation_op(pad(g, around), swapaxes(flip(y, axes), 0, 1))


def _for_second(op, x, g):
    return swapaxes(stack_correlation_op(swapaxes(x, 0, 1), swapaxes(g, 0, 1)), 0, 1)


stack_correlation_op = multilinear(
    "StackCorrelation", _correlate, _for_first, _for_second, shape_rule=_spec)
