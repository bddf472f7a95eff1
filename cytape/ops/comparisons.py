"""Step functions, comparisons, logical and bitwise functions: not differentiable.

Their gradient is None, not zero. `heaviside` is differentiable in its second operand.
"""

from typing import Any

import numpy as np

from cytape.ops.calls.operands import is_given, mask_for, operand, with_out
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import elementwise, nondifferentiable
from cytape.ops.shapes import shape_rules
from cytape.tensor.values.spec import spec_like

# fmt: off
__all__ = [
    "all", "allclose", "any", "around", "array_equal", "array_equiv", "bitwise_and",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "equal", "fix", "floor", "floor_divide",
    "gcd", "greater", "greater_equal", "heaviside", "invert", "isclose", "iscomplex",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lcm", "left_shift",
    "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "not_equal", "right_shift", "rint", "round", "signbit", "trunc",
]
# fmt: on

_NoValue = np._NoValue


def _step(name, ufunc):
    """Declare a ufunc without partials; unlike `nondifferentiable`, on the fast path of ufuncs."""
    return elementwise(name, ufunc, *[None] * ufunc.nin)


def _plain_step(name, function):
    return nondifferentiable(
        name, function, shape_rule=shape_rules.elementwise(function), batch=batch_axis.aligned)


real_sign = _step("Sign", np.sign)

floor = _step("Floor", np.floor)
ceil = _step("Ceil", np.ceil)
trunc = _step("Trunc", np.trunc)
_fix = _plain_step("Fix", lambda x: np.trunc(x))  # numpy.fix itself is deprecated
rint = _step("Rint", np.rint)
_round = _plain_step("Round", np.round)


def round(a, decimals=0, out=None) -> Any:
    """Round to a number of decimals, as `numpy.round`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.round(1.25, 1)
    np.float64(1.2)
    """
    if out is not None:
        return with_out(np.round, out, a, decimals=decimals)
    return _round(a, decimals=decimals)


around = round
floor_divide = _step("FloorDivide", np.floor_divide)
heaviside = elementwise("Heaviside", np.heaviside, None, lambda z, x, y: x == 0)

equal = _step("Equal", np.equal)
not_equal = _step("NotEqual", np.not_equal)
less = _step("Less", np.less)
less_equal = _step("LessEqual", np.less_equal)
greater = _step("Greater", np.greater)
greater_equal = _step("GreaterEqual", np.greater_equal)
isfinite = _step("Isfinite", np.isfinite)
isinf = _step("Isinf", np.isinf)
isnan = _step("Isnan", np.isnan)
signbit = _step("Signbit", np.signbit)
_isposinf = _plain_step("Isposinf", np.isposinf)
_isneginf = _plain_step("Isneginf", np.isneginf)
isreal = _plain_step("Isreal", np.isreal)
iscomplex = _plain_step("Iscomplex", np.iscomplex)
isclose = _plain_step("Isclose", np.isclose)
allclose = nondifferentiable("Allclose", np.allclose, shape_rule=shape_rules.truth)
array_equal = nondifferentiable("ArrayEqual", np.array_equal, shape_rule=shape_rules.truth)
array_equiv = nondifferentiable("ArrayEquiv", np.array_equiv, shape_rule=shape_rules.truth)
isin_op = nondifferentiable(
    "Isin", np.isin,
    shape_rule=lambda x, *_, **__: spec_like(x, np.dtype(bool)), batch=batch_axis.only(0))


def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None) -> Any:
    """Return which elements are among others, as `numpy.isin`.

    Examples
    --------
    >>> import cytape
    >>> np.isin(cytape.constant([1.0, 2.0]), [2.0, 3.0]).numpy()
    array([False,  True])
    """
    return isin_op(
        element, test_elements, assume_unique=assume_unique, invert=invert, kind=kind)



def fix(x, out=None) -> Any:
    """Round towards zero, as `numpy.fix`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.fix([-1.7, 1.7])
    array([-1.,  1.])
    """
    if out is not None:
        return with_out(np.trunc, out, x)
    return _fix(x)


def isposinf(x, out=None) -> Any:
    """Return where elements are positive infinity, as `numpy.isposinf`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.isposinf([-np.inf, 1.0, np.inf])
    array([False, False,  True])
    """
    if out is not None:
        return with_out(np.isposinf, out, x)
    return _isposinf(x)


def isneginf(x, out=None) -> Any:
    """Return where elements are negative infinity, as `numpy.isneginf`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.isneginf([-np.inf, 1.0, np.inf])
    array([ True, False, False])
    """
    if out is not None:
        return with_out(np.isneginf, out, x)
    return _isneginf(x)


logical_and = _step("LogicalAnd", np.logical_and)
logical_or = _step("LogicalOr", np.logical_or)
logical_xor = _step("LogicalXor", np.logical_xor)
logical_not = _step("LogicalNot", np.logical_not)
bitwise_and = _step("BitwiseAnd", np.bitwise_and)
bitwise_or = _step("BitwiseOr", np.bitwise_or)
bitwise_xor = _step("BitwiseXor", np.bitwise_xor)
invert = bitwise_not = bitwise_invert = _step("Invert", np.invert)
left_shift = bitwise_left_shift = _step("LeftShift", np.left_shift)
right_shift = bitwise_right_shift = _step("RightShift", np.right_shift)
bitwise_count = _step("BitwiseCount", np.bitwise_count)
gcd = _step("Gcd", np.gcd)
lcm = _step("Lcm", np.lcm)

all_op = nondifferentiable("All", np.all,
    shape_rule=shape_rules.to_truth, batch=batch_axis.along_axis)
any_op = nondifferentiable("Any", np.any,
    shape_rule=shape_rules.to_truth, batch=batch_axis.along_axis)


@numpy_function(np.all, "a", "axis", "where")
def all(a, axis=None, out=None, keepdims=False, *, where=_NoValue) -> Any:
    """Return whether all elements are true, as `numpy.all`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> bool(np.all(cytape.constant([1.0, 0.0])))
    False
    """
    if is_given(where):
        a = operand(a)
        a = logical_or(a, logical_not(mask_for(a, where)))
    return all_op(a, axis=axis, keepdims=keepdims)


@numpy_function(np.any, "a", "axis", "where")
def any(a, axis=None, out=None, keepdims=False, *, where=_NoValue) -> Any:
    """Return whether any element is true, as `numpy.any`.

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> bool(np.any(cytape.constant([1.0, 0.0])))
    True
    """
    if is_given(where):
        a = operand(a)
        a = logical_and(a, mask_for(a, where))
    return any_op(a, axis=axis, keepdims=keepdims)
