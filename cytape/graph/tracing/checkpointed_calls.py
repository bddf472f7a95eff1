"""Calls of traces in graphs that keep checkpoints and recompute the rest for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from cytape.errors import MemoryBudgetError
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline
from cytape.graph.tracing.trace_derivatives import DerivativeTraces, Ends, kept_of
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.creation import identity_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["CheckpointedCalls", "closed", "copied"]


def closed(
    trace: Ends, checkpoints: Any, new_trace: Callable[..., Any]
) -> tuple[Any, list[int], dict]:
    """Return the body and the attributes of a node that stands for calls of a trace.

    Parameters
    ----------
    trace : Ends
    checkpoints : Any
        As `kept_of` takes it.
    new_trace : callable
        Makes a `ConcreteFunction`.

    Returns
    -------
    body : ConcreteFunction
        Function of all inputs; returns the outputs of the trace, then the kept values.
    kept : list of int
        The symbols of the trace that are kept.
    attrs : dict
        Further attributes of the node: `refusal`, the error for derivatives if no choice fits.
    """
    attrs: dict[str, tuple] = {}
    try:
        kept = kept_of(trace, checkpoints, False).passed()
    except ValueError as error:
        kept = kept_of(trace, frozenset(), False).passed()
        smallest = (error.smallest_bytes,) if isinstance(error, MemoryBudgetError) else ()
        attrs["refusal"] = (str(error), *smallest)
    symbols = [*trace.output_symbols, *kept]
    graph, inputs = trace.graph, list(trace.input_symbols)
    if graph.captures:  # a graph whose nodes refer to its own tensors could not be collected
        graph, numbers = copied(trace)
        symbols, inputs = ([numbers[symbol] for symbol in each] for each in (symbols, inputs))
    return new_trace(
        trace.name, graph, inputs, list(map(graph.tensor_at, symbols))), kept, attrs


class CheckpointedCalls:
    """Derivatives of checkpointed calls in graphs.

    Parameters
    ----------
    body : Ends
    n_kept : int
        Number of kept values, the last outputs.
    new_trace : callable
        Makes a `ConcreteFunction`.
    """

    def __init__(self, body: Ends, n_kept: int, new_trace: Callable[..., Any]) -> None:
        outputs = body.output_symbols
        kept = kept_of(body, frozenset(outputs[len(outputs) - n_kept:]), False)
        self._traces = DerivativeTraces(body, new_trace, (), kept.new_body)
        places = [*body.input_symbols, *outputs]
        self._places = {symbol: i for i, symbol in reversed(list(enumerate(places)))}

    def vjp(self, op: Any, *gradients: Any) -> list:
        """Build the backward pass, which recomputes the values it needs once gradients arrive."""
        n_inputs = len(op.inputs) - len(gradients)
        reached = tuple(gradient is not None for gradient in gradients)
        specs = op.input_specs[:n_inputs]
        needed = tuple(
            need and spec.trainable for need, spec in zip(op.needs, specs, strict=False))
        found = [None] * n_inputs
        if any(needed):
            found = self._called(self._traces_of(op).backward(reached, needed), gradients, op)
        return [*found, *[None] * len(gradients)]

    def jvp(self, op: Any, *tangents: Any) -> list:
        """Build the tangents, with recomputed values."""
        tangents = tangents[: len(op.inputs) - len(op.output_specs)]
        moving = tuple(tangent is not None for tangent in tangents)
        if not any(moving):
            return [None] * len(op.output_specs)
        return self._called(self._traces_of(op).jvp(moving), tangents, op)

    def _traces_of(self, op: Any) -> DerivativeTraces:
        if "refusal" in op.attrs:
            message, *smallest = op.attrs["refusal"]
            raise MemoryBudgetError(message, *smallest) if smallest else ValueError(message)
        return self._traces

    def _called(self, trace: Any, arrived: Sequence[Any], op: Any) -> list:
        """Call a derivative, or build it; captured values are read after its arguments arrived.

        In a graph they are read through identities with control inputs, so that no pass merges a
        recomputed op with the original.
        """
        graph, own = current_graph(), self._traces.function.graph
        arrived = [convert_to_tensor(x) for x in arrived if x is not None]
        if graph is not None:
            arrived = [in_graph(graph, x) for x in arrived]
        known = [*op.inputs[: len(op.inputs) - len(op.outputs)], *op.outputs]

        def read(x: Tensor) -> Tensor:
            if x.graph is not own:
                return x
            return identity_op(
                convert_to_tensor(known[self._places[own.symbol_of(x)]]), late=True)

        with nullcontext() if graph is None else graph.control_dependencies(arrived):
            captured = list(map(read, trace.captured_inputs))
        return trace.call_with([*arrived, *captured])


def copied(
    trace: Any, overrides: tuple[tuple[str, str], ...] = ()
) -> tuple[FunctionGraph, dict[int, int]]:
    """Return the graph of a trace without captures, and the symbols there by those of the trace.

    Parameters
    ----------
    trace : Ends or ConcreteFunction
    overrides : tuple of (str, str), optional
        Gradient functions of the copied nodes, as in `Context`; those of the trace go first.
    """
    graph = FunctionGraph(trace.name, None)
    graph.enter_context(graph.context_with(overrides=overrides))
    with unrecorded(), building_into(graph):
        symbols = dict(zip(
            trace.input_symbols,
            graph.arguments(map(trace.graph.spec_of, trace.input_symbols)), strict=True))
        inline(trace.graph, symbols, graph)
        return graph, {
            symbol: graph.symbol_of(in_graph(graph, x)) for symbol, x in symbols.items()}
