"""Elementwise functions: one declaration each, the partial derivatives beside the forward function.

A partial gets `(output, *inputs)` and returns d output / d input. Derivatives at special points:

- `power`: `x**0` has derivative 0 in `x`, also at 0; `0**y` has derivative 0 in `y` for `y >= 0`.
  The derivative in the exponent of a negative base is NaN.
- `absolute`, `fabs`, `hypot`, `arctan2` and `sinc` have derivative 0 at the origin.
- `hypot`: the derivative in an infinite operand is its sign.
- `sqrt` and `cbrt` have derivative inf at 0, as in mathematics.
- `maximum`, `minimum`, `fmax`, `fmin`: equal operands get half of the gradient each, as in JAX,
  PyTorch and autograd. If one operand is NaN, the one that is the result gets the gradient; if both
  are, the first.
- `logaddexp(x, -inf)` has derivative 1 in `x`, also where `x` is -inf.
- `sign` is not differentiable: its gradient is None, not zero.

The gradient of a complex input is the output's times the conjugate of the partial. `sign` and
`angle` of complex numbers, which are not holomorphic, are composed of other functions.
"""

import math
from typing import Any

import numpy as np

import cytape.ops.special_kernels.extrema as extrema
from cytape.ops.adjoints.complex_parts import imag, real
from cytape.ops.adjoints.conform import (
    as_operands,
    broadcast_batch_to,
    broadcast_to,
    is_one_number,
    sum_to,
)
from cytape.ops.adjoints.safe_quotients import component_over_length, over_square, power_in_base
from cytape.ops.adjoints.tangent_batches import broadcast_batch_like, is_known
from cytape.ops.calls.operands import is_tensor, is_written, joined
from cytape.ops.comparisons import floor, floor_divide, isinf, real_sign, rint
from cytape.ops.engine import batch_axis
from cytape.ops.engine.op_kinds import elementwise, enter, linear, passing
from cytape.ops.engine.where_op import WhereOp
from cytape.ops.shapes import shape_rules

# fmt: off
__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh",
    "cbrt", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees",
    "divide", "divmod", "exp", "exp2", "expm1", "fabs", "float_power", "fmax", "fmin",
    "fmod", "hypot", "imag", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "maximum", "minimum", "mod", "multiply", "negative",
    "positive", "pow", "power", "rad2deg", "radians", "real", "reciprocal", "remainder",
    "sign", "sin", "sinc", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
    "true_divide", "where",
]
# fmt: on

_LN2 = math.log(2)
_LN10 = math.log(10)

# ---- arithmetic ------------------------------------------------------------------------------

# The neutral number of a sum is -0.0: 0.0 + -0.0 is 0.0.
add = elementwise(
    "Add", np.add, lambda z, x, y: 1, lambda z, x, y: 1, neutral=(-0.0, -0.0))
subtract = elementwise(
    "Subtract", np.subtract, lambda z, x, y: 1, lambda z, x, y: -1, neutral=(None, 0.0))
multiply = elementwise(
    "Multiply", np.multiply, lambda z, x, y: y, lambda z, x, y: x, neutral=(1.0, 1.0))
divide = true_divide = elementwise(
    "Divide", np.divide, lambda z, x, y: 1 / y, lambda z, x, y: -z / y, neutral=(None, 1.0))
negative = elementwise("Negative", np.negative, lambda y, x: -1, is_own_inverse=True)
positive = elementwise("Positive", np.positive, lambda y, x: 1, same_if_same_spec=True)
reciprocal = elementwise("Reciprocal", np.reciprocal, lambda y, x: -y * y)
square = elementwise("Square", np.square, lambda y, x: 2 * x)


def _power_in_exponent(z, x, y):
    return z * log(where(x == 0, 1, x))


power = pow = elementwise("Power", np.power, power_in_base, _power_in_exponent)
float_power = elementwise("FloatPower", np.float_power, power_in_base, _power_in_exponent)


def _floored_quotient(z, x, y):
    """Compute floor_divide(x, y) from the remainder, which is faster than a division."""
    ratio = x / y
    quotient = rint(ratio - z / y)  # not (x - z) / y, which may overflow; -1 where z is y
    return where(y == 0, floor(ratio), where(z == y, -1, quotient))


