"""Derivatives of a traced function: traces of its backward pass and of its tangents."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.calls.late import upper
from cytape.ops.creation import constant_op
from cytape.ops.engine.custom_op import GradientsIfNeeded, record_custom
from cytape.tensor.recording.state import HIGHER_ORDER, building_into, unrecorded
from cytape.tensor.tensor import Tensor, another, restored, without_handle

__all__ = ["DerivativeTraces", "Derivatives", "Ends", "Kept", "kept_of"]

MOST_PARTIAL = 16  # cached traces for some of the outputs or inputs


class DerivativeGraph(FunctionGraph):
    """The body of a derivative of a trace.

    Constants of the trace are constants here, not captured values that each call would pass, since
    no derivative is taken with respect to them.
    """

    def stand_in_for(self, tensor: Tensor) -> Tensor:
        """Add a constant for a constant of the trace, a placeholder for other tensors."""
        graph = self.outer_graph
        if graph is not None and tensor.graph is graph:
            node = graph.node_of(graph.symbol_of(tensor))
            if graph.ops[node] is constant_op:
                return self.constant(graph.attrs[node]["value"])
        return super().stand_in_for(tensor)


class Kept(Protocol):
    """The values that a call keeps for its derivatives, if these recompute others."""

    symbols: frozenset[int]

    def passed(self) -> list[int]:
        """List the symbols that derivatives read besides inputs, outputs and constants."""

    def new_body(self, name: str) -> DerivativeGraph:
        """Return the body of a derivative, which recomputes the other values."""


def kept_of(trace: Ends, checkpoints: Any, outputs: bool) -> Kept:
    """Return the values that calls of a trace keep for their derivatives; None: all.

    Parameters
    ----------
    trace : ConcreteFunction
    checkpoints
        The user's choice, or symbols.
    outputs : bool
        Whether the caller keeps the outputs.
    """
    return upper("kept_values")(trace, checkpoints, outputs)


class Ends(NamedTuple):
    """The parts of a trace that its derivatives need."""

    name: str
    graph: FunctionGraph
    input_symbols: tuple[int, ...]
    output_symbols: tuple[int, ...]


class DerivativeTraces:
    """Traces of a trace's derivatives, by the gradients or tangents given and needed.

    Parameters
    ----------
    function : Ends
    new_trace : callable
        Makes a `ConcreteFunction`.
    saved : sequence of int
        The symbols of intermediates that are outputs, too, and so have derivatives.
    new_body : callable
        Makes the graph of a derivative of a name; an attribute, too.
    """

    def __init__(
        self, function: Ends, new_trace: Callable[..., Any], saved: Sequence[int],
        new_body: Callable[[str], DerivativeGraph],
    ) -> None:
        self.function = function
        self._new_trace = new_trace
        self.new_body = new_body
        self.targets = [*function.output_symbols, *saved]
        # By the outputs that a gradient has reached and the inputs that need one, and by the
        # inputs that have a tangent.
        self._backward_from: dict[tuple[tuple[bool, ...], tuple[bool, ...]], Any] = {}
        self._jvp_of: dict[tuple[bool, ...], Any] = {}
        self.report: Callable[[], None] | None = None

    def _seeds(
        self, body: FunctionGraph, symbols: Sequence[int], there: Sequence[bool]
    ) -> list[Tensor | None]:
        specs = map(self.function.graph.spec_of, symbols)
        return [body.argument(spec.shape, spec.dtype) if spec.trainable and is_there else None
                for spec, is_there in zip(specs, there, strict=True)]

    def trainable(self, symbols: Iterable[int]) -> tuple[bool, ...]:
        """Return which of some symbols are differentiable."""
        return tuple(self.function.graph.spec_of(symbol).trainable for symbol in symbols)

    def backward(self, reached: tuple[bool, ...], needed: tuple[bool, ...]) -> Any:
        """Return the trace of the backward pass, from targets with gradients to inputs.

        Parameters
        ----------
        reached : tuple of bool
            Per target.
        needed : tuple of bool
            Per input.

        Returns
        -------
        ConcreteFunction
            Takes the gradients of those targets, and the captured values of the trace; returns a
            gradient, or None, per input.
        """
        return self._trace_for(
            self._backward_from, (reached, needed), lambda: self._trace_backward(reached, needed))

    def jvp(self, moving: tuple[bool, ...]) -> Any:
        """Return the trace of the tangents of all targets, given those of some inputs."""
        return self._trace_for(self._jvp_of, moving, lambda: self._trace_jvp(moving))

    def _trace_backward(self, reached: tuple[bool, ...], needed: tuple[bool, ...]) -> Any:
        """Trace the backward pass.

        Missing gradients are omitted, not zero, since zero times an infinite derivative is NaN, and
        an unused derivative may be unknown.
        """
        graph = self.function.graph
        body = self.new_body(f"{self.function.name}_grad")
        targets = list(itertools.compress(self.targets, reached))
        sources = list(itertools.compress(self.function.input_symbols, needed))
        with building_into(body):
            seeds = self._seeds(body, targets, [True] * len(targets))
            gradients = iter(symbolic_gradients(graph, targets, sources, seeds))
            return self._trace(body, seeds, [next(gradients) if x else None for x in needed])

    def _trace_jvp(self, moving: tuple[bool, ...]) -> Any:
        """Trace the tangents. Missing tangents are omitted, not zero.

        Zero times an infinite derivative is NaN, as for the exponent of a negative number.
        """
        graph, inputs = self.function.graph, self.function.input_symbols
        body = self.new_body(f"{self.function.name}_jvp")
        with building_into(body):
            tangents = self._seeds(body, inputs, moving)
            results = symbolic_tangents(graph, inputs, tangents, self.targets)
            return self._trace(body, tangents, results)

    def _trace(self, body: FunctionGraph, arguments: list, results: list) -> Any:
        symbols = [body.symbol_of(x) for x in arguments if x is not None]
        return self._new_trace(body.name, body, symbols, results)

    def traces(self) -> list[Any]:
        """List the traces that exist."""
        # Copies, since other threads may add to these.
        return [*list(self._backward_from.values()), *list(self._jvp_of.values())]

    def _trace_for(self, traces: dict, key: tuple, new_trace: Callable[[], Any]) -> Any:
        """Return the trace of a key; only the most recently used ones are kept."""
        trace = traces.pop(key, None)
        if trace is None:
            with unrecorded():
                trace = new_trace()
            trace.report_plans(self.report)
        traces[key] = trace
        for oldest in list(traces)[:-MOST_PARTIAL]:  # other threads may have dropped it meanwhile
            traces.pop(oldest, None)
        return trace


class Derivatives:
    """A trace that also returns the intermediates that its derivatives need, and those derivatives.

    A call is one op on a tape. Its backward function is a trace, too, of the gradients of the
    outputs and the intermediates that it reads; nothing is computed twice. If higher derivatives
    may be needed, the intermediates are outputs of the op, and so have gradients and tangents
    themselves, which may need more intermediates; this is repeated until there are no new ones.

    Parameters
    ----------
    function : Any
    new_trace : callable
        Makes a `ConcreteFunction`.
    order : {FIRST_ORDER, HIGHER_ORDER}
        Which derivatives may be asked for, see `possible_gradient_types`.
    reverse, forward : bool
        By which modes, see `possible_modes`.
    checkpoints : Any, optional
        Which intermediates are kept; the derivatives compute all others again. By default all.
    """

    n_constant_bytes = 0

    def __init__(
        self, function: Any, new_trace: Callable[..., Any], order: int, reverse: bool,
        forward: bool, checkpoints: Any = None,
    ) -> None:
        # Not the function itself, which refers to this object: a cycle.
        self._function = function = Ends(
            function.name, function.graph, function.input_symbols, function.output_symbols)
        graph = function.graph
        new_body = (
            partial(DerivativeGraph, outer_graph=graph) if checkpoints is None
            else kept_of(function, checkpoints, True).new_body)
        known = dict.fromkeys([*function.input_symbols, *function.output_symbols])
        # Zeros in place of missing tangents need the shape of a tensor, which may depend on a draw.
        saved = kept_of(function, frozenset(), True).passed() if graph.stateful and not all(
            graph.spec_of(symbol).known for symbol in range(graph.n_symbols)) else []
        saved = [symbol for symbol in saved if symbol not in known]
        known.update(dict.fromkeys(saved))
        while True:
            self._traces = traces = DerivativeTraces(
                function, new_trace, saved if order == HIGHER_ORDER else (), new_body)
            trainable = traces.trainable(function.input_symbols)
            if reverse:
                traces.backward(traces.trainable(traces.targets), trainable)
            if forward:
                traces.jvp(trainable)
            needed = [
                graph.symbol_of(tensor)
                for trace in traces.traces()
                for tensor in trace.captured_inputs
                if tensor.graph is graph
            ]
            new = [symbol for symbol in dict.fromkeys(needed) if symbol not in known]
            saved += new
            known.update(dict.fromkeys(new))
            if not new or order != HIGHER_ORDER:
                break
        self.saved = saved
        # Traces for some outputs or inputs may read more, for the shapes of zeros.
        traces.new_body = lambda name: kept_of(function, frozenset(saved), True).new_body(name)
        # Positions among inputs, outputs and saved intermediates: the last one of a symbol, but an
        # input's own position, since a returned input is the caller's tensor.
        places = [*function.input_symbols, *function.output_symbols, *saved]
        self._places = {symbol: i for i, symbol in reversed(list(enumerate(places)))}
        self.own_executable: Executable | None = None

    @property
    def report(self) -> Callable[[], None] | None:
        """Function that is called after each plan is made."""
        return self._traces.report

    @report.setter
    def report(self, report: Callable[[], None] | None) -> None:
        self._traces.report = report

    def traces(self) -> list[Any]:
        """List the traces of derivatives."""
        return self._traces.traces()

    def call(self, inputs: list) -> list:
        """Compute the function's outputs and record them as the outputs of one op."""
        function, places = self._function, self._places
        if self.own_executable is None:
            self.own_executable = Executable(Subgraph(
                function.graph, function.input_symbols,
                (*function.output_symbols, *self.saved), tuple(function.graph.stateful)))
            self.own_executable.report = self.report
        # New handles: later writes by the caller do not change the arguments of this call.
        values = list(map(another, inputs))
        results = self.own_executable.run(values)
        n_targets = len(self._traces.targets)
        outputs, intermediates = results[:n_targets], results[n_targets:]
        # Values without handles: a handle would keep the tape from dropping this call.
        saved = list(map(without_handle, outputs))

        def derivative(trace: Any, arguments: Iterable) -> list:
            known = values + list(map(restored, saved)) + intermediates
            return trace.call_with([
                *arguments,
                *[known[places[function.graph.symbol_of(x)]] if x.graph is function.graph else x
                  for x in trace.captured_inputs],
            ])

        def backward(*gradients: Any) -> GradientsIfNeeded:
            reached = tuple(g is not None for g in gradients)
            seeds = [g for g in gradients if g is not None]

            def compute(needed: tuple[bool, ...]) -> list:
                return derivative(self._traces.backward(reached, needed), seeds)

            return GradientsIfNeeded(compute)

        def jvp(*tangents: Any) -> list:
            moving = tuple(t is not None for t in tangents)
            return derivative(self._traces.jvp(moving), [t for t in tangents if t is not None])

        record_custom(function.name, outputs, inputs, backward, jvp, optional=True)
        return outputs[: len(function.output_symbols)]
