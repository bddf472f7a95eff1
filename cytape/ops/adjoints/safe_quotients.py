"""Quotients in derivatives, such as a / (x**2 + y**2), with one division each.

The kernels are for float32 and float64; other dtypes use formulas. An operand that is derived from
the other operands has no partial: its derivative is already part of theirs.
"""

import numpy as np

import cytape.ops.special_kernels.quotient_ufuncs as quotient_ufuncs
from cytape.ops.calls.operands import is_tensor
from cytape.ops.engine.op_kinds import elementwise


def _exponent_less_one(x, y):
    return y - ((x != 0) | (y != 0))  # at 0 the exponent 0 stays 0, for 0 * 0**-1 is NaN


# x**(y - 1), with z = x**y
_power_less_one = elementwise(
    "PowerLessOne", quotient_ufuncs.power_less_one, None,
    lambda p, z, x, y: power_in_base(p, x, _exponent_less_one(x, y)),
    lambda p, z, x, y: p * np.log(x + (x == 0)),
)  # fmt: skip

# a / (x**2 + y**2), 0 at the origin
_over_squares = elementwise(
    "OverSquares", quotient_ufuncs.over_squares,
    lambda z, a, y, x: _over_squares(1, y, x), lambda z, a, y, x: _over_squares(-2 * y * z, y, x),
    lambda z, a, y, x: _over_squares(-2 * x * z, y, x),
)  # fmt: skip

# a / b, where b is the length of a vector with the component a
_unit = elementwise(
    "Unit", quotient_ufuncs.unit, lambda u, a, b: _unit(1, b), lambda u, a, b: -u * _unit(1, b))


def _has_kernels(x):
    """Return whether there are kernels for an operand; symbols of programs count as floats."""
    if isinstance(x, (np.ndarray, np.generic)) or is_tensor(x):
        return x.dtype in (np.float32, np.float64)
    return True


def power_in_base(z, x, y):
    """Differentiate z = x**y in x."""
    return y * (_power_less_one(z, x, y) if _has_kernels(x) else x ** _exponent_less_one(x, y))


def over_square(a, y, x):
    """Return a / (x**2 + y**2), 0 at the origin, without overflow of intermediates."""
    if _has_kernels(x):
        return _over_squares(a, y, x)
    x_is_larger = (x > y) == (x > -y)
    larger, smaller = np.where(x_is_larger, x, y), np.where(x_is_larger, y, x)
    larger = np.where(larger == 0, np.inf, larger)
    return a / larger / (larger + smaller * (smaller / larger))


def component_over_length(x, length):
    """Return x / length, 0 where the length of the vector is 0, the sign of an infinite x."""
    if _has_kernels(x):
        return _unit(x, length)
    length = np.where(length == 0, np.inf, length)
    if x.dtype.kind == "c":
        return x / length
    infinite = np.isinf(x)
    return np.where(infinite, np.sign(x), x) / np.where(infinite, 1, length)
