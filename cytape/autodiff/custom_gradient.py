"""Functions that bring their own gradient, recompute themselves for it, or have none."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from cytape.autodiff import nest
from cytape.autodiff.gradient_tape import GradientTape
from cytape.errors import InvalidGradientError, TapeStateError
from cytape.ops.creation import identity_op
from cytape.ops.declare import nondifferentiable
from cytape.ops.general_op import record_custom
from cytape.tensor import state
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import Tensor, convert_to_tensor
from cytape.tensor.variable import Variable

__all__ = ["custom_gradient", "recompute_grad", "stop_gradient"]

_stop_gradient = nondifferentiable("StopGradient", forward=lambda x: x)


def stop_gradient(x: Any) -> Any:
    """Return the value of `x`, as a constant to every tape.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Tensor or ndarray
        A tensor for a tensor or variable, what was given for anything else.

    Examples
    --------
    >>> import cytape
    >>> float(cytape.grad(lambda x: x * cytape.stop_gradient(x))(3.0))
    3.0
    """
    return _stop_gradient(x)


def custom_gradient(f: Callable) -> Callable:
    """Give a function a gradient of its own.

    Parameters
    ----------
    f : callable
        Returns a pair: its outputs (a tensor or a structure of tensors), and a function `grad_fn`.
        That one is called with one gradient per output, zeros for outputs that were not used,
        and returns one gradient per positional argument of `f` (per leaf, where arguments are
        structures); None for no gradient. If `f` reads trainable variables that are not among its
        arguments, `grad_fn` must accept them as a keyword argument ``variables``, a list in the
        order of creation, and return a pair: the arguments' gradients and the variables'.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns its outputs. Plain arrays in, plain arrays out.

    Raises
    ------
    TypeError
        In a call, if `f` does not return such a pair, a tensor is passed by keyword, or `grad_fn`
        does not accept the variables that `f` read.
    InvalidGradientError
        In the backward pass, if `grad_fn` returns a wrong number of gradients.

    Notes
    -----
    The gradient of a complex output follows TensorFlow's convention, see `GradientTape`. What
    `grad_fn` computes from tensors can be differentiated in its turn.

    Examples
    --------
    A stable ``log(1 + exp(x))``:

    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.custom_gradient
    ... def log1pexp(x):
    ...     e = np.exp(x)
    ...     def grad_fn(dy):
    ...         return dy * (1 - 1 / (1 + e))
    ...     return np.log(1 + e), grad_fn
    >>> round(float(cytape.grad(log1pexp)(0.5)), 6)
    0.622459
    """
    return _CustomGradient(f)


class _CustomGradient:
    """A function with its own gradient; a descriptor, so that it can be a method."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, f: Callable) -> None:
        functools.update_wrapper(self, f)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is None:
            return self
        return _CustomGradient(types.MethodType(self.__wrapped__, instance))

    def __reduce__(self) -> str:
        return self.__qualname__  # by reference, as the function that it stands for

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        f = self.__wrapped__
        name = _name(f)
        if any(map(_is_tensor, nest.flatten(kwargs))):
            raise TypeError(
                f"{name} has a custom gradient, which covers positional arguments only: "
                "pass tensors and variables by position"
            )
        leaves = nest.flatten(args)
        returned, variables = _call_and_watch(f, args, kwargs)
        if not (isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1])):
            raise TypeError(f"{name} must return a pair, its outputs and a function grad_fn")
        result, grad_fn = returned
        variables = [v for v in variables if not any(v is leaf for leaf in leaves)]
        if variables and not _accepts_variables(grad_fn):
            raise TypeError(
                f"{name} reads {len(variables)} variables that are not among its arguments, so its "
                "grad_fn must accept a keyword argument `variables`"
            )
        differentiable = [_is_tensor(leaf) for leaf in leaves]

        def backward(*output_gradients: Tensor) -> list:
            if variables:
                returned = grad_fn(*output_gradients, variables=variables)
                if not (isinstance(returned, (tuple, list)) and len(returned) == 2):
                    raise InvalidGradientError(
                        f"the grad_fn of {name} must return a pair, the gradients of the arguments "
                        "and those of the variables"
                    )
                input_gradients, variable_gradients = map(nest.flatten, returned)
                _check_count(name, "variables", len(variables), len(variable_gradients))
            else:
                input_gradients = nest.flatten(grad_fn(*output_gradients))
                variable_gradients = []
            _check_count(name, "arguments", len(differentiable), len(input_gradients))
            of_tensors = [
                gradient
                for gradient, wanted in zip(input_gradients, differentiable, strict=True)
                if wanted
            ]
            return of_tensors + variable_gradients

        return _record(name, result, list(filter(_is_tensor, leaves)) + variables, backward)


