"""Calls in graphs with a user's gradient function, which is traced when the call is built.

Tensors of graphs that the gradient function uses become inputs of the call. So the call can be
copied to another graph, and nodes do not refer to tensors of their graph, a cycle that Python could
not collect.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

import numpy as np

from cytape.graph.tracing.body_tools import dense, inlined, like
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.creation import stop_gradient_op
from cytape.ops.python.python_ops import PythonCall, given_results_op, linear_transpose
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor, tensor_of
from cytape.tensor.values.user_warnings import PACKAGE

__all__ = ["custom_call_in_graph"]

_UNSET = object()


class _TracedGradient(PythonCall):
    """The gradient of one call.

    Parameters
    ----------
    name : str
    n_inputs : int
        Number of inputs of the call, without the tensors that the gradient function captured.
    trace : ConcreteFunction or Exception
        The traced gradient function, or the exception that it raised.
    """

    def __init__(self, name: str, n_inputs: int, trace: ConcreteFunction | Exception) -> None:
        self.name = name
        self._n_inputs = n_inputs
        self._trace = trace

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        """Build the gradient function again."""
        if isinstance(self._trace, Exception):
            raise _copy_of(self._trace)
        seeds = [
            broadcast_to(tensor_of(np.zeros((), spec.dtype)), spec.extents)
            if gradient is None else gradient
            for gradient, spec in zip(gradients, op.output_specs, strict=True)
        ]
        found = inlined(self._trace, current_graph(), [*seeds, *inputs[self._n_inputs:]])
        return [*self._trace.packed(found), *[None] * (len(inputs) - self._n_inputs)]

    def jvp(self, inputs: list[Tensor], tangents: list, op: Any) -> list:
        """Transpose the gradient function."""
        def gradients(seeds: list) -> list:
            return [x if x is None else convert_to_tensor(dense(x))
                    for x in self.vjp(inputs, seeds, op)]

        moving = [*tangents[: self._n_inputs], *[None] * (len(tangents) - self._n_inputs)]
        return linear_transpose(gradients, op.output_specs, moving)


def custom_call_in_graph(
    graph: Any, name: str, results: Sequence[Any], inputs: Sequence[Any], backward: Callable
) -> list[Tensor]:
    """Add a call with a user's gradient function to a graph, as `custom_call`."""
    with building_into(graph):
        inputs = [in_graph(graph, convert_to_tensor(x)) for x in inputs]  # variables are read
        results = [in_graph(graph, convert_to_tensor(x)) for x in results]
        if not any(x.spec.trainable for x in results):
            return results
        if not any(x.spec.trainable for x in inputs):  # no differentiable input
            return list(map(stop_gradient_op, results))
        body = FunctionGraph(f"{name}_grad", graph)
        trace: ConcreteFunction | Exception
        captured: list = []
        with unrecorded(), building_into(body):
            seeds = like(body, graph, map(graph.symbol_of, results))
            symbols = list(map(body.symbol_of, seeds))  # now: `backward` may change its arguments
            try:
                gradients = call_traced(body, backward, seeds)
                trace = ConcreteFunction(body.name, body, symbols, list(gradients))
            except Exception as error:  # raised if a derivative is requested
                _note_frames(error, name)
                trace = _without_frames(error)
            else:
                captured = trace.captured_inputs
                trace.release_captures()
        return given_results_op(
            *inputs, *captured, *results, call=_TracedGradient(name, len(inputs), trace),
            n_results=len(results))


def _note_frames(error: Exception, name: str) -> None:
    """Keep the traceback of an error as text, from the calls in this module on."""
    frames = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not _is_ours(frame.filename)
    ]
    if frames:
        error.add_note(
            f"raised by the gradient function of {name} while it was traced, at "
            + ", called ".join(frames))


def _is_ours(file: str) -> bool:
    return file.startswith(PACKAGE) or file.startswith("cytape/")


def _copy_of(error: Exception) -> Exception:
    """Return a copy of an error to raise, so that the stored error's traceback does not grow.

    The class's constructor, which may take other arguments, is not called.
    """
    classes = type(error).__mro__
    new: Any = next(
        vars(cls)["__new__"] for cls in classes
        if isinstance(vars(cls).get("__new__"), BuiltinFunctionType))
    try:
        fresh = new(type(error), *error.args)
        fresh.args = error.args
        for slot in _slots_of(classes):
            value = _in_slot(slot, error)
            # Slots that are unset, or that already have the value, are not written.
            if value is not _UNSET and value is not _in_slot(slot, fresh):
                with suppress(AttributeError, TypeError):  # a read-only slot
                    slot.__set__(fresh, value)
        fresh.__dict__.update(error.__dict__)
    except Exception:  # a class written in C
        return error.with_traceback(None)
    if hasattr(error, "__notes__"):
        fresh.__notes__ = list(error.__notes__)
    fresh.__cause__, fresh.__context__ = error.__cause__, error.__context__
    fresh.__suppress_context__ = error.__suppress_context__
    return fresh


def _slots_of(classes: Sequence[type]) -> Iterator[Any]:
    """List the slots of classes: attributes outside of the dict, such as a file's name."""
    for cls in classes:
        if cls is not BaseException:
            for name, slot in vars(cls).items():
                if isinstance(slot, (MemberDescriptorType, GetSetDescriptorType)) and (
                        name not in ("__dict__", "__weakref__")):
                    yield slot


def _in_slot(slot: Any, error: Exception) -> Any:
    try:
        return slot.__get__(error)
    except AttributeError:
        return _UNSET


def _without_frames(error: Exception) -> Exception:
    """Return an error that does not keep the tensors alive that its frames refer to."""
    seen: set[int] = set()
    related: list[BaseException | None] = [error]
    while related:
        each = related.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            related += [each.__cause__, each.__context__]
            if isinstance(each, BaseExceptionGroup):
                related += each.exceptions
    return error