fmod = elementwise("Fmod", np.fmod, lambda z, x, y: 1, lambda z, x, y: -rint((x - z) / y))
remainder = mod = elementwise(
    "Remainder", np.remainder, lambda z, x, y: 1, lambda z, x, y: -_floored_quotient(z, x, y))


def divmod(x1, x2, /, *out, **kwargs) -> Any:
    """Return quotient and remainder, as `numpy.divmod`; only the remainder is differentiable.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.divmod(7.0, 3.0)
    (np.float64(2.0), np.float64(1.0))
    """
    x1, x2 = joined(x1), joined(x2)
    if is_written(out, kwargs) or not (is_tensor(x1) or is_tensor(x2)):
        return np.divmod(x1, x2, *out, **kwargs)
    return floor_divide(x1, x2, **kwargs), remainder(x1, x2, **kwargs)


# ---- exponentials, logarithms, roots ---------------------------------------------------------

exp = elementwise("Exp", np.exp, lambda y, x: y)
exp2 = elementwise("Exp2", np.exp2, lambda y, x: _LN2 * y)
expm1 = elementwise("Expm1", np.expm1, lambda y, x: np.exp(x))  # y + 1 cancels
log = elementwise("Log", np.log, lambda y, x: 1 / x)
log2 = elementwise("Log2", np.log2, lambda y, x: (1 / _LN2) / x)
log10 = elementwise("Log10", np.log10, lambda y, x: (1 / _LN10) / x)
log1p = elementwise("Log1p", np.log1p, lambda y, x: 1 / (1 + x))
sqrt = elementwise("Sqrt", np.sqrt, lambda y, x: 0.5 / y)
cbrt = elementwise("Cbrt", np.cbrt, lambda y, x: 1 / (3 * y * y))


def _share(power, x, y):
    """Compute power(x) / (power(x) + power(y)), and 1 where both operands are -inf.

    The output, the logarithm of the sum, is too inaccurate for this if operands are large.
    """
    same = isinf(x) & (x == y)  # the difference would be NaN, with a warning
    difference = where(same, maximum(-x, 0), x - where(same, 0, y))
    is_larger = difference > 0
    ratio = power(where(is_larger, -difference, difference))  # smaller / larger
    return where(is_larger, 1, ratio) / (1 + ratio)


logaddexp = elementwise(
    "Logaddexp", np.logaddexp, lambda z, x, y: _share(exp, x, y), lambda z, x, y: _share(exp, y, x)
)
logaddexp2 = elementwise(
    "Logaddexp2", np.logaddexp2,
    lambda z, x, y: _share(exp2, x, y), lambda z, x, y: _share(exp2, y, x))  # fmt: skip

# ---- trigonometric and hyperbolic functions --------------------------------------------------

sin = elementwise("Sin", np.sin, lambda y, x: cos(x))
cos = elementwise("Cos", np.cos, lambda y, x: -sin(x))
tan = elementwise("Tan", np.tan, lambda y, x: 1 + y * y)
arcsin = asin = elementwise("Arcsin", np.arcsin, lambda y, x: 1 / sqrt((1 - x) * (1 + x)))
arccos = acos = elementwise("Arccos", np.arccos, lambda y, x: -1 / sqrt((1 - x) * (1 + x)))
arctan = atan = elementwise("Arctan", np.arctan, lambda y, x: 1 / (1 + x * x))
sinh = elementwise("Sinh", np.sinh, lambda y, x: cosh(x))
cosh = elementwise("Cosh", np.cosh, lambda y, x: sinh(x))
tanh = elementwise("Tanh", np.tanh, lambda y, x: 1 - y * y)
arcsinh = asinh = elementwise(  # sqrt(x * x + 1) would overflow
    "Arcsinh", np.arcsinh, lambda y, x: 1 / cosh(y))
# Product of roots: the root of the product has the wrong sign left of the imaginary axis.
arccosh = acosh = elementwise("Arccosh", np.arccosh, lambda y, x: 1 / (sqrt(x - 1) * sqrt(x + 1)))
arctanh = atanh = elementwise("Arctanh", np.arctanh, lambda y, x: 1 / ((1 - x) * (1 + x)))

