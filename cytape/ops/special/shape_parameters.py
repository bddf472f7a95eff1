"""Partial derivatives that are not implemented: in orders and shape parameters."""

import numpy as np

from cytape.errors import NotDifferentiableError
from cytape.ops.adjoints.missing_derivatives import missing_op
from cytape.tensor import Tensor


def no_partial(function, argument, kind="derivative"):
    """Return a partial that raises `NotDifferentiableError` unless it is multiplied by zero."""
    refusal = (
        f"scipy.special.{function} has no {kind} in its argument {argument}: pass "
        f"cytape.stop_gradient({argument}) if the gradient should stop there")

    def product(g):
        return missing_op(g, g, n=1, error=NotDifferentiableError, refusal=refusal)[0]

    return lambda *_: product


def no_partials(function, *arguments):
    """Return `no_partial` of each argument."""
    return [no_partial(function, argument) for argument in arguments]


def is_complex(x):
    """Return whether an operand of a partial is complex; symbols stand for real arrays."""
    return isinstance(x, (np.ndarray, np.generic, Tensor)) and x.dtype.kind == "c"


def real_order(x):
    """Return an order or parameter as a real number; beside complex arguments it is complex."""
    return np.real(x) if is_complex(x) else x
