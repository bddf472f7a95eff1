"""Calls of a graph of one member for all members of a batch, node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from cytape.graph.control.scans import map_fn
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.functions import function
from cytape.graph.tracing.replay import inline
from cytape.ops.creation import constant_op, stop_gradient_op
from cytape.ops.engine.batch_axis import BatchedCall
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.python.python_ops import given_results_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.recording.state import current_graph, is_recorded, stop_recording
from cytape.tensor.tensor import Tensor

__all__ = ["of_all_members"]

# A tensor, and whether each member has its own, along the first axis.
Value = tuple[Tensor, bool]


def of_all_members(
    graph: FunctionGraph, targets: Sequence[int], values: dict[int, Value], extent: int | None
) -> list[Value]:
    """Compute symbols of a graph for all members of a batch.

    Parameters
    ----------
    graph : FunctionGraph
        Of one member.
    targets : sequence of int
        Symbols.
    values : dict of int to Value
        What stands for the placeholders.
    extent : int or None
        The number of members; None if it is known only at run time.
    """
    members = _Members(graph, targets, values, extent)
    looped, after = _looped(graph, members.call())
    if looped:
        members.call_in_loop(looped)
        members.call(after)
    return [members.values[symbol] for symbol in targets]


class _Members:
    """Values computed for all members, by symbol.

    Attributes
    ----------
    values : dict of int to Value
        Values by symbol, for symbols that are still needed.
    """

    def __init__(
        self, graph: FunctionGraph, targets: Sequence[int], values: dict[int, Value],
        extent: int | None,
    ) -> None:
        self._graph, self._extent, self.values = graph, extent, dict(values)
        self._batch = next(x for x, mapped in values.values() if mapped)
        self._nodes = needed_nodes(graph, targets, values, graph.stateful)
        self._uses = Counter(targets)
        for node in self._nodes:
            self._uses.update(graph.inputs_of(node))

    def call(self, nodes: Sequence[int] | None = None) -> list[int]:
        """Run a batch of nodes.

        Return the nodes blocked on a value whose shape differs between members, and that value.
        """
        graph, waiting, awaited = self._graph, [], set[int]()
        in_order = True  # whether no stateful node is blocked, so that the next one may run
        for node in self._nodes if nodes is None else nodes:
            symbols, outputs = graph.inputs_of(node), graph.outputs_of(node)
            called, stateful = None, graph.ops[node].stateful
            if awaited.isdisjoint(symbols) and (in_order or not stateful):
                inputs = [self.values[symbol] for symbol in symbols]
                context = graph.contexts[graph.context_of(node)]
                with nullcontext() if context.recorded else stop_recording():
                    called = _called(graph, node, inputs, self._extent, self._batch)
            if called is None:
                waiting.append(node)
                awaited.update(outputs)
                in_order = in_order and not stateful
                continue
            results, mapped = called
            self._let_go(symbols)
            self._keep(outputs, [results] if isinstance(results, Tensor) else results, mapped)
        return waiting

    def call_in_loop(self, nodes: Sequence[int]) -> None:
        """Call nodes for one member after the other."""
        graph, values = self._graph, dict(self.values)
        for node in nodes:
            self._let_go(graph.inputs_of(node))
        outputs = [symbol for node in nodes for symbol in graph.outputs_of(node)
                   if self._uses[symbol]]
        self._keep(outputs, _one_by_one(
            graph, nodes, values, outputs, self._extent, self._batch), True)

    def _let_go(self, symbols: Sequence[int]) -> None:
        """Drop values that no remaining node reads."""
        for symbol in symbols:
            self._uses[symbol] -= 1
            if not self._uses[symbol]:
                self.values.pop(symbol, None)

    def _keep(self, symbols: Sequence[int], results: Sequence[Tensor], mapped: bool) -> None:
        for symbol, x in zip(symbols, results, strict=True):
            if self._uses[symbol]:
                self.values[symbol] = (x, mapped)


def _looped(graph: FunctionGraph, nodes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split nodes: those with shapes that differ between members, and those after them."""
    made = {symbol for node in nodes for symbol in graph.outputs_of(node)}
    needed: set[int] = set()
    looped, after = [], []
    for node in reversed(nodes):
        inputs, outputs = graph.inputs_of(node), graph.outputs_of(node)
        differing = any(not graph.spec_of(symbol).known
                        for symbol in (*outputs, *made.intersection(inputs)))
        if differing or not needed.isdisjoint(outputs):
            looped.append(node)
            needed.update(inputs)
        else:
            after.append(node)
    return looped[::-1], after[::-1]


