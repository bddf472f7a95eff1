"""Function transforms under the names of TensorFlow's eager mode, which return tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from cytape.autodiff.gradient_tape import GradientTape, noting_detached
from cytape.autodiff.transform_arguments import (
    Transformed,
    name_of,
    new_tensor,
    own_argument,
    report_unconnected,
    require_result,
)
from cytape.autodiff.wrapped_calls import call_with_own
from cytape.errors import UnconnectedGradientWarning
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import how_left
from cytape.tensor.tensor import another
from cytape.tensor.values.user_warnings import warn

__all__ = [
    "gradients_function",
    "implicit_grad",
    "implicit_val_and_grad",
    "make_vjp",
    "val_and_grad_function",
]


def gradients_function(
    f: Callable, params: Sequence[int] | Sequence[str] | None = None
) -> Callable:
    """Make the function that lists the gradients of a function with respect to its parameters.

    Parameters
    ----------
    f : callable
        Returns a tensor or a structure of tensors, which are summed.
    params : sequence of int or of str, optional
        Positions or names of the parameters to differentiate with respect to; all by default.

    Returns
    -------
    callable
        Takes the positional arguments of `f`, converts those it differentiates to tensors, and
        returns a list of gradients. Accepts a keyword argument ``dy``, weights for the outputs.

    Raises
    ------
    ValueError
        If `params` mixes positions and names; in a call, if `f` has no parameter of such a name,
        other keyword arguments are passed, or `f` returns None.

    Examples
    --------
    >>> import cytape
    >>> [float(g) for g in cytape.gradients_function(lambda x, y: x * y)(2.0, 5.0)]
    [5.0, 2.0]
    """
    return Transformed(_gradients_function, f, _checked_params(params))


def val_and_grad_function(
    f: Callable, params: Sequence[int] | Sequence[str] | None = None
) -> Callable:
    """Make the function that returns the value of a function and the list of its gradients.

    Parameters
    ----------
    f, params
        As for `gradients_function`, which raises the same errors.

    Returns
    -------
    callable
        Takes the arguments of `gradients_function`'s result; returns ``(value, gradients)``.

    Examples
    --------
    >>> import cytape
    >>> value, gradients = cytape.val_and_grad_function(lambda x, y: x * y, params=["y"])(2.0, 5.0)
    >>> float(value), [float(g) for g in gradients]
    (10.0, [2.0])
    """
    return Transformed(_val_and_grad_function, f, _checked_params(params))


def make_vjp(
    f: Callable, params: Sequence[int] | Sequence[str] | None = None, persistent: bool = True
) -> Callable:
    """Make the function that returns the value of a function and its vector-Jacobian product.

    Parameters
    ----------
    f, params
        As for `gradients_function`, which raises the same errors.
    persistent : bool
        Whether the product may be computed more than once.

    Returns
    -------
    callable
        Takes the positional arguments of `f` and returns ``(value, vjp)``, where ``vjp(dy=None)``
        lists the gradients of the outputs' sum, weighted by `dy`.

    Examples
    --------
    >>> import cytape
    >>> value, vjp = cytape.make_vjp(lambda x: x * x)(3.0)
    >>> float(value), float(vjp()[0]), float(vjp(2.0)[0])
    (9.0, 6.0, 12.0)
    """
    return Transformed(_make_vjp, f, _checked_params(params), persistent)


def implicit_grad(f: Callable) -> Callable:
    """Make the function that differentiates a function with respect to the variables it reads.

    Parameters
    ----------
    f : callable
        Reads trainable variables and returns a tensor or a structure of tensors.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns a list of pairs, gradient and variable, in the order
        in which the variables were created.

    Raises
    ------
    ValueError
        In a call, if `f` reads no trainable variable, or returns None.

    Examples
    --------
    >>> import cytape
    >>> w = cytape.Variable(3.0, name="w")
    >>> [(float(g), v.name) for g, v in cytape.implicit_grad(lambda: w * w)()]
    [(6.0, 'w')]
    """
    return Transformed(_implicit_grad, f)


def implicit_val_and_grad(f: Callable) -> Callable:
    """Make the function that returns a function's value and the result of `implicit_grad`.

    Parameters
    ----------
    f : callable
        As for `implicit_grad`.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns ``(value, pairs)``.

    Raises
    ------
    ValueError
        As for `implicit_grad`.

    Examples
    --------
    >>> import cytape
    >>> w = cytape.Variable(3.0)
    >>> value, pairs = cytape.implicit_val_and_grad(lambda x: w * x)(2.0)
    >>> float(value), float(pairs[0][0])
    (6.0, 2.0)
    """
    return Transformed(_implicit_val_and_grad, f)


def _make_vjp(
    f: Callable, args: tuple, kwargs: dict, params: tuple | None, persistent: bool
) -> tuple:
    if kwargs:
        raise ValueError(
            f"only positional arguments of {name_of(f)} can be differentiated, got the keyword "
            f"arguments {sorted(kwargs)}"
        )
    positions = _positions(f, params, len(args))
    new = {i: new_tensor(f, i, args[i]) for i in positions}
    sources = [new[i] for i in positions]
    tape = GradientTape(persistent, watch_accessed_variables=False)
    with tape:
        tape.watch(sources)
        detached = noting_detached(tape)
        result = f(*[
            another(new[i]) if i in new else own_argument(arg) for i, arg in enumerate(args)])
        require_result(f, result)
        result = nest.map_structure(convert_to_tensor, result)

    def vjp(dy: Any = None) -> list:
        gradients = tape.gradient(result, sources, output_gradients=dy)
        lost = [
            i for i, source, gradient in zip(positions, sources, gradients, strict=True)
            if gradient is None and source.spec.trainable  # the tape has warned of others
        ]
        if lost and detached:
            wholly = all(gradient is None for gradient in gradients)
            how = how_left(detached)
            report_unconnected(
                f, f"argument {_listed(lost)}", wholly, how if wholly else None, how)
        elif lost and not isinstance(f, Transformed):  # derivatives often vanish
            warn(
                f"the result of {name_of(f)} does not depend on argument {_listed(lost)} by "
                "differentiable functions: the gradient is None",
                UnconnectedGradientWarning,
            )
        return gradients

    return result, vjp


def _val_and_grad_function(f: Callable, args: tuple, kwargs: dict, params: tuple | None) -> tuple:
    dy = kwargs.pop("dy", None)
    value, vjp = _make_vjp(f, args, kwargs, params, False)
    return value, vjp(dy)


def _gradients_function(f: Callable, args: tuple, kwargs: dict, params: tuple | None) -> list:
    return _val_and_grad_function(f, args, kwargs, params)[1]


def _listed(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers))


def _implicit_val_and_grad(f: Callable, args: tuple, kwargs: dict) -> tuple:
    with GradientTape() as tape:
        value = call_with_own(f, args, kwargs)
    require_result(f, value)
    variables = list(tape.watched_variables())
    if not variables:
        raise ValueError(f"{name_of(f)} read no trainable variables, so there is nothing to do")
    return value, list(zip(tape.gradient(value, variables), variables, strict=True))


def _implicit_grad(f: Callable, args: tuple, kwargs: dict) -> list:
    return _implicit_val_and_grad(f, args, kwargs)[1]


def _checked_params(params: Sequence | None) -> tuple | None:
    if params is None:
        return None
    for kind in (int, str):
        if all(isinstance(param, kind) for param in params):
            return tuple(params)
    raise ValueError(f"params must be all positions or all names, got {list(params)}")


def _positions(f: Callable, params: tuple | None, n_args: int) -> list[int]:
    if params is None:
        return list(range(n_args))
    if not all(isinstance(param, str) for param in params):
        return list(params)
    names = list(inspect.signature(f).parameters)
    unknown = [param for param in params if param not in names]
    if unknown:
        raise ValueError(f"{name_of(f)} has no parameters {unknown}, only {names}")
    return [names.index(param) for param in params]