def recompute_grad(f: Callable) -> Callable:
    """Make a function compute its gradient from scratch instead of keeping its intermediates.

    `f` runs once without being recorded and once more in every backward pass: memory for time.

    Parameters
    ----------
    f : callable
        Must return the same values when it runs again. Gradients reach its arguments and the
        variables it reads; tensors that it finds elsewhere (in a closure) count as constants.

    Returns
    -------
    callable
        Has the values and the gradients of `f`, which is its ``__wrapped__``.

    Raises
    ------
    TapeStateError
        In the backward pass, if a variable that `f` read has been assigned to since.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> block = cytape.recompute_grad(lambda x: np.tanh(np.tanh(x)))
    >>> round(float(cytape.grad(block)(0.5)), 6)
    0.639808
    """

    @functools.wraps(f)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        structure = (args, kwargs)
        leaves = nest.flatten(structure)
        with state.stop_recording():
            result, variables = _call_and_watch(f, args, kwargs)
        for leaf in leaves:
            if isinstance(leaf, Variable) and not any(leaf is variable for variable in variables):
                variables.append(leaf)
        values_read = [variable.value().id for variable in variables]
        inputs = [leaf for leaf in leaves if _is_plain_tensor(leaf)]

        def backward(*output_gradients: Tensor) -> list:
            for variable, value_read in zip(variables, values_read, strict=True):
                if variable.value().id != value_read:
                    raise TapeStateError(
                        f"{_name(f)} cannot be recomputed for its gradient: it read "
                        f"{variable!r}, which has been assigned to since"
                    )
            fresh = [identity_op(leaf) if _is_plain_tensor(leaf) else leaf for leaf in leaves]
            sources = [leaf for leaf in fresh if _is_plain_tensor(leaf)] + variables
            args, kwargs = nest.pack_sequence_as(structure, fresh)
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([source for source in sources if source.spec.trainable])
                outputs = [convert_to_tensor(leaf) for leaf in nest.flatten(f(*args, **kwargs))]
            return tape.gradient(outputs, sources, list(output_gradients))

        return _record(_name(f), result, inputs + variables, backward)

    return recomputed


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def _is_plain_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and not isinstance(leaf, Variable)


def _name(f: Callable) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _call_and_watch(f: Callable, args: tuple, kwargs: dict) -> tuple[Any, list[Variable]]:
    """Call f, and list the trainable variables that it read in the order of their creation."""
    watcher = Recorder(False, True)
    watcher.push()
    try:
        result = f(*args, **kwargs)
    finally:
        watcher.pop()
    return result, sorted(watcher.variables, key=lambda variable: variable.id)


def _accepts_variables(grad_fn: Callable) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _check_count(name: str, what: str, expected: int, received: int) -> None:
    if received != expected:
        raise InvalidGradientError(
            f"the grad_fn of {name} must return {expected} gradients for its {what} (None where "
            f"there is none), got {received}"
        )


def _record(name: str, result: Any, inputs: list, backward: Callable) -> Any:
    """Return the result as new tensors, recorded as outputs of one op with a gradient function.

    They are new because the gradient function may hold the tensors of the result, and must not keep
    alive what the op's entry on a tape lives by.
    """
    leaves = nest.flatten(result)
    if not inputs and not any(map(_is_tensor, leaves)):
        return result
    outputs = [identity_op(convert_to_tensor(leaf)) for leaf in leaves]
    record_custom(name, outputs, inputs, backward)
    return nest.pack_sequence_as(result, outputs)
