"""Partial derivatives that are not implemented: in orders and shape parameters."""

import numpy as np

import cytape.ops.special_kernels.special_ufuncs as special
from cytape.errors import NotDifferentiableError
from cytape.ops.adjoints.missing_derivatives import missing_op
from cytape.ops.engine.op_kinds import elementwise
from cytape.tensor import Tensor


def no_partial(function, argument, kind="derivative"):
    """Return a partial that raises `NotDifferentiableError` unless it is multiplied by zero."""
    module = "stats" if "." in function else "special"
    return refused(
        f"scipy.{module}.{function} has no {kind} in its argument {argument}: pass "
        f"cytape.stop_gradient({argument}) if the gradient should stop there")


def refused(refusal, also_zero=False):
    """Return a partial that raises an error, unless it is multiplied by zero or `also_zero`."""
    def product(g):
        given = 1 + 0 * g if also_zero else g
        return missing_op(given, g, n=1, error=NotDifferentiableError, refusal=refusal)[0]

    return lambda *_: product


def no_partials(function, *arguments):
    """Return `no_partial` of each argument."""
    return [no_partial(function, argument) for argument in arguments]


def of_real(function, argument, partial):
    """Return a partial of a function that is not holomorphic: complex arguments are refused."""
    refusal = no_partial(function, argument, "complex derivative (it is not holomorphic)")()
    return lambda y, *xs: refusal if is_complex(xs[-1]) else partial(y, *xs)


def is_complex(x):
    """Return whether an operand of a partial is complex; symbols stand for real arrays."""
    return isinstance(x, (np.ndarray, np.generic, Tensor)) and x.dtype.kind == "c"


def real_order(x):
    """Return an order or parameter as a real number; beside complex arguments it is complex."""
    if not is_complex(x):
        return x
    if not isinstance(x, Tensor) and np.any(x.imag):
        raise TypeError(
            f"scipy.special takes real orders, degrees and parameters, got {str(x):.60}")
    return np.real(x)


def in_last(name, orders, partial, **facts):
    """Declare a ufunc of `scipy.special` with a derivative in the last one of its arguments only.

    Graphs convert numbers to the dtype of the other operands: real orders may arrive as complex
    numbers beside complex arguments.
    """
    ufunc = getattr(special, name)
    forward = ufunc
    if any("D" in types and "dD" in types for types in ufunc.types):
        def forward(*operands):
            *orders, x = operands
            return ufunc(*map(real_order, orders), x)

        forward.__name__, forward.__doc__ = name, ufunc.__doc__
    return elementwise(op_name(name), forward, *no_partials(name, *orders), partial, **facts)


def op_name(name):
    """Return the name of the op of a function of `scipy.special`."""
    return "Scipy" + "".join(map(str.capitalize, name.split("_")))


def whole_numbers(n):
    """Return real numbers that are all whole as integers, for which SciPy has other formulas.

    Numbers above a million stay real: SciPy's loops over integers would take long.
    """
    if type(n) is int:
        return n
    n = np.asarray(real_order(n))
    if n.ndim == 0 and n.dtype.kind == "f":
        number = float(n)
        return int(number) if number.is_integer() and abs(number) <= 1e6 else number
    if n.dtype.kind == "f":
        rounded = np.rint(n)
        if np.all((rounded == n) & (np.abs(n) <= 1e6)):
            return rounded.astype(np.int64)
    return n
