"""Sliding windows over an array, `numpy.lib.stride_tricks.sliding_window_view`."""

import numpy as np
from numpy.lib import stride_tricks
from numpy.lib.array_utils import normalize_axis_tuple

from cytape.ops.adjoints.extent_checks import with_extents
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import structural
from cytape.ops.shapes import shape_rules
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["sliding_window_view"]


def _windows_spec(x, *, window_shape, axis, **_):
    shape = list(shape_rules.shape_of(x, "sliding_window_view"))
    for along, n in zip(axis, window_shape, strict=True):
        shape[along] = None if shape[along] is None else shape[along] - n + 1
    return symbolic_spec((*shape, *window_shape), x.dtype)


sliding_windows_op = structural(
    "SlidingWindows",
    stride_tricks.sliding_window_view,
    None,
    shape_rule=_windows_spec,
    batch=batch_axis.along_axis,
)


@numpy_function(stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """Return all windows of a shape over an array, one for each position.

    As `numpy.lib.stride_tricks.sliding_window_view`, a view.

    Examples
    --------
    >>> import cytape
    >>> from numpy.lib.stride_tricks import sliding_window_view
    >>> cytape.grad(lambda x: np.sum(sliding_window_view(x, 2)))(np.ones(4))
    array([1., 2., 2., 1.])
    """
    x = convert_to_tensor(x)
    shape = shape_rules.shape_of(x.spec, "sliding_window_view")
    window_shape = tuple(np.atleast_1d(window_shape).tolist())
    known = np.broadcast_to(0, [sum(window_shape) if n is None else n for n in shape])
    stride_tricks.sliding_window_view(known, window_shape, axis)  # raises NumPy's errors
    axis = range(len(shape)) if axis is None else normalize_axis_tuple(
        axis, len(shape), allow_duplicate=True)
    least, taken = [], [0] * len(shape)  # by several windows along one axis
    for along, n in zip(axis, window_shape, strict=True):
        least.append((along, taken[along] + n))
        taken[along] += n - 1
    x = with_extents(
        x, ValueError, "window shape cannot be larger than input array shape", least=least)
    options = {"writeable": 1} if writeable else {}
    return sliding_windows_op(x, window_shape=window_shape, axis=tuple(axis), **options)
