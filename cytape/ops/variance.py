"""Variance and standard deviation, with optional masks.

The derivative of `std` is 0 if all elements are equal; the formula would give NaN. Equality is
tested on the elements, since NumPy's `std` may differ from 0 by rounding of the mean.
"""

from typing import Any

import numpy as np

from cytape.ops.adjoints.identity_groups import together
from cytape.ops.calls.operands import is_given, mask_for, wide
from cytape.ops.calls.operands import operand as as_operand
from cytape.ops.creation import astype, stop_gradient_op
from cytape.ops.elementwise import conj, maximum, real, sqrt, where_op
from cytape.ops.engine import batch_axis
from cytape.ops.engine.numpy_wrapper import numpy_function
from cytape.ops.engine.op_kinds import general
from cytape.ops.reductions import (
    as_kept,
    filled,
    kept,
    loses_imaginary,
    masked_mean,
    mean,
    n_reduced,
    n_there,
    operand,
    reduced_axes,
    sum,
    summed,
    warn_if,
)
from cytape.ops.shapes import shape_rules
from cytape.tensor import convert_to_tensor
from cytape.tensor.values.user_warnings import warning_user

__all__ = ["std", "var"]

_NoValue = np._NoValue


def _inner(op, a, b):
    """Sum the real part of `conj(a) * b` over the reduced axes."""
    return summed(op, real(conj(a) * b) if a.dtype.kind == "c" else a * b)


def _squares(x):
    return real(conj(x) * x) if x.dtype.kind == "c" else x * x


def masked_squares(a, axis, there, mean):
    """Sum the squared deviations from the mean of elements selected by a mask, keeping axes."""
    deviations = filled(a - mean, there, 0)
    return sum(_squares(deviations), axis, keepdims=True)


def _deviations(op):
    """Return the input minus its mean: exactly 0 where all elements are equal.

    The first element is subtracted before the mean, which makes equal elements zeros and the
    differences of close ones exact.
    """
    x = operand(op)
    axes = reduced_axes(op)
    first = x[tuple([slice(0, 1) if i in axes else slice(None) for i in range(x.ndim)])]
    x = x - stop_gradient_op(first)
    return x - mean(x, op.attrs["axis"], keepdims=True)


def _degrees_of_freedom(op):
    freedom = n_reduced(op) - op.attrs["ddof"]
    if not op.input_specs[0].known:
        return maximum(freedom, 0)
    return freedom if freedom > 0 else 0


def _std_partials(op):
    """Return the divisor of the derivative, as of a norm, and the deviations."""
    deviations = _deviations(op)
    square = sum(_squares(deviations), op.attrs["axis"], keepdims=True)
    freedom = _degrees_of_freedom(op)
    # Division by infinity makes derivatives of every order 0 instead of NaN.
    return sqrt(where_op(square == 0, np.inf, square / freedom)) * freedom, deviations


def _real_part(g):
    """Return the gradient of a real result, whatever the requested dtype."""
    return real(g) if g.dtype.kind == "c" else g


def _var_vjp(op, g):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return kept(op, 2 * _real_part(g) / _degrees_of_freedom(op)) * _deviations(op)


def _var_jvp(op, t):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    return 2 * _inner(op, _deviations(op), t) / _degrees_of_freedom(op)


def _std_vjp(op, g):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    divisor, deviations = _std_partials(op)
    return kept(op, _real_part(g)) / divisor * deviations


def _std_jvp(op, t):
    if op.input_specs[0].ndim < 0:
        return NotImplemented
    divisor, deviations = _std_partials(op)
    return _inner(op, deviations / divisor, t)


def _var_of_tensor(x, *, axis, dtype, ddof, keepdims):
    if dtype is not None:
        return NotImplemented
    average = mean(x, axis, keepdims=True)
    freedom = x.size // average.size - ddof
    if freedom <= 0:
        return NotImplemented
    return sum(_squares(x - average), axis, keepdims=keepdims) / freedom


def _std_of_tensor(x, **attrs):
    variance = _var_of_tensor(x, **attrs)
    return variance if variance is NotImplemented else sqrt(variance)


def _warning_user(function):
    """Return NumPy's function; its warnings on too few elements name the user's line."""
    def forward(x, *, ddof, **options):
        if min(x.shape, default=1) <= ddof:
            return warning_user(function, x, ddof=ddof, **options)
        return function(x, ddof=ddof, **options)

    return forward


var_op = general(
    "Var",
    forward=_warning_user(np.var),
    vjp=_var_vjp,
    jvp=_var_jvp,
    batched=_var_jvp,
    shape_rule=shape_rules.spread,
    composition=_var_of_tensor,
    batch=batch_axis.along_axis,
    rule_takes_tensors=True,
)

std_op = general(
    "Std",
    forward=_warning_user(np.std),
    vjp=_std_vjp,
    jvp=_std_jvp,
    batched=_std_jvp,
    shape_rule=shape_rules.spread,
    composition=_std_of_tensor,
    batch=batch_axis.along_axis,
    rule_takes_tensors=True,
)


def _var_of_some(a, axis, dtype, ddof, keepdims, where, mean):
    """Return the variance of elements selected by `where`, around a given mean."""
    a, mean = together(convert_to_tensor(a), as_operand(mean) if is_given(mean) else None)
    own = a.dtype if a.dtype.kind in "fc" else np.dtype(float)
    result = np.empty(0, own).real.dtype if dtype is None else np.dtype(dtype)
    cut = loses_imaginary(a, dtype)
    a = astype(a, wide(own if cut or dtype is None else result), copy=False)
    there = mask_for(a, where) if is_given(where) else True
    n = n_there(a, axis, there)
    warn_if(n <= ddof, "Degrees of freedom <= 0 for slice")
    if mean is None:  # as in NumPy, only then the imaginary part is lost
        mean = masked_mean(real(a) if cut else a, axis, n, there)
    variance = masked_squares(a, axis, there, mean) / maximum(n - ddof, 0)
    return astype(as_kept(variance, axis, keepdims), result, copy=False)


def root_of_variance(variance):
    """Return the standard deviation; its gradient is 0 where it is 0."""
    nothing = variance == 0
    return where_op(nothing, 0, sqrt(where_op(nothing, 1, variance)))


def ddof_of(ddof, correction):
    """Return `ddof`, or `correction` of the array API, as a Python number."""
    if correction is not _NoValue:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    return ddof.item() if isinstance(ddof, np.generic) else ddof


@numpy_function(np.var, "a", "axis", "ddof", "where", "mean")
def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NoValue, mean=_NoValue,
    correction=_NoValue,
) -> Any:
    """Return the variance over the given axes, as `numpy.var`; it is real for complex input.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.var)(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    ddof = ddof_of(ddof, correction)
    if is_given(where) or is_given(mean) or loses_imaginary(a, dtype):
        return _var_of_some(a, axis, dtype, ddof, keepdims, where, mean)
    return var_op(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)


@numpy_function(np.std, "a", "axis", "ddof", "where", "mean")
def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NoValue, mean=_NoValue,
    correction=_NoValue,
) -> Any:
    """Return the standard deviation, as `numpy.std`; its gradient is 0 where it is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cytape import grad
    >>> grad(np.std)(np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    >>> grad(np.std)(np.array([2.0, 2.0]))
    array([0., 0.])
    """
    ddof = ddof_of(ddof, correction)
    if is_given(where) or is_given(mean) or loses_imaginary(a, dtype):
        return root_of_variance(_var_of_some(a, axis, dtype, ddof, keepdims, where, mean))
    return std_op(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)
