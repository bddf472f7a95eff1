"""Calls of traces in graphs that keep checkpoints, and compute all else again for derivatives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from cytape.graph.tracing.derivatives import DerivativeTraces, Ends, kept_of
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline
from cytape.ops.creation import identity_op
from cytape.ops.engine.symbolic import in_graph
from cytape.ops.shared.graph_blocks import checkpointed_call_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["CheckpointedCalls"]


class CheckpointedCalls:
    """The derivatives of calls of a trace.

    Parameters
    ----------
    trace : Ends
    checkpoints : Any
        As `kept_of` takes it.
    new_trace : callable
        Makes a `ConcreteFunction`.

    Attributes
    ----------
    name : str
    passed : list of int
        The symbols that a call keeps besides its inputs and outputs.
    refusal : ValueError or None
        Why there is nothing to keep: an error for whoever asks for a derivative.
    """

    def __init__(self, trace: Ends, checkpoints: Any, new_trace: Callable[..., Any]) -> None:
        self.name = trace.name
        self.refusal: ValueError | None = None
        try:
            kept = kept_of(trace, checkpoints, False)
        except ValueError as error:
            kept = kept_of(trace, frozenset(), False)
            self.refusal = error.with_traceback(None)
        self.passed = passed = kept.passed()
        if any(x.graph is not None for x, _ in trace.graph.captures):
            trace, numbers = _copied(trace)
            passed = [numbers[symbol] for symbol in passed]
            kept = kept_of(trace, frozenset(numbers[symbol] for symbol in kept.symbols), False)
        self._traces = DerivativeTraces(trace, new_trace, passed, kept.new_body)
        places = [*trace.input_symbols, *self._traces.targets]
        self._places = {symbol: i for i, symbol in reversed(list(enumerate(places)))}

    def added(self, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
        """Return what a call computed as what its derivatives are known of.

        Parameters
        ----------
        inputs : sequence of Tensor
            Of the call.
        results : sequence of Tensor
            What it returned, then what it keeps.

        Returns
        -------
        list of Tensor
        """
        return list(checkpointed_call_op(*inputs, *results, calls=self, n_results=len(results)))

    def vjp(self, op: Any, *gradients: Any) -> list:
        """Build the backward pass, which computes again what it needs, late."""
        n_inputs = len(op.inputs) - len(gradients)
        reached = tuple(gradient is not None for gradient in gradients)
        specs = op.input_specs[:n_inputs]
        needed = tuple(
            need and spec.trainable for need, spec in zip(op.needs, specs, strict=False))
        found = [None] * n_inputs
        if any(needed):
            found = self._called(self._traces_of().backward(reached, needed), gradients, op)
        return [*found, *[None] * len(gradients)]

    def jvp(self, op: Any, *tangents: Any) -> list:
        """Build the tangents, for which what they need is computed again."""
        tangents = tangents[: len(op.inputs) - len(op.output_specs)]
        moving = tuple(tangent is not None for tangent in tangents)
        if not any(moving):
            return [None] * len(op.output_specs)
        return self._called(self._traces_of().jvp(moving), tangents, op)

    def _traces_of(self) -> DerivativeTraces:
        if self.refusal is not None:
            raise copy.copy(self.refusal)
        return self._traces

    def _called(self, trace: Any, arrived: Sequence[Any], op: Any) -> list:
        """Build a derivative; what it reads is read when what it is given has arrived.

        The identities that read it wait: no pass makes one of an op here and the one it repeats.
        """
        graph, own = current_graph(), self._traces.function.graph
        arrived = [in_graph(graph, convert_to_tensor(x)) for x in arrived if x is not None]
        known = [*op.inputs[: len(op.inputs) - len(op.outputs)], *op.outputs]
        with graph.control_dependencies(arrived):
            read = [
                identity_op(known[self._places[own.symbol_of(x)]]) if x.graph is own else x
                for x in trace.captured_inputs]
        return trace.call_with([*arrived, *read])


def _copied(trace: Ends) -> tuple[Ends, dict[int, int]]:
    """Return a trace that captures nothing, and the symbols there by those of the trace.

    A graph whose nodes refer to one that refers to its tensors could not be collected.
    """
    graph = FunctionGraph(trace.name, None)
    with unrecorded(), building_into(graph):
        symbols = {}
        for symbol in trace.input_symbols:
            spec = trace.graph.spec_of(symbol)
            symbols[symbol] = graph.argument(
                None if spec.shape is None else tuple(spec.shape), spec.dtype)
        inline(trace.graph, symbols, graph, lambda op, attrs, _: graph.changed(op, attrs))
        numbers = {
            symbol: graph.symbol_of(in_graph(graph, x)) for symbol, x in symbols.items()}
    inputs, outputs = (
        tuple(numbers[symbol] for symbol in ends)
        for ends in (trace.input_symbols, trace.output_symbols))
    return Ends(trace.name, graph, inputs, outputs), numbers
