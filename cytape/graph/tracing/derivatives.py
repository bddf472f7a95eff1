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
from cytape.ops.engine.general_op import GradientIfNeeded, record_custom
from cytape.ops.shared.python_call import missing_op
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.state import HIGHER_ORDER, building_into, unrecorded
from cytape.tensor.tensor import Tensor, convert_to_tensor, restored, without_handle

__all__ = ["Derivatives"]


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
    """

    def __init__(
        self, function: Any, new_trace: Callable[..., Any], order: int
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
            self._backward = self._trace_backward()
            self._jvp = self._trace_jvp()
            needed = [
                graph.symbol_of(tensor)
                for trace in (self._backward, self._jvp)
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
        self._partial_jvps: dict[tuple[bool, ...], Any] = {}
        self._executable: Executable | None = None
        self._report: Callable[[], None] | None = None

    def _seeds(self, body: FunctionGraph, symbols: Iterable[int]) -> list[Tensor | None]:
        specs = map(self._function.graph.spec_of, symbols)
        return [body.argument(spec.shape, spec.dtype) if spec.trainable else None for spec in specs]

    def _trace_backward(self) -> Any:
        """Trace the backward pass, apart what depends on a derivative that is not known."""
        graph = self._function.graph
        body = DerivativeGraph(f"{self._function.name}_grad", graph)
        with building_into(body):
            seeds = self._seeds(body, self._targets)
            gradients = symbolic_gradients(
                graph, self._targets, self._function.input_symbols, seeds)
            uncertain = [i for i, x in enumerate(gradients) if x is not None and _lacks(body, x)]
            self._uncertain = {place: k for k, place in enumerate(uncertain)}
            if uncertain:
                self._backward_of_uncertain = self._trace(
                    body, seeds, [gradients[i] for i in uncertain])
                gradients = [None if i in uncertain else x for i, x in enumerate(gradients)]
            return self._trace(body, seeds, gradients)

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
        uncertain = [self._backward_of_uncertain] if self._uncertain else []
        return [self._backward, self._jvp, *self._partial_jvps.values(), *uncertain]

    def _parts(self) -> list[Any]:
        executable = [] if self._executable is None else [self._executable]
        return [*self._traces(), *executable]

    def _jvp_for(self, moving: tuple[bool, ...]) -> Any:
        """Return the trace of tangents for those inputs that have one."""
        graph, inputs = self._function.graph, self._function.input_symbols
        if all(moves or not graph.spec_of(symbol).trainable
               for moves, symbol in zip(moving, inputs, strict=True)):
            return self._jvp
        if moving not in self._partial_jvps:
            with unrecorded():
                trace = self._trace_jvp(moving)
            trace.report_plans(self._report)
            self._partial_jvps[moving] = trace
        return self._partial_jvps[moving]

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
        needs_gradient = [function.graph.spec_of(symbol).trainable for symbol in self._targets]

        def derivative(trace: Any, arguments: Iterable) -> list:
            known = values + list(map(restored, saved)) + intermediates
            return trace.call_with([
                *arguments,
                *[known[places[function.graph.symbol_of(x)]] if x.graph is function.graph else x
                  for x in trace.captured_inputs],
            ])

        def backward(*gradients: Any) -> list:
            seeds = [g for g, needed in zip(gradients, needs_gradient, strict=True) if needed]
            found = derivative(self._backward, seeds)
            if self._uncertain:
                compute = functools.cache(lambda: derivative(self._backward_of_uncertain, seeds))
                for i, place in self._uncertain.items():
                    found[i] = GradientIfNeeded(functools.partial(_part, compute, place))
            return found

        def jvp(*tangents: Any) -> list:
            moving = tuple(t is not None for t in tangents)
            return derivative(self._jvp_for(moving), [t for t in tangents if t is not None])

        record_custom(function.name, outputs, inputs, backward, jvp, optional_tangents=True)
        return outputs[: len(function.output_symbols)]


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
