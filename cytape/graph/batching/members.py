"""A graph of one member, called for all members of a batch, node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from cytape.graph.batching.rules import Call, batched
from cytape.graph.control.scans import map_fn
from cytape.graph.run.reference import needed_nodes
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.functions import function
from cytape.graph.tracing.replay import inline
from cytape.ops.creation import constant_op, stop_gradient_op
from cytape.ops.engine.elementwise_op import ElementwiseOp
from cytape.ops.engine.general_op import GeneralOp
from cytape.ops.shared.python_call import given_results_op
from cytape.tensor.making import convert_to_tensor
from cytape.tensor.state import current_graph, is_recorded, stop_recording
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
        How many members there are; None if only a run tells.
    """
    values = dict(values)
    batch = next(x for x, mapped in values.values() if mapped)
    nodes = needed_nodes(graph, targets, values, graph.stateful)
    uses = Counter(targets)
    for node in nodes:
        uses.update(graph.inputs_of(node))
    for node in nodes:
        symbols = graph.inputs_of(node)
        inputs = [values[symbol] for symbol in symbols]
        for symbol in symbols:  # what nothing more needs is let go
            uses[symbol] -= 1
            if not uses[symbol]:
                del values[symbol]
        context = graph.contexts[graph.context_of(node)]
        with nullcontext() if context.recorded else stop_recording():
            results, mapped = _called(graph, node, inputs, extent, batch)
        if isinstance(results, Tensor):
            results = [results]
        for symbol, x in zip(graph.outputs_of(node), results, strict=True):
            if uses[symbol]:
                values[symbol] = (x, mapped)
    return [values[symbol] for symbol in targets]


def _called(
    graph: FunctionGraph, node: int, inputs: list[Value], extent: int | None, batch: Tensor
) -> tuple[Any, bool]:
    """Return the outputs of a node, and whether each member has its own."""
    op, attrs = graph.ops[node], graph.attrs[node]
    if op is constant_op:
        return convert_to_tensor(attrs["value"]), False
    tensors, mapped = [x for x, _ in inputs], [mapped for _, mapped in inputs]
    plain = _is_plain(graph, node)
    if not any(mapped) and not op.stateful:
        return (op(*tensors, **attrs) if plain else _once(graph, node, tensors)), False
    if plain or op.stateful:
        results = batched(Call(
            op, attrs, tensors, mapped, [graph.spec_of(x) for x in graph.inputs_of(node)],
            [graph.spec_of(x) for x in graph.outputs_of(node)], extent))
        if results is not NotImplemented:
            return results, True
    return _one_by_one(graph, node, inputs, extent, batch), True


def _is_plain(graph: FunctionGraph, node: int) -> bool:
    """Tell whether to call the op is all that there is to a node."""
    op = graph.ops[node]
    context = graph.contexts[graph.context_of(node)]
    return (
        isinstance(op, (ElementwiseOp, GeneralOp)) and not op.stateful and not context.overrides
        and "call" not in graph.attrs[node] and type(op).__module__.startswith("cytape.ops"))


def _rebuilt(
    graph: FunctionGraph, node: int, inputs: Sequence[Tensor], n_apart: int = 0
) -> list[Tensor]:
    """Build a node once more in the graph that is being built; no derivative enters the last."""
    first = len(inputs) - n_apart
    inputs = [*inputs[:first], *[stop_gradient_op(x, apart=True) for x in inputs[first:]]]
    symbols = dict(zip(graph.inputs_of(node), inputs, strict=True))
    into = current_graph()
    inline(graph, symbols, into, lambda op, attrs, _: None, some=[node], afresh=True)
    return [symbols[symbol] for symbol in graph.outputs_of(node)]


def _once(graph: FunctionGraph, node: int, inputs: list[Tensor]) -> list[Tensor]:
    """Call a node that is more than its op, for what all members share."""
    if current_graph() is not None:
        return _rebuilt(graph, node, inputs)
    n_apart = _results_apart(graph, node, inputs)
    return function(lambda *xs: _rebuilt(graph, node, xs, n_apart))(*inputs)


def _results_apart(graph: FunctionGraph, node: int, inputs: Sequence[Tensor]) -> int:
    """Return how many of the last inputs are results that have a derivative of the user's.

    It says how they depend on the inputs before; a traced function would follow all of its inputs.
    """
    if graph.ops[node] is not given_results_op:
        return 0
    n = graph.attrs[node]["n_results"]
    graph.attrs[node]["call"].refuse_others([is_recorded(x.id) for x in inputs[len(inputs) - n:]])
    return n


def _one_by_one(
    graph: FunctionGraph, node: int, inputs: list[Value], extent: int | None, batch: Tensor
) -> list[Tensor]:
    """Call a node for one member after the other, in a loop of a graph."""
    positions = [i for i, (_, mapped) in enumerate(inputs) if mapped]

    traces = current_graph() is None and all(x.graph is None for x, _ in inputs)
    n_apart = _results_apart(graph, node, [x for x, _ in inputs]) if traces else 0

    def of_member(row: list[Tensor]) -> list[Tensor]:
        every = [x for x, _ in inputs]
        for i, x in zip(positions, row, strict=False):
            every[i] = x
        return _rebuilt(graph, node, every, n_apart)

    def of_members(*rows: Tensor) -> list[Tensor]:
        return map_fn(of_member, list(rows))

    rows = [inputs[i][0] for i in positions]
    if not rows:  # a draw, say: what it is called for does not matter
        rows = [convert_to_tensor(np.zeros(extent)) if extent is not None else (
            batch if batch.ndim == 1 else batch[(slice(None), *[0] * (batch.ndim - 1))])]
    return function(of_members)(*rows) if traces else of_members(*rows)
