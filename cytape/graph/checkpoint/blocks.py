"""Calls in graphs that keep nothing for their derivatives but what they were called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cytape.graph.tracing.bodies import given_symbols, inlined, repeatable
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.frozen_draws import call_traced
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline, symbolic_tangents
from cytape.ops.creation import identity_op
from cytape.ops.engine.gradients import compute_gradients
from cytape.ops.engine.symbolic import in_graph
from cytape.ops.shared.graph_blocks import install_recomputed_in_graph
from cytape.ops.shared.python_call import PythonCall, given_results_op
from cytape.tensor import nest
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.state import (
    Recorder,
    building_into,
    current_graph,
    stop_recording,
    unrecorded,
)
from cytape.tensor.tensor import Tensor


def _recomputed_in_graph(graph: Any, f: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a function; what `recompute_grad` makes of one does that in graphs."""
    with building_into(graph):
        body = FunctionGraph(getattr(f, "__name__", type(f).__name__), graph)
        with unrecorded(), building_into(body):
            result = call_traced(body, f, args, kwargs)
            leaves = nest.flatten(result)
            outputs = [in_graph(body, convert_to_tensor(x)) for x in leaves if _is_tensor(x)]
        trace = ConcreteFunction(body.name, body, [], outputs)
        inputs = [in_graph(graph, convert_to_tensor(x)) for x in trace.captured_inputs]
        trace.release_captures()
        symbols = dict(zip(trace.input_symbols, inputs, strict=True))
        with stop_recording():
            inline(body, symbols, graph, lambda op, attrs, _: graph.changed(op, attrs))
        given = [symbols[symbol] for symbol in given_symbols(body)]
        results = [symbols[symbol] for symbol in trace.output_symbols]
        if results:
            results = given_results_op(
                *inputs, *given, *results, call=_Block(trace, len(inputs)), n_results=len(results))
    remaining = iter(results)
    return nest.pack_sequence_as(
        result, [next(remaining) if _is_tensor(x) else x for x in leaves])


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


class _Block(PythonCall):
    """The derivatives of a call.

    Parameters
    ----------
    body : ConcreteFunction
    n_inputs : int
        How many inputs of the call the body has; what its stateful ops returned are more inputs.
    """

    def __init__(self, body: ConcreteFunction, n_inputs: int) -> None:
        self.name = body.name
        self._body = body
        self._n_inputs = n_inputs
        self._again: ConcreteFunction | None = None

    def _recomputed(self, inputs: list[Tensor], arrived: Sequence[Any]) -> tuple[list, Any]:
        """Read the inputs late, when gradients have arrived; return what is read.

        The identities wait: no pass makes one of an op here and the one that it repeats.
        """
        if self._again is None:
            with building_into(None):
                self._again = repeatable(self._body)
        with current_graph().control_dependencies([x for x in arrived if x is not None]):
            return list(map(identity_op, inputs)), self._again

    def vjp(self, inputs: list[Tensor], gradients: list, op: Any) -> list:
        """Compute the body again, and its gradients."""
        graph = current_graph()
        seeds = [None if g is None else in_graph(graph, convert_to_tensor(g)) for g in gradients]
        read, body = self._recomputed(inputs, seeds)
        moving = [i for i in range(self._n_inputs) if op.needs[i] and inputs[i].spec.trainable]
        recorder = Recorder(False, False)
        for i in moving:
            recorder.watch(read[i].id)
        recorder.push()
        try:
            outputs = inlined(body, graph, read)
        finally:
            recorder.pop()
        reached = [i for i, seed in enumerate(seeds) if seed is not None]
        found = compute_gradients(
            recorder, [outputs[i] for i in reached], [read[i] for i in moving],
            [seeds[i] for i in reached])
        results: list[Any] = [None] * len(inputs)
        for i, gradient in zip(moving, found, strict=True):
            results[i] = gradient
        return results

    def jvp(self, inputs: list[Tensor], tangents: list, op: Any) -> list:
        """Compute the body again, and its tangents."""
        graph = current_graph()
        read, body = self._recomputed(inputs, tangents)
        before = graph.n_nodes
        outputs = inlined(body, graph, read)
        moving = [i for i in range(self._n_inputs) if tangents[i] is not None]
        return symbolic_tangents(
            graph, [graph.symbol_of(read[i]) for i in moving], [tangents[i] for i in moving],
            list(map(graph.symbol_of, outputs)), range(before, graph.n_nodes))


install_recomputed_in_graph(_recomputed_in_graph)
