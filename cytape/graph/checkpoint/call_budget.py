"""Choice of the values that a call of a trace keeps within a memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cytape.errors import MemoryBudgetError
from cytape.graph.checkpoint.checkpoint_choice import chosen
from cytape.graph.checkpoint.gradient_model import GradientModel, bytes_of, peak_of_run
from cytape.graph.checkpoint.memory_plan import MOST_TIME, kept_values
from cytape.graph.checkpoint.recomputing_traces import KeptSymbols, RecomputingGraph
from cytape.graph.checkpoint.schedule_curve import Planner
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.trace_derivatives import DerivativeTraces, Ends
from cytape.tensor.recording.state import building_into, unrecorded

__all__ = ["CallGradient", "symbols_within"]


class CallGradient:
    """The gradient of a call: of its outputs with respect to its inputs, as arguments of `chosen`.

    Captured tensors are inputs; outer graphs are not differentiated.

    Parameters
    ----------
    trace : Ends

    Attributes
    ----------
    ys, xs, grad_ys : list
    options : dict
    """

    def __init__(self, trace: Ends) -> None:
        graph = trace.graph
        self.xs, self.ys = (
            [graph.tensor_at(symbol) for symbol in symbols if graph.spec_of(symbol).trainable]
            for symbols in (trace.input_symbols, trace.output_symbols))
        # Only sizes matter, so a complex output is its own gradient here.
        self.grad_ys = [y if y.dtype.kind == "c" else None for y in self.ys]
        self.options = {"stop_gradients": self.xs}

    def chosen(self, checkpoints: Any, least_size: int) -> frozenset[int]:
        """Return the symbols chosen by `chosen`."""
        return frozenset(chosen(
            self.ys, self.xs, self.grad_ys, checkpoints, least_size, self.options))


class _Candidate(NamedTuple):
    peak: int
    seconds: float
    symbols: frozenset[int]


def symbols_within(
    trace: Ends, memory_budget: float | None, outputs: bool, least_size: int
) -> frozenset[int]:
    """Return the values that calls of a trace keep within a budget, for a fast gradient.

    Parameters
    ----------
    trace : Ends
    memory_budget : int, float or None
        As for `plan`. The peak is that of the call, or of its kept values and its backward pass.
    outputs : bool
        Whether the caller keeps the outputs.
    least_size : int
        As `chosen` takes it.

    Returns
    -------
    frozenset of int
        Symbols.

    Raises
    ------
    MemoryBudgetError
        If nothing was found within the budget.
    """
    graph = trace.graph
    gradient = CallGradient(trace)
    if not gradient.xs or not gradient.ys:
        return frozenset()
    with building_into(graph), unrecorded():
        model = GradientModel(
            graph, gradient.ys, gradient.xs, gradient.grad_ys, gradient.options)
        found = [
            _measured(trace, symbols, outputs, model)
            for symbols in dict.fromkeys(_choices(model, graph, gradient, least_size))]
    plain = found[0]
    if memory_budget is None:
        most = (MOST_TIME - 1) * model.seconds
        return min(each for each in found if each.seconds <= most).symbols
    budget = memory_budget
    if isinstance(budget, (float, np.floating)):
        budget = int(budget * plain.peak)
    smallest = min(each.peak for each in found)
    if smallest > budget:
        raise MemoryBudgetError(
            f"memory_budget={budget} bytes is too small for {trace.name}: the smallest peak found "
            f"is {smallest}, and {plain.peak} if all values are kept. Raise the budget; or compute "
            "the gradient in a graph by cytape.graph.checkpoint.gradients, which may need less, as "
            "it recomputes values more than once", smallest)
    return min((each for each in found if each.peak <= budget),
               key=lambda each: (each.seconds, each.peak)).symbols


def _choices(
    model: GradientModel, graph: Any, gradient: CallGradient, least_size: int
) -> Iterator[frozenset[int]]:
    """Yield choices of values that may be kept, first all of them."""
    yield frozenset(range(graph.n_symbols))
    for point in Planner(model.program).curve():
        yield frozenset(
            symbol for value in kept_values(model, point.schedule)
            for symbol in graph.outputs_of(model.values[value]))
    for checkpoints, least in (("memory", least_size), ("memory", 0), ("speed", 0)):
        try:
            yield gradient.chosen(checkpoints, least)
        except ValueError:
            continue


def _measured(
    trace: Ends, symbols: frozenset[int], outputs: bool, model: GradientModel
) -> _Candidate:
    """Return the peak of a call and its backward pass, and the time of recomputed ops."""
    graph = trace.graph
    bodies: list[RecomputingGraph] = []

    def new_body(name: str) -> RecomputingGraph:
        bodies.append(KeptSymbols(trace, symbols, outputs).new_body(name))
        return bodies[-1]

    traces = DerivativeTraces(trace, ConcreteFunction, (), new_body)
    backward = traces.backward(
        traces.trainable(trace.output_symbols), traces.trainable(trace.input_symbols))
    [body] = bodies
    saved = [symbol for x in backward.captured_inputs if x.graph is graph
             and (symbol := graph.symbol_of(x)) not in trace.input_symbols]
    keep, extent = tuple(graph.stateful), model.unknown_extent
    forwards = peak_of_run(Subgraph(
        graph, trace.input_symbols, tuple(dict.fromkeys((*trace.output_symbols, *saved))), keep),
        extent)
    backwards = peak_of_run(Subgraph(
        body, backward.input_symbols, tuple(dict.fromkeys(backward.output_symbols)),
        tuple(body.stateful)), extent)
    kept = sum(bytes_of(graph, symbol, extent) for symbol in saved)
    seconds = sum(model.seconds_of(node) * count for node, count in body.n_copies.items())
    return _Candidate(max(forwards, kept + backwards), seconds, symbols)
