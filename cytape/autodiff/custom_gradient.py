"""Functions that bring their own derivative, recompute themselves for it, or have none."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from cytape.autodiff.backward import convert_output_gradients
from cytape.autodiff.forward_accumulator import ForwardAccumulator
from cytape.autodiff.gradient_tape import GradientTape
from cytape.core import is_trainable
from cytape.errors import DetachedError, InvalidGradientError, TapeStateError
from cytape.ops.creation import identity_op, stop_gradient_op
from cytape.ops.general_op import custom_call
from cytape.ops.gradients import compute_gradients
from cytape.tensor import nest, state
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import Tensor, convert_to_tensor, tensor_of
from cytape.tensor.variable import Variable

__all__ = ["custom_gradient", "custom_jvp", "recompute_grad", "stop_gradient"]


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
    return stop_gradient_op(x)


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
    `grad_fn` computes from tensors can be differentiated in its turn. Forward mode transposes it,
    as far as it is written in functions that have a gradient: what it gets from elsewhere, say with
    ``dy.numpy()``, has no tangent. `custom_jvp` is for such functions.

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
        _require_positional(f, kwargs)
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

        def call_anew(*tensors: Tensor) -> list:
            remaining = iter(tensors)
            args, kwargs = nest.pack_sequence_as(
                structure, [next(remaining) if _is_plain_tensor(leaf) else leaf for leaf in leaves]
            )
            return [convert_to_tensor(leaf) for leaf in nest.flatten(f(*args, **kwargs))]

        def backward(*output_gradients: Tensor) -> list:
            for variable, value_read in zip(variables, values_read, strict=True):
                if variable.value().id != value_read:
                    raise TapeStateError(
                        f"{_name(f)} cannot be recomputed for its gradient: it read "
                        f"{variable!r}, which has been assigned to since"
                    )
            fresh = list(map(identity_op, inputs))
            sources = fresh + variables
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([source for source in sources if source.spec.trainable])
                outputs = call_anew(*fresh)
            return tape.gradient(outputs, sources, list(output_gradients))

        def jvp(*tangents: Tensor | None) -> list:
            fresh = list(map(identity_op, inputs))
            pairs = [
                (source, tangent)
                for source, tangent in zip(fresh + variables, tangents, strict=True)
                if tangent is not None
            ]
            with ForwardAccumulator([x for x, _ in pairs], [t for _, t in pairs]) as accumulator:
                outputs = call_anew(*fresh)
            return accumulator.jvp(outputs)

        return _record(_name(f), result, inputs + variables, backward, jvp)

    return recomputed


def custom_jvp(f: Callable) -> _CustomJvp:
    """Give a function a Jacobian-vector product of its own.

    Parameters
    ----------
    f : callable
        Returns a tensor or a structure of tensors. Its positional arguments are differentiated;
        tensors that are being recorded, and trainable variables, may not come in by another way.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns its outputs. Its method ``defjvp`` decorates the
        rule: called with the tuple of arguments and a structure like it of tangents (zeros where
        there are none, None where there can be none), it returns a pair, the outputs and their
        tangents. The tangents must be linear in the given ones, so that reverse mode can transpose
        the rule.

    Raises
    ------
    TypeError
        In a call, if no rule was given, a tensor is passed by keyword, or `f` depends on a
        trainable variable or a recorded tensor that is not among its arguments; and where a
        derivative is taken, if the rule does not return such a pair.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as np
    >>> @cytape.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), dx / (1 + np.exp(-x))
    >>> x = cytape.constant(0.5)
    >>> with cytape.ForwardAccumulator(x, 2.0) as accumulator:
    ...     y = log1pexp(x)
    >>> round(float(accumulator.jvp(y)), 6), round(float(cytape.grad(log1pexp)(0.5)), 6)
    (1.244919, 0.622459)
    """
    return _CustomJvp(f)


class _CustomJvp:
    """A function with its forward-mode rule; a descriptor, so that it can be a method."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, f: Callable, rule: Callable | None = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self._rule = rule

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        if instance is None:
            return self
        rule = None if self._rule is None else types.MethodType(self._rule, instance)
        return _CustomJvp(types.MethodType(self.__wrapped__, instance), rule)

    def __reduce__(self) -> str:
        return self.__qualname__  # by reference, as the function that it stands for

    def defjvp(self, rule: Callable) -> Callable:
        """Decorate the rule, which is returned as it is."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        f, rule = self.__wrapped__, self._rule
        if rule is None:
            raise TypeError(f"{_name(f)} has no rule yet: decorate one with {_name(f)}.defjvp")
        _require_positional(f, kwargs)
        leaves = nest.flatten(args)
        # Nobody follows new tensors: what is recorded nevertheless came in by another way.
        fresh = [tensor_of(_value(leaf).numpy()) if _is_tensor(leaf) else leaf for leaf in leaves]
        result, variables = _call_and_watch(f, nest.pack_sequence_as(args, fresh), kwargs)
        for variable in variables:
            if not any(variable is leaf for leaf in leaves):
                raise TypeError(
                    f"{_name(f)} has a custom JVP, but reads {variable!r}, which is not among its "
                    "arguments: pass it as one"
                )
        if not variables and any(
            _is_tensor(leaf) and state.is_recorded(leaf.id) for leaf in nest.flatten(result)
        ):
            raise TypeError(
                f"{_name(f)} has a custom JVP, but depends on a tensor that is being recorded and "
                "is not among its arguments: pass it as one, or stop_gradient it"
            )
        inputs = list(filter(_is_tensor, leaves))
        values = list(map(_value, leaves))  # variables may be assigned to before a backward pass

        def jvp(*tangents: Tensor | None) -> list:
            remaining = iter(tangents)
            returned = rule(
                nest.pack_sequence_as(args, values),
                nest.pack_sequence_as(
                    args,
                    [next(remaining) if _is_tensor(leaf) else _still(leaf) for leaf in leaves],
                ),
                **kwargs,
            )
            if not (isinstance(returned, tuple) and len(returned) == 2):
                raise TypeError(
                    f"the JVP rule of {_name(f)} must return a pair, the outputs and their tangents"
                )
            nest.assert_same_structure(result, returned[1])
            results = [
                tangent if tangent is None else convert_to_tensor(tangent)
                for tangent in nest.flatten(returned[1])
            ]
            for output, tangent in zip(nest.flatten(result), results, strict=True):
                if tangent is not None and tangent.shape != np.shape(output):
                    raise InvalidGradientError(
                        f"the JVP rule of {_name(f)} returned a tangent of shape {tangent.shape} "
                        f"for an output of shape {np.shape(output)}"
                    )
            return results

        def backward(*output_gradients: Tensor) -> list:
            probes = [
                tensor_of(np.ones(x.shape, x.dtype)) if x.spec.trainable else None for x in inputs
            ]
            moving = [probe for probe in probes if probe is not None]
            recorder = Recorder(False, False)
            for probe in moving:
                recorder.watch(probe.id)
            recorder.push()
            try:
                tangents = jvp(*probes)
            finally:
                recorder.pop()
            pairs = [
                (tangent, gradient)
                for tangent, gradient in zip(tangents, output_gradients, strict=True)
                if tangent is not None and gradient is not None
            ]
            for tangent, _ in pairs:
                if not recorder.is_known(tangent.id) and np.any(tangent.numpy()):
                    raise DetachedError(
                        f"the JVP rule of {_name(f)} cannot be transposed for reverse mode: a "
                        "tangent that it returned was not computed from the given ones by "
                        "functions that cytape knows. Write it with cytape.numpy"
                    )
            targets = [tangent for tangent, _ in pairs]
            seeds = convert_output_gradients(targets, [gradient for _, gradient in pairs])
            gradients = iter(compute_gradients(recorder, targets, moving, seeds))
            return [None if probe is None else next(gradients) for probe in probes]

        return _record(_name(f), result, inputs, backward, jvp)


def _value(leaf: Any) -> Any:
    return leaf.value() if isinstance(leaf, Variable) else leaf


def _still(leaf: Any) -> Any:
    """Return the tangent of an argument that is no tensor."""
    dtype = np.asarray(leaf).dtype
    return np.zeros(np.shape(leaf), dtype) if is_trainable(dtype) else None


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor)


def _is_plain_tensor(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and not isinstance(leaf, Variable)


def _name(f: Callable) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _require_positional(f: Callable, kwargs: dict) -> None:
    if any(map(_is_tensor, nest.flatten(kwargs))):
        raise TypeError(
            f"{_name(f)} has a custom derivative, which covers positional arguments only: "
            "pass tensors and variables by position"
        )


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


def _record(
    name: str, result: Any, inputs: list, backward: Callable, jvp: Callable | None = None
) -> Any:
    """Return the result as new tensors, recorded as outputs of one op with rules of its own."""
    leaves = nest.flatten(result)
    if not inputs and not any(map(_is_tensor, leaves)):
        return result
    outputs = custom_call(name, list(map(convert_to_tensor, leaves)), inputs, backward, jvp)
    return nest.pack_sequence_as(result, outputs)