def _called(
    graph: FunctionGraph, node: int, inputs: list[Value], extent: int | None, batch: Tensor
) -> tuple[Any, bool] | None:
    """Return the outputs of a node, and whether each has a batch axis.

    None if shapes may differ between members.
    """
    op, attrs = graph.ops[node], graph.attrs[node]
    if op is constant_op:
        return convert_to_tensor(attrs["value"]), False
    tensors, mapped = [x for x, _ in inputs], [mapped for _, mapped in inputs]
    plain = _is_plain(graph, node)
    if not any(mapped) and not op.stateful:
        return (op(*tensors, **attrs) if plain else _once(graph, node, tensors)), False
    if plain or op.stateful:
        results = _batched(BatchedCall(
            op, attrs, tensors, mapped, [graph.spec_of(x) for x in graph.inputs_of(node)],
            [graph.spec_of(x) for x in graph.outputs_of(node)], extent))
        if results is not NotImplemented:
            return results, True
    symbols, outputs = graph.inputs_of(node), graph.outputs_of(node)
    if not all(graph.spec_of(symbol).known for symbol in outputs):
        return None
    values = dict(zip(symbols, inputs, strict=True))
    return _one_by_one(graph, [node], values, outputs, extent, batch), True


def _batched(call: BatchedCall) -> Any:
    """Compute the outputs of all members by the op's rule, or return NotImplemented."""
    if call.op.batch is None or any(spec.ndim < 0 for spec in call.input_specs):
        return NotImplemented
    return call.op.batch(call)


def _is_plain(graph: FunctionGraph, node: int) -> bool:
    """Return whether a node is a plain call of its op."""
    op = graph.ops[node]
    context = graph.contexts[graph.context_of(node)]
    return (
        isinstance(op, (ElementwiseOp, GeneralOp)) and not op.stateful and not context.overrides
        and "call" not in graph.attrs[node] and type(op).__module__.startswith("cytape.ops"))


def _rebuilt(
    graph: FunctionGraph, node: int, inputs: Sequence[Tensor], n_apart: int = 0
) -> list[Tensor]:
    """Copy a node to the graph that is being built; the last inputs are constants."""
    first = len(inputs) - n_apart
    inputs = [*inputs[:first], *[stop_gradient_op(x, apart=True) for x in inputs[first:]]]
    symbols = dict(zip(graph.inputs_of(node), inputs, strict=True))
    into = current_graph()
    inline(graph, symbols, into, some=[node], afresh=True)
    return [symbols[symbol] for symbol in graph.outputs_of(node)]


def _once(graph: FunctionGraph, node: int, inputs: list[Tensor]) -> list[Tensor]:
    """Copy a node that is not a plain call, for values that all members share."""
    if current_graph() is not None:
        return _rebuilt(graph, node, inputs)
    n_apart = _results_apart(graph, node, inputs)
    return function(lambda *xs: _rebuilt(graph, node, xs, n_apart))(*inputs)


def _results_apart(graph: FunctionGraph, node: int, inputs: Sequence[Tensor]) -> int:
    """Return how many of the last inputs are results with a user's derivative.

    That derivative defines their dependence on the other inputs; in a loop over members they must
    be constants.
    """
    if graph.ops[node] is not given_results_op:
        return 0
    n = graph.attrs[node]["n_results"]
    graph.attrs[node]["call"].refuse_others([is_recorded(x.id) for x in inputs[len(inputs) - n:]])
    return n


def _one_by_one(
    graph: FunctionGraph, nodes: Sequence[int], values: dict[int, Value], outputs: Sequence[int],
    extent: int | None, batch: Tensor,
) -> list[Tensor]:
    """Compute outputs of nodes for one member after the other, in a loop of a graph."""
    symbols = {symbol for node in nodes for symbol in graph.inputs_of(node)}
    constants = {node for node in map(graph.node_of, symbols) if graph.ops[node] is constant_op}
    taken = {symbol: values[symbol] for symbol in sorted(symbols)
             if symbol in values and graph.node_of(symbol) not in constants}
    traces = current_graph() is None and all(x.graph is None for x, _ in taken.values())
    n_apart = {
        node: _results_apart(graph, node, [taken[symbol][0] for symbol in graph.inputs_of(node)])
        for node in nodes if traces and taken.keys() >= set(graph.inputs_of(node))}
    own = [symbol for symbol, (_, mapped) in taken.items() if mapped]

    def of_member(row: list[Tensor]) -> list[Tensor]:
        every = {symbol: x for symbol, (x, _) in taken.items()}
        every.update(zip(own, row, strict=False))
        for node in (*sorted(constants), *nodes):
            inputs = [every[symbol] for symbol in graph.inputs_of(node)]
            results = _rebuilt(graph, node, inputs, n_apart.get(node, 0))
            every.update(zip(graph.outputs_of(node), results, strict=True))
        return [every[symbol] for symbol in outputs]

    def of_members(*rows: Tensor) -> list[Tensor]:
        return map_fn(of_member, list(rows))

    rows = [taken[symbol][0] for symbol in own]
    if not rows:  # say a draw: any argument will do
        rows = [convert_to_tensor(np.zeros(extent)) if extent is not None else (
            batch if batch.ndim == 1 else batch[(slice(None), *[0] * (batch.ndim - 1))])]
    return function(of_members)(*rows) if traces else of_members(*rows)