deg2rad = elementwise("Deg2rad", np.deg2rad, lambda y, x: math.pi / 180)
radians = elementwise("Radians", np.radians, lambda y, x: math.pi / 180)
rad2deg = elementwise("Rad2deg", np.rad2deg, lambda y, x: 180 / math.pi)
degrees = elementwise("Degrees", np.degrees, lambda y, x: 180 / math.pi)


hypot = elementwise(
    "Hypot", np.hypot,
    lambda z, x, y: component_over_length(x, z), lambda z, x, y: component_over_length(y, z))

arctan2 = atan2 = elementwise(
    "Arctan2", np.arctan2,
    lambda z, y, x: over_square(x, y, x), lambda z, y, x: over_square(-y, y, x),
)  # fmt: skip


def _sinc_partial(y, x):
    """Differentiate sinc; near 0, where the closed form cancels, by the series in (pi x)**2."""
    near = absolute(x) < 0.1
    t = square(math.pi * x)
    series = 1 - t / 10 * (1 - t / 28 * (1 - t / 54 * (1 - t / 88 * (1 - t / 130))))
    series = -(math.pi**2 / 3) * x * series
    away = where(near, 1, x)  # avoid division by zero in elements that are not selected
    return where(near, series, (cos(math.pi * x) - y) / away)


sinc = elementwise("Sinc", np.sinc, _sinc_partial)

# ---- one operand or another ------------------------------------------------------------------


def _where_vjp(op, g):
    condition = op.inputs[0]
    return (
        None,
        sum_to(where(condition, g, 0), op.input_specs[1]),
        sum_to(where(condition, 0, g), op.input_specs[2]),
    )


def _where_jvp(op, _, dx, dy):
    tangent = where(op.inputs[0], 0 if dx is None else dx, 0 if dy is None else dy)
    return broadcast_to(tangent, op.output_specs[0].extents)


def _where_batched(op, _, dx, dy):
    out = op.output_specs[0]
    known = out.known and all([t is None or is_known(t) for t in (dx, dy)])
    dx, dy = (
        0 if t is None else broadcast_batch_to(t, out.shape) if known
        else broadcast_batch_like(t, out) for t in (dx, dy)
    )  # fmt: skip
    return where(op.inputs[0], dx, dy)


where_op = enter(
    WhereOp(
        "Where", np.where, _where_vjp, _where_jvp,
        saved_inputs=(0,), optional_tangents=(0, 1, 2), batched=_where_batched,
        shape_rule=shape_rules.where,
    )
).described(batch=batch_axis.aligned, moving=0b110)  # fmt: skip


def where(condition, /, *x_and_y) -> Any:
    """Take elements from `x` where the condition holds, from `y` elsewhere.

    An operand gets no gradient where it is not selected, not even NaN: elements that are not
    selected may be infinite or undefined, as long as their own derivatives are finite.

    Parameters
    ----------
    condition : array_like
        Nothing is differentiated with respect to it.
    *x_and_y : array_like
        The two operands. Without them the indices of the true elements are returned.

    Returns
    -------
    Tensor or ndarray
        The elements taken, or a tuple of index arrays (never tensors).

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.where([True, False], [1.0, 2.0], 0.0)
    array([1., 0.])
    """
    if x_and_y:
        return where_op(condition, *x_and_y)
    condition = joined(condition)
    known = is_tensor(condition) and condition.graph is None
    return np.nonzero(condition.numpy() if known else condition)


def part_of_gradient(name, ufunc):
    """Declare a ufunc that returns its first operand, a gradient, a part of it, or 0.

    A product with 0 instead would be NaN for infinite gradients, as of sqrt(maximum(x, 0)).
    """
    part = elementwise(name, ufunc, lambda z, g, x, y: lambda t: part(t, x, y), None, None)
    return part


def _extremum(name, ufunc):
    """Declare a ufunc that returns one of two operands; at ties each gets half of the gradient."""
    first = part_of_gradient(f"FirstOf{name}", getattr(extrema, f"first_of_{ufunc.__name__}"))
    second = part_of_gradient(f"SecondOf{name}", getattr(extrema, f"second_of_{ufunc.__name__}"))
    return elementwise(
        name, ufunc,
        lambda z, x, y: lambda g: first(g, x, y), lambda z, x, y: lambda g: second(g, x, y),
    )  # fmt: skip


