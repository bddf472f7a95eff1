"""Derivatives of a traced function: traces of its backward pass and of its tangents."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import Executable
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import symbolic_gradients, symbolic_tangents
from cytape.ops.creation import constant_op
from cytape.ops.engine.custom_op import GradientsIfNeeded, record_custom
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


_new_bodies: Callable[..., Callable[[str, Any], DerivativeGraph]]


def install_new_bodies(function: Callable[..., Callable[[str, Any], DerivativeGraph]]) -> None:
    """Tell what makes bodies of derivatives of traces where not all intermediates are kept.

    Parameters
    ----------
    function : callable
        Called with the graph of a trace, the symbols of its inputs and outputs, and what is to be
        kept; returns what is called as `DerivativeGraph`.
    """
    global _new_bodies
    _new_bodies = function


class _Ends(NamedTuple):
    """What there is to know of a trace."""

    name: str
    graph: FunctionGraph
    input_symbols: tuple[int, ...]
    output_symbols: tuple[int, ...]


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
    checkpoints : str or list, optional
        Which intermediates are kept; the derivatives compute all others again. By default all.
    """

    def __init__(
        self, function: Any, new_trace: Callable[..., Any], order: int, reverse: bool,
        forward: bool, checkpoints: Any = None,
    ) -> None:
        # Not the function itself, which keeps this: they would be a cycle.
        self._function = function = _Ends(
            function.name, function.graph, function.input_symbols, function.output_symbols)
        self._new_trace = new_trace
        graph = function.graph
        self._new_body: Callable[[str, Any], DerivativeGraph] = DerivativeGraph
        if checkpoints is not None:
            self._new_body = _new_bodies(
                graph, function.input_symbols, function.output_symbols, checkpoints)
        known = dict.fromkeys([*function.input_symbols, *function.output_symbols])
        saved: list[int] = []
        while True:
            self._targets = [*function.output_symbols, *(saved if order == HIGHER_ORDER else ())]
            # By the outputs that a gradient has reached and the inputs that need one, and by the
            # inputs that have a tangent.
            self._backward_from: dict[tuple[tuple[bool, ...], tuple[bool, ...]], Any] = {}
            self._jvp_of: dict[tuple[bool, ...], Any] = {}
            trainable = self._trainable(function.input_symbols)
            if reverse:
                reached = self._trainable(self._targets)
                self._backward_from[reached, trainable] = self._trace_backward(reached, trainable)
            if forward:
                self._jvp_of[trainable] = self._trace_jvp(trainable)
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

    def _trace_backward(self, reached: tuple[bool, ...], needed: tuple[bool, ...]) -> Any:
        """Trace the backward pass, from the targets that a gradient has reached to needed ones.

        As with tangents, zeros are not to be multiplied by what is not finite. A gradient that
        nobody needs may follow from a derivative that is not known, or not finite.
        """
        graph = self._function.graph
        body = self._new_body(f"{self._function.name}_grad", graph)
        targets = list(itertools.compress(self._targets, reached))
        sources = list(itertools.compress(self._function.input_symbols, needed))
        with building_into(body):
            seeds = self._seeds(body, targets)
            gradients = iter(symbolic_gradients(graph, targets, sources, seeds))
            return self._trace(body, seeds, [next(gradients) if x else None for x in needed])

    def _trace_jvp(self, moving: tuple[bool, ...]) -> Any:
        """Trace the tangents; those of inputs that stand still are not there, rather than zero.

        Zero times what is not finite is NaN: where the exponent of a negative number stands still.
        """
        graph = self._function.graph
        body = self._new_body(f"{self._function.name}_jvp", graph)
        with building_into(body):
            tangents = [
                tangent if moves else None
                for tangent, moves in zip(
                    self._seeds(body, self._function.input_symbols), moving, strict=True)]
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
        return [*list(self._backward_from.values()), *list(self._jvp_of.values())]

    def _parts(self) -> list[Any]:
        executable = [] if self._executable is None else [self._executable]
        return [*self._traces(), *executable]

    def _trace_for(self, traces: dict, key: tuple, new_trace: Callable[[], Any]) -> Any:
        """Return the trace of a key, and keep those that were used last."""
        trace = traces.pop(key, None)
        if trace is None:
            with unrecorded():
                trace = new_trace()
            trace.report_plans(self._report)
        traces[key] = trace
        for oldest in list(traces)[:-MOST_PARTIAL]:  # other threads may have dropped it meanwhile
            traces.pop(oldest, None)
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

        def backward(*gradients: Any) -> GradientsIfNeeded:
            reached = tuple(g is not None for g in gradients)
            seeds = [g for g in gradients if g is not None]

            def compute(needed: tuple[bool, ...]) -> list:
                return derivative(self._trace_for(
                    self._backward_from, (reached, needed),
                    lambda: self._trace_backward(reached, needed)), seeds)

            return GradientsIfNeeded(compute)

        def jvp(*tangents: Any) -> list:
            moving = tuple(t is not None for t in tangents)
            trace = self._trace_for(self._jvp_of, moving, lambda: self._trace_jvp(moving))
            return derivative(trace, [t for t in tangents if t is not None])

        record_custom(function.name, outputs, inputs, backward, jvp, optional=True)
        return outputs[: len(function.output_symbols)]
