"""Bodies (traced functions that nodes of a graph run), and bodies derived from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import context_within, inline
from cytape.ops.adjoints.conform import fill_like
from cytape.ops.calls.symbolic import SymbolicGraph, in_graph
from cytape.ops.creation import stop_gradient_op
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.recording.state import building_into, current_graph, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = [
    "Operands",
    "added",
    "closed",
    "dense",
    "derived",
    "given_symbols",
    "inlined",
    "like",
    "repeatable",
    "with_outputs",
    "zeros",
]

_Make = TypeVar("_Make", bound=Callable[..., Any])


class Operands:
    """The distinct inputs of a node that will be added.

    Parameters
    ----------
    tensors : iterable of Tensor
        The first inputs.

    Attributes
    ----------
    tensors : list of Tensor or Variable

    Examples
    --------
    >>> import cytape
    >>> x, y = cytape.constant(1.0), cytape.constant(2.0)
    >>> operands = Operands([x])
    >>> operands.positions([y, x, y]), len(operands.tensors)
    ((1, 0, 1), 2)
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.tensors = list(tensors)
        self._positions = {tensor.id: i for i, tensor in enumerate(self.tensors)}

    def positions(self, tensors: Iterable[Tensor]) -> tuple[int, ...]:
        """Add some tensors to the inputs; return their positions."""
        positions = []
        for tensor in tensors:
            position = len(self.tensors)
            if tensor.id >= 0:  # saved constants of eager calls have no id
                position = self._positions.setdefault(tensor.id, position)
            if position == len(self.tensors):
                self.tensors.append(tensor)
            positions.append(position)
        return tuple(positions)


def like(graph: FunctionGraph, source: SymbolicGraph, symbols: Iterable[int]) -> list[Tensor]:
    """Add arguments to a graph, like some symbols of another one."""
    return graph.arguments(map(source.spec_of, symbols))


def inlined(body: ConcreteFunction, graph: FunctionGraph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Build a body in the graph that is being built; return the outputs."""
    symbols = dict(zip(body.input_symbols, inputs, strict=True))
    inline(body.graph, symbols, graph)
    return [symbols[symbol] for symbol in body.output_symbols]


def given_symbols(graph: SymbolicGraph) -> list[int]:
    """List the results of stateful nodes that repeated calls read."""
    symbols: list[int] = []
    for node in graph.stateful:
        given = graph.ops[node].given
        symbols += graph.outputs_of(node) if given is None else given(graph, node)
    return symbols


def repeatable(body: ConcreteFunction) -> ConcreteFunction:
    """Return a body that computes the same results without side effects.

    It has more inputs: the results of stateful nodes in the first call.
    """
    source, given = body.graph, given_symbols(body.graph)
    graph = FunctionGraph(body.name, current_graph())
    with unrecorded(), building_into(graph):
        arguments = like(graph, source, (*body.input_symbols, *given))
        n = len(body.input_symbols)
        symbols = dict(zip(body.input_symbols, arguments[:n], strict=True))
        values = dict(zip(given, arguments[n:], strict=True))
        for node in range(source.n_nodes):
            op, attrs, outputs = source.ops[node], source.attrs[node], source.outputs_of(node)
            if not outputs or outputs[0] in symbols:
                continue
            inputs = [symbols[symbol] for symbol in source.inputs_of(node)]
            graph.enter_context(context_within(graph, 0, source.contexts[source.context_of(node)]))
            if op.stateful:
                # Constants for derivatives; the replacement defines how they depend on the inputs.
                results: Any = [stop_gradient_op(values[symbol]) if symbol in values else None
                                for symbol in outputs]
                if op.repeated is not None:
                    results = op.repeated(inputs, results, attrs)
            else:
                results = graph.build(op, *inputs, **attrs)
            results = [results] if isinstance(results, Tensor) else results
            symbols.update(zip(outputs, results, strict=True))
        graph.enter_context(0)
        return ConcreteFunction(
            body.name, graph, list(map(graph.symbol_of, arguments)),
            [symbols[symbol] for symbol in body.output_symbols])


def derived(make: _Make) -> _Make:
    """Return a function that derives an object from a body once, and stores it with the body.

    Parameters
    ----------
    make : callable
        Called with a body and hashable arguments; lists among these become tuples. An object with
        captured tensors (an attribute, `captured`) is not stored.

    Returns
    -------
    callable
    """
    @functools.wraps(make)
    def stored(body: ConcreteFunction, *arguments: Any) -> Any:
        key = make, *[tuple(x) if isinstance(x, list) else x for x in arguments]
        if key in body.derived:
            return body.derived[key]
        made = make(body, *key[1:])
        if not getattr(made, "captured", ()):
            body.derived[key] = made
        return made

    return cast(_Make, stored)


def dense(gradient: Any) -> Tensor:
    """Return a gradient as a tensor."""
    return gradient.to_tensor() if isinstance(gradient, IndexedSlices) else gradient


def added(total: Any, gradient: Any) -> Any:
    """Return the sum of two gradients, either of which may be None."""
    if total is None or gradient is None:
        return gradient if total is None else total
    return dense(total) + dense(gradient)


def zeros(tensor: Tensor) -> Tensor:
    """Return zeros in the shape of a tensor."""
    return fill_like(tensor, 0)


def with_outputs(body: ConcreteFunction, outputs: Iterable[Tensor]) -> ConcreteFunction:
    """Return a body that has already been called, with other outputs of its graph."""
    return ConcreteFunction(body.name, body.graph, body.input_symbols, list(outputs))


def closed(
    graph: FunctionGraph,
    fixed: Sequence[Tensor],
    arguments: Sequence[Tensor],
    actual: Sequence[Tensor],
    outputs: Sequence[Tensor],
) -> tuple[ConcreteFunction, list[Tensor], list[int]]:
    """Make a body of a complete graph, with only the arguments that it uses.

    Parameters
    ----------
    graph : FunctionGraph
    fixed : sequence of Tensor
        Arguments that it always takes, before the others.
    arguments, actual : sequence of Tensor
        Arguments that it takes if it uses them, and the values for them.
    outputs : sequence of Tensor

    Returns
    -------
    body : ConcreteFunction
    passed : list of Tensor
        The values after the fixed arguments, captured tensors included.
    used : list of int
        Which of the arguments the body takes.
    """
    outputs = [in_graph(graph, x) for x in outputs]
    needed = set(needed_nodes(graph, list(map(graph.symbol_of, outputs)), (), graph.stateful))
    used = [
        i for i, argument in enumerate(arguments)
        if graph.node_of(graph.symbol_of(argument)) in needed
    ]
    symbols = [graph.symbol_of(x) for x in (*fixed, *[arguments[i] for i in used])]
    body = ConcreteFunction(graph.name, graph, symbols, outputs)
    return body, [*[actual[i] for i in used], *body.captured_inputs], used
