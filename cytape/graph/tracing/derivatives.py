"""Derivatives of a traced function: traces of its backward pass and of its tangents."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.graph.run.reference import needed_nodes
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.creation import constant_op
from cytape.ops.engine.custom_op import GradientIfNeeded, record_custom
from cytape.ops.shared.python_call import missing_op
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.state import HIGHER_ORDER, building_into, unrecorded
from cytape.tensor.tensor import Tensor, restored, without_handle

__all__ = ["Derivatives"]

MOST_PARTIAL = 16  # traces for some of the outputs, or inputs, that are kept


class DerivativeGraph(FunctionGraph):
    """The body of a derivative of a trace.

    What is constant in the trace is none of its inputs, so nobody differentiates with respect to
    it: it is constant here, too, instead of a value that each call would have to pass on.
    """

    def stand_in_for(self, tensor: Tensor) -> Tensor:
        """Add a constant for one of the trace, and what calls pass for all else."""
        graph = self.outer_graph
        if graph is not None and tensor.graph is graph:
            node = graph.node_of(graph.symbol_of(tensor))
            if graph.ops[node] is constant_op:
                return self.constant(graph.attrs[node]["value"])
        return super().stand_in_for(tensor)


class _Ends(NamedTuple):
    """What there is to know of a trace."""

    name: str
    graph: FunctionGraph
    input_symbols: tuple[int, ...]
    output_symbols: tuple[int, ...]


class _Backward(NamedTuple):
    """The trace of a backward pass; apart, the gradients that depend on unknown derivatives."""

    trace: Any
    uncertain: dict[int, int]  # place among the gradients -> place among those of `of_uncertain`
    of_uncertain: Any

    def traces(self) -> list[Any]:
        return [self.trace] if self.of_uncertain is None else [self.trace, self.of_uncertain]


class Derivatives:
    """A trace that also returns the intermediates that its derivatives need; and these.

    A call is one op on a tape. Its backward function is a trace, too, that takes the gradients of
    the outputs and those intermediates that it reads; nothing is computed twice. Where derivatives
    of derivatives may be asked for, the intermediates are outputs of the op, and so have gradients
    and tangents themselves; what these need may be more intermediates, until there are no new ones.

    Parameters
    ----------
    function : Any
    new_trace : callable
        Makes a `ConcreteFunction`.
    order : {FIRST_ORDER, HIGHER_ORDER}
        Which derivatives may be asked for, see `possible_gradient_types`.
    reverse, forward : bool
        By which modes, see `possible_modes`.
    """

    def __init__(
        self, function: Any, new_trace: Callable[..., Any], order: int, reverse: bool, forward: bool
    ) -> None:
        # Not the function itself, which keeps this: they would be a cycle.
        self._function = function = _Ends(
            function.name, function.graph, function.input_symbols, function.output_symbols)
        self._new_trace = new_trace
        graph = function.graph
        known = dict.fromkeys([*function.input_symbols, *function.output_symbols])
        saved: list[int] = []
        while True:
            self._targets = [*function.output_symbols, *(saved if order == HIGHER_ORDER else ())]
            # By the outputs that a gradient has reached, and by the inputs that have a tangent.
            self._backward_from: dict[tuple[bool, ...], _Backward] = {}
            self._jvp_of: dict[tuple[bool, ...], Any] = {}
            if reverse:
                self._backward_from[self._trainable(self._targets)] = self._trace_backward()
            if forward:
                self._jvp_of[self._trainable(function.input_symbols)] = self._trace_jvp()
            needed = [
                graph.symbol_of(tensor)
                for trace in self._traces()
                for tensor in trace.captured_inputs
                if tensor.graph is graph
            ]
            new = [symbol for symbol in dict.fromkeys(needed) if symbol not in known]
            saved += new
            known.update(dict.fromkeys(new))
            if not new or order != HIGHER_ORDER:
                break
        self._saved = saved
        # Positions among inputs, outputs and saved intermediates, where a symbol has several the
        # last but for inputs: an input that is returned is the caller's tensor.
        places = [*function.input_symbols, *function.output_symbols, *saved]
        self._places = {symbol: i for i, symbol in reversed(list(enumerate(places)))}
        self._executable: Executable | None = None
        self._report: Callable[[], None] | None = None

    def _seeds(self, body: FunctionGraph, symbols: Iterable[int]) -> list[Tensor | None]:
        specs = map(self._function.graph.spec_of, symbols)
        return [body.argument(spec.shape, spec.dtype) if spec.trainable else None for spec in specs]

    def _trainable(self, symbols: Iterable[int]) -> tuple[bool, ...]:
        return tuple(self._function.graph.spec_of(symbol).trainable for symbol in symbols)

    def _trace_backward(self, reached: Iterable[bool] = itertools.repeat(True)) -> _Backward:
        """Trace the backward pass, from those targets only that a gradient has reached.

        As with tangents, zeros are not to be multiplied by what is not finite. Traced apart is what
        depends on a derivative that is not known.
        """
        graph = self._function.graph
        body = DerivativeGraph(f"{self._function.name}_grad", graph)
        targets = list(itertools.compress(self._targets, reached))
        of_uncertain = None
        with building_into(body):
            seeds = self._seeds(body, targets)
            gradients = symbolic_gradients(graph, targets, self._function.input_symbols, seeds)
            uncertain = [i for i, x in enumerate(gradients) if x is not None and _lacks(body, x)]
            if uncertain:
                of_uncertain = self._trace(body, seeds, [gradients[i] for i in uncertain])
                gradients = [None if i in uncertain else x for i, x in enumerate(gradients)]
            trace = self._trace(body, seeds, gradients)
        return _Backward(trace, {place: k for k, place in enumerate(uncertain)}, of_uncertain)

    def _trace_jvp(self, moving: Iterable[bool] = itertools.repeat(True)) -> Any:
        """Trace the tangents; those of inputs that stand still are not there, rather than zero.

        Zero times what is not finite is NaN: where the exponent of a negative number stands still.
        """
        graph = self._function.graph
        body = DerivativeGraph(f"{self._function.name}_jvp", graph)
        with building_into(body):
            tangents = [
                tangent if moves else None
                for tangent, moves in zip(
                    self._seeds(body, self._function.input_symbols), moving, strict=False)]
            results = symbolic_tangents(
                graph, self._function.input_symbols, tangents, self._targets)
            return self._trace(body, tangents, results)

    def _trace(self, body: FunctionGraph, arguments: list, results: list) -> Any:
        symbols = [body.symbol_of(x) for x in arguments if x is not None]
        return self._new_trace(body.name, body, symbols, results)

    @property
    def n_plans(self) -> int:
        """The number of plans."""
        return sum(part.n_plans for part in self._parts())

    @property
    def nbytes(self) -> int:
        """The size of plans and their constants."""
        return sum(part.nbytes for part in self._parts())

    def executables(self) -> list[Executable]:
        """List all that have these plans."""
        executables = [] if self._executable is None else [self._executable]
        for trace in self._traces():
            executables += trace.executables()
        return executables

    def report_plans(self, report: Callable[[], None] | None) -> None:
        """Have a function called after each plan that is made."""
        self._report = report
        if self._executable is not None:
            self._executable.report = report
        for trace in self._traces():
            trace.report_plans(report)

    def _traces(self) -> list[Any]:
        # Lists, for other threads may add to these meanwhile.
        backward = [part.traces() for part in list(self._backward_from.values())]
        return [*itertools.chain(*backward), *list(self._jvp_of.values())]

    def _parts(self) -> list[Any]:
        executable = [] if self._executable is None else [self._executable]
        return [*self._traces(), *executable]

    def _backward_for(self, reached: tuple[bool, ...]) -> _Backward:
        backward = self._backward_from.pop(reached, None)
        if backward is None:
            with unrecorded():
                backward = self._trace_backward(reached)
            for trace in backward.traces():
                trace.report_plans(self._report)
        _keep_last(self._backward_from, reached, backward)
        return backward

    def _jvp_for(self, moving: tuple[bool, ...]) -> Any:
        trace = self._jvp_of.pop(moving, None)
        if trace is None:
            with unrecorded():
                trace = self._trace_jvp(moving)
            trace.report_plans(self._report)
        _keep_last(self._jvp_of, moving, trace)
        return trace

    def call(self, inputs: list) -> list:
        """Compute the function's outputs, as the outputs of one op that recorders follow."""
        function, places = self._function, self._places
        if self._executable is None:
            self._executable = Executable(Subgraph(
                function.graph, function.input_symbols,
                (*function.output_symbols, *self._saved), tuple(function.graph.stateful)))
            self._executable.report = self._report
        values = list(map(convert_to_tensor, inputs))
        results = self._executable.run(values)
        n_targets = len(self._targets)
        outputs, intermediates = results[:n_targets], results[n_targets:]
        # Not the handles: by their death a tape knows that nobody needs this call any more.
        saved = list(map(without_handle, outputs))

        def derivative(trace: Any, arguments: Iterable) -> list:
            known = values + list(map(restored, saved)) + intermediates
            return trace.call_with([
                *arguments,
                *[known[places[function.graph.symbol_of(x)]] if x.graph is function.graph else x
                  for x in trace.captured_inputs],
            ])

        def backward(*gradients: Any) -> list:
            backward = self._backward_for(tuple(g is not None for g in gradients))
            seeds = [g for g in gradients if g is not None]
            found = derivative(backward.trace, seeds)
            if backward.uncertain:
                compute = functools.cache(lambda: derivative(backward.of_uncertain, seeds))
                for i, place in backward.uncertain.items():
                    found[i] = GradientIfNeeded(functools.partial(_part, compute, place))
            return found

        def jvp(*tangents: Any) -> list:
            moving = tuple(t is not None for t in tangents)
            return derivative(self._jvp_for(moving), [t for t in tangents if t is not None])

        record_custom(function.name, outputs, inputs, backward, jvp, optional=True)
        return outputs[: len(function.output_symbols)]


def _keep_last(traces: dict, key: tuple[bool, ...], trace: Any) -> None:
    """Add a trace to those that were used last, of which there are not too many."""
    traces[key] = trace
    for oldest in list(traces)[:-MOST_PARTIAL]:
        traces.pop(oldest, None)


def _part(compute: Callable[[], list], place: int) -> Any:
    return compute()[place]


def _lacks(body: FunctionGraph, gradient: Any) -> bool:
    """Tell a gradient that depends on a derivative which is not known."""
    if missing_op not in body.ops:
        return False
    tensor: Any = gradient.values if isinstance(gradient, IndexedSlices) else gradient
    return tensor.graph is body and any(
        body.ops[node] is missing_op
        for node in needed_nodes(body, [body.symbol_of(tensor)], ()))
