"""Limits on values: `clip` to an interval, `nan_to_num` to finite numbers.

Derivatives at special points:

- `clip`: if the array equals a bound, the array gets the whole gradient; a bound that is NaN gets
  it, and so does an upper bound below the lower one.
- `nan_to_num`: replacements of NaN and infinities are constants.
"""

from typing import Any

import numpy as np

import cytape.ops.special_kernels.extrema as extrema
from cytape.ops.adjoints.complex_parts import imag, real
from cytape.ops.adjoints.conform import identity_op
from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_tensor, joined, only_numpy, values_of
from cytape.ops.comparisons import isfinite
from cytape.ops.elementwise import maximum, part_of_gradient, positive, where
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import elementwise, general
from cytape.ops.shapes import shape_rules

__all__ = ["clip", "nan_to_num"]

# At ties the array gets the whole gradient.
_where_unchanged = part_of_gradient("WhereUnchanged", extrema.where_unchanged)
_clip_below = elementwise(
    "ClipBelow", np.maximum,
    lambda z, x, low: lambda g: _where_unchanged(g, x, z),
    lambda z, x, low: ~((x >= low) | (x != x)))  # fmt: skip
_clip_above = elementwise(
    "ClipAbove", np.minimum,
    lambda z, x, high: lambda g: _where_unchanged(g, x, z),
    lambda z, x, high: ~((x <= high) | (x != x)))  # fmt: skip


def _part_of_high(z, x, low, high):
    raised = maximum(x, low)
    return (z != x) & ~((raised <= high) | (raised != raised))


_clip = elementwise(
    "Clip", extrema.clip,
    lambda z, x, low, high: lambda g: _where_unchanged(g, x, z),
    lambda z, x, low, high: ~((x >= low) | (x != x)) & ((low <= high) | (low != low)),
    _part_of_high,
)  # fmt: skip


@numpy_function(np.clip, "a", "a_min", "a_max", "min", "max")
def clip(
    a, a_min=np._NoValue, a_max=np._NoValue, out=None, *, min=np._NoValue, max=np._NoValue, **kwargs
) -> Any:
    """Limit values to an interval, as `numpy.clip`; the bounds may be differentiated too.

    The array gets the gradient where it is taken, also where it equals a bound; a bound gets it
    where it replaces the array. Upper bounds below the lower ones replace all elements.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.grad(lambda x: cytape.numpy.clip(x, 0, 1).sum())(np.array([-1.0, 0.5, 1.0, 2.0]))
    array([0., 1., 1., 0.])
    """
    only_numpy("clip", [a], **kwargs)
    if a_min is np._NoValue and a_max is np._NoValue:
        a_min, a_max = min, max
    elif a_min is np._NoValue or a_max is np._NoValue:
        raise TypeError("clip() takes both a_min and a_max, or neither; pass None for no bound")
    elif min is not np._NoValue or max is not np._NoValue:
        raise ValueError("clip() takes a_min and a_max, or min and max, not both")
    a, a_min, a_max = [np.asarray(x) if isinstance(x, (list, tuple, str)) else x
                       for x in together(a, a_min, a_max)]  # fmt: skip
    if not is_tensor(a):
        a = np.asarray(a)  # numbers too: they are not weak here
    if a.dtype.kind in "iu":  # bounds may be outside the range of the dtype
        limits = np.iinfo(a.dtype)
        a_min = None if type(a_min) is int and a_min <= limits.min else a_min
        a_max = None if type(a_max) is int and a_max >= limits.max else a_max
    has_min, has_max = (bound is not None and bound is not np._NoValue for bound in (a_min, a_max))
    if has_min and has_max and _keeps_dtype(a, a_min, a_max) and _is_interval(a_min, a_max):
        return _clip(a, a_min, a_max)
    if has_min:
        a = _clip_below(a, a_min)
    if has_max:
        return _clip_above(a, a_max)
    return a if has_min else positive(a)


def _is_interval(low, high):
    """Return whether every lower bound is at most the upper one."""
    if type(low) in (int, float) and type(high) in (int, float):
        return not low > high
    low, high = values_of(low), values_of(high)
    return low is not None and high is not None and not (low > high).any()


def _keeps_dtype(a, *bounds):
    """Return whether an array keeps its dtype in the result, so that numbers get it, too."""
    return np.result_type(a.dtype, *[getattr(x, "dtype", x) for x in bounds]) == a.dtype


# NaN and infinities become constants.
_nan_to_num = general(
    "NanToNum", np.nan_to_num,
    lambda op, g: where(isfinite(op.inputs[0]), g, 0),
    lambda op, dx: where(isfinite(op.inputs[0]), dx, 0),
    batched=lambda op, dx: where(isfinite(op.inputs[0]), dx, 0),
    shape_rule=shape_rules.elementwise(np.nan_to_num),
    batch=batch_axis.aligned,
)  # fmt: skip


@numpy_function(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None) -> Any:
    """Replace NaN and infinities by numbers, as `numpy.nan_to_num`; they get no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> cytape.grad(lambda x: cytape.numpy.nan_to_num(x).sum())(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    x = joined(x)
    replacements = {"nan": nan, "posinf": posinf, "neginf": neginf}
    if x.dtype.kind == "c":
        result = _nan_to_num(real(x), **replacements) + 1j * _nan_to_num(imag(x), **replacements)
    else:
        result = _nan_to_num(x, **replacements)
    if copy:
        return result
    x[...] = result
    return x if x.ndim else identity_op(x)
