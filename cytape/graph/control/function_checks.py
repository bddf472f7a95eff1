"""Calls of the functions of branches and loops, and checks of their results."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.creation import own_tensor, stop_gradient_op
from cytape.tensor import nest
from cytape.tensor.making import constant, convert_to_tensor
from cytape.tensor.recording.state import current_graph
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec
from cytape.tensor.variable import Variable

__all__ = [
    "as_count",
    "as_predicate",
    "as_tensor",
    "call",
    "check_structures",
    "lent",
    "next_values",
    "open_shape",
    "require_function",
    "without_gradients",
]


def require_function(argument: str, f: Any) -> None:
    """Raise if an argument is not callable."""
    if not callable(f):
        raise TypeError(f"{argument} must be a function, got {type(f).__name__}")


def call(called: str, f: Any, *arguments: Any) -> Any:
    """Call a function; errors about the number of arguments name it."""
    graph = current_graph()
    try:
        return call_traced(graph, f, arguments) if isinstance(graph, FunctionGraph) else (
            f(*arguments))
    except TypeError as error:
        if not _was_entered(error):
            _require_arguments(called, f, len(arguments), error)
        raise


def _was_entered(error: TypeError) -> bool:
    """Return whether an error was raised inside of a function that was called here."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_globals.get("__name__") not in (
        __name__, call_traced.__module__)


def _require_arguments(called: str, f: Any, count: int, cause: TypeError) -> None:
    try:
        # Of the wrapper that is called, not of the wrapped function.
        parameters = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):  # no signature is available
        return
    try:
        parameters.bind(*[None] * count)
    except TypeError as error:
        what = "no arguments, as lambda: f(x) does" if count == 0 else (
            f"{count} argument{'s' if count > 1 else ''}, one for each loop variable")
        raise TypeError(f"{called} must take {what}: {error}") from cause


def as_count(argument: str, number: Any, otherwise: str = "") -> int:
    """Return a number of at least 1 as an int; an integral float, as 1e6, is one."""
    is_integral = isinstance(number, (float, np.floating)) and number.is_integer()
    if isinstance(number, bool) or not (is_integral or isinstance(number, (int, np.integer))):
        raise TypeError(f"{argument} must be an integer{otherwise}, got {number!r}")
    if number < 1:
        raise ValueError(f"{argument} must be at least 1, got {number}")
    return int(number)


def as_predicate(argument: str, pred: Any) -> Tensor:
    """Return a boolean scalar as a tensor."""
    tensor = as_tensor(pred)
    if tensor.dtype != np.bool_:
        raise TypeError(f"{argument} must be boolean, got {tensor.dtype}: compare it, say with 0")
    if not may_agree(tensor.shape, ()):
        raise ValueError(
            f"{argument} must be a scalar, got shape {tensor.shape}: reduce it, say with "
            "cytape.numpy.all or any"
        )
    return tensor


def lent(values: Iterable[Any]) -> list[Any]:
    """Return leaves that may be written to: copies of tensors and arrays, values of variables."""
    return [
        _own(x) if type(x) is Tensor
        else x.value() if isinstance(x, Variable)
        else x.copy(order="K") if isinstance(x, np.ndarray)
        else x
        for x in values]


def _own(tensor: Tensor) -> Tensor:
    if tensor.graph is None:
        return own_tensor(tensor)
    from cytape.ops.updates.in_place import own_in_graph  # here: rarely needed

    return own_in_graph(tensor)


def as_tensor(x: Any, dtype: Any = None) -> Tensor:
    """Return a tensor for a function's result; a number gets the given dtype if it fits.

    Examples
    --------
    >>> as_tensor(2, np.dtype("float32")).dtype, as_tensor(0.5, np.dtype(int)).dtype
    (dtype('float32'), dtype('float64'))
    """
    if isinstance(x, (int, float, complex)) and not isinstance(x, (bool, np.generic)) and (
            dtype is not None and np.result_type(dtype, x) == dtype):
        return constant(x, dtype)
    if x is None:
        raise ValueError("a function returned None: was the return statement forgotten?")
    return convert_to_tensor(x)


def check_structures(what: str, first: Any, second: Any) -> None:
    """Raise if two structures differ."""
    try:
        nest.assert_same_structure(first, second)
    except ValueError as error:
        raise ValueError(
            f"{what} must agree in structure, got {first!r} and {second!r}: {error}"
        ) from None


def open_shape(shape: Sequence[int | None] | None, other: Sequence[int | None] | None) -> Any:
    """Return the shape with None where two shapes differ; None if their ranks differ.

    Examples
    --------
    >>> open_shape((2, 3), (4, 3))
    (None, 3)
    """
    if shape is None or other is None or len(shape) != len(other):
        return None
    return tuple([n if n == m else None for n, m in zip(shape, other, strict=True)])


def next_values(
    who: str, places: Sequence[str], values: Iterable[Any], specs: Sequence[Spec], hint: str = ""
) -> list[Tensor]:
    """Return tensors for the next iteration, with dtypes and shapes checked.

    Parameters
    ----------
    who : str
        The function that returned them.
    places : sequence of str
        Names of the values, for errors.
    values : iterable
    specs : sequence of Spec
        The required specs, as far as both are known.
    hint : str, optional
        Advice if a change of shape is intended, with braces in place of the shape that allows it.
    """
    tensors = []
    for place, x, spec in zip(places, values, specs, strict=True):
        if x is None:
            raise ValueError(f"{who} returns None for {place}, which is a tensor of {spec.dtype}")
        tensor = as_tensor(x, spec.dtype)
        if tensor.dtype != spec.dtype:
            raise TypeError(
                f"{who} changes the dtype of {place} from {spec.dtype} to {tensor.dtype}: convert "
                "it, say with astype, or start with another (a Python number is a tensor of int64, "
                f"float64 or complex128 there, numpy.{tensor.dtype}(0) one of {tensor.dtype})"
            )
        if not may_agree(tensor.shape, spec.shape):
            opened = open_shape(spec.shape, tensor.shape)
            raise ValueError(
                f"{who} changes the shape of {place} from {spec.shape} to {tensor.shape}"
                + (f": if that is meant, {hint.format(opened)}" if hint else "")
            )
        tensors.append(tensor)
    return tensors


def without_gradients(structure: Any) -> Any:
    """Return a structure of tensors as constants to every recorder."""
    def constant_of(x: Any) -> Any:
        return stop_gradient_op(x) if isinstance(x, Tensor) and x.spec.trainable else x

    return nest.map_structure(constant_of, structure)
