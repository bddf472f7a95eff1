"""Partial derivatives that are not implemented: in orders and shape parameters."""

from cytape.errors import NotDifferentiableError
from cytape.ops.adjoints.missing_derivatives import missing_op


def no_partial(function, argument):
    """Return a partial that raises `NotDifferentiableError` unless it is multiplied by zero."""
    refusal = (
        f"scipy.special.{function} has no derivative in its argument {argument}: pass "
        f"cytape.stop_gradient({argument}) if the gradient should stop there")

    def product(g):
        return missing_op(g, g, n=1, error=NotDifferentiableError, refusal=refusal)[0]

    return lambda *_: product