# If one operand is NaN, `maximum` and `minimum` return NaN, `fmax` and `fmin` the other operand.
maximum = _extremum("Maximum", np.maximum)
minimum = _extremum("Minimum", np.minimum)
fmax = _extremum("Fmax", np.fmax)
fmin = _extremum("Fmin", np.fmin)


# ---- magnitude and sign, complex parts -------------------------------------------------------


def _conjugate_back(op, g):
    if g.dtype.kind != "c":
        return g
    if type(g) is np.ndarray and is_one_number(g):
        return np.broadcast_to(np.conjugate(g.flat[0]), g.shape)
    return conjugate_op(g)


conjugate_op = linear(
    "Conjugate", np.conjugate, _conjugate_back,
    shape_rule=shape_rules.elementwise(np.conjugate), batch=batch_axis.aligned)  # fmt: skip


def conjugate(x, /, *out, **kwargs) -> Any:
    """Conjugate complex numbers, as `numpy.conjugate`.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.conjugate(1 + 2j)
    np.complex128(1-2j)
    """
    if not out and not kwargs:
        return conjugate_op(x)
    x = joined(x)
    if is_written(out, kwargs) or not is_tensor(x):
        return np.conjugate(x, *out, **kwargs)
    return conjugate_op(*as_operands(np.conjugate, (x,), kwargs))


conj = conjugate


def _is_complex_tensor(x):
    return is_tensor(x) and x.dtype.kind == "c"


def _conjugate_sign(x):
    if isinstance(x, (np.ndarray, np.generic)):
        length = np.absolute(x) if x.dtype.kind == "c" else np.inf
        if not np.isfinite(length).all():
            return np.conj(np.sign(x))
        result = np.empty_like(x)  # NumPy's sign takes ten times as long
        result.real = component_over_length(x.real, length)
        result.imag = -component_over_length(x.imag, length)
        return result
    return conj(sign(x)) if _is_complex_tensor(x) else sign(x)  # symbols stand for real arrays


def sign(x, /, *out, **kwargs) -> Any:
    """Sign of each element, as `numpy.sign`: of a complex number, itself over its magnitude.

    The sign of a real tensor is constant, its gradient is None.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.sign([-3.0, 0.0, 2.0])
    array([-1.,  0.,  1.])
    """
    x = joined(x)
    if _is_complex_tensor(x):
        if is_written(out, kwargs):
            return np.sign(x, *out, **kwargs)
        (x,) = as_operands(np.sign, (x,), kwargs)
        infinite = isinf(x)  # avoid inf / inf
        finite = where(infinite, 1, x) * _scale_of_subnormal(x)
        magnitude = absolute(finite)
        quotient = divide(finite, where(magnitude == 0, math.inf, magnitude))
        return _complex_sign_op(quotient, real_sign(x))
    return real_sign(x, *out, **kwargs)


def _scale_of_subnormal(x):
    """Return a power of two where the reciprocal of a complex number overflows, 1 elsewhere."""
    limits = np.finfo(x.dtype)
    real = limits.dtype.type
    return where(absolute(x) < limits.tiny, real(2.0**(limits.nmant + 10)), real(1))


# NumPy's value, since the last bit of the quotient may differ; derivatives of the quotient.
_complex_sign_op = passing(
    "ComplexSign", lambda quotient, value: value, shows=1,
    shape_rule=lambda quotient, value: value, batch=batch_axis.aligned)


# Conjugated, as partials are conjugated centrally: the gradient of a complex |z| is g * sign(z).
absolute = abs = elementwise("Absolute", np.absolute, lambda y, x: _conjugate_sign(x))
fabs = elementwise("Fabs", np.fabs, lambda y, x: sign(x))
copysign = elementwise("Copysign", np.copysign, lambda z, x, y: sign(x) * sign(z), None)


def angle(z, deg=False) -> Any:
    """Argument of complex numbers, as `numpy.angle`; its derivative at 0 is 0.

    Examples
    --------
    >>> import cytape.numpy as np
    >>> np.angle(1j, deg=True)
    np.float64(90.0)
    """
    z = joined(z)
    if not is_tensor(z):
        return np.angle(z, deg)
    result = arctan2(imag(z), real(z)) if z.dtype.kind == "c" else arctan2(0, z)
    return rad2deg(result) if deg else result
