"""Derivative rules that are registered after an op's declaration, and disabled gradients."""

from collections.abc import Callable
from typing import Any, TypeVar

from cytape.errors import NotDifferentiableError
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.multilinear_op import MultilinearOp
from cytape.ops.engine.op_kinds import find, rules_to_come

Rule = TypeVar("Rule", bound=Callable[..., Any])


def _has_rule(op, mode):
    if isinstance(op, ElementwiseOp | MultilinearOp) or not op.differentiable or op.linear:
        return True  # both modes follow from the declaration
    return getattr(op, mode) is not None


def _register(name, mode, rule):
    op = find(name)
    if op is None:
        rules = rules_to_come.setdefault(name, {})
        if mode in rules:
            raise ValueError(f"op {name!r} has a {mode} already")
        rules[mode] = rule
    elif _has_rule(op, mode):
        raise ValueError(f"op {name!r} has a {mode} already")
    else:
        op.define(**{mode: rule})
    return rule


def register_gradient(name: str) -> Callable[[Rule], Rule]:
    """Decorate the gradient function of an op that was declared without one.

    Parameters
    ----------
    name : str
        The op type. The op may be declared later; it must not have a gradient yet.

    Returns
    -------
    callable
        A decorator, which returns the function as it is.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.declare import general, register_gradient
    >>> cube = general("DoctestCube", lambda x: x**3)
    >>> @register_gradient("DoctestCube")
    ... def cube_gradient(op, dy):
    ...     return 3 * op.inputs[0] ** 2 * dy
    >>> float(cytape.grad(cube)(2.0))
    12.0
    """
    return lambda rule: _register(name, "vjp", rule)


def register_jvp(name: str) -> Callable[[Rule], Rule]:
    """Decorate the jvp of an op that was declared without one.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.declare import general, register_jvp
    >>> scale = general("DoctestScale", lambda x, factor: factor * x)
    >>> @register_jvp("DoctestScale")
    ... def scale_jvp(op, tangent):
    ...     return op.attrs["factor"] * tangent
    >>> value, tangent = cytape.jvp(lambda x: scale(x, factor=3.0), (2.0,), (1.0,))
    >>> float(value), float(tangent)
    (6.0, 3.0)
    """
    return lambda rule: _register(name, "jvp", rule)


def gradient_rule(name: str) -> Callable:
    """Return the gradient function that is registered, or declared, under a name.

    Parameters
    ----------
    name : str
        An op type, or any other name that `register_gradient` was told.

    Raises
    ------
    NotDifferentiableError
        If there is none (also a LookupError).

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.declare import gradient_rule
    >>> @cytape.register_gradient("DoctestStraightThrough")
    ... def straight_through(op, dy):
    ...     return dy
    >>> gradient_rule("DoctestStraightThrough") is straight_through
    True
    """
    op = find(name)
    rule = rules_to_come.get(name, {}).get("vjp") if op is None else getattr(op, "vjp", None)
    if rule is None:
        raise NotDifferentiableError(
            f"no gradient function is registered under the name {name!r}: register one with "
            f"cytape.register_gradient({name!r})"
        )
    return rule


def disable_gradient(name: str, reason: str = "") -> None:
    """Raise an error if a gradient arrives at an op of a type.

    Gradients that are stopped before they reach it raise no error.

    Parameters
    ----------
    name : str
        The op type. The op may be declared later; it must not have a gradient yet.
    reason : str, optional
        Text of the error.

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.declare import general
    >>> lookup = general("DoctestLookup", lambda x: x)
    >>> cytape.disable_gradient("DoctestLookup", "it is a table")
    >>> try:
    ...     cytape.grad(lookup)(2.0)
    ... except LookupError as error:
    ...     print(error)
    the gradient of op 'DoctestLookup' is disabled: it is a table
    """

    def refuse(op, *output_gradients):
        told = f"op {op.type!r}" if op.graph is None else f"operation {op.name!r} ({op.type})"
        raise NotDifferentiableError(
            f"the gradient of {told} is disabled" + (f": {reason}" if reason else "")
        )

    _register(name, "vjp", refuse)
