"""Row counts: tensors of a body with known or equal numbers of rows.

Stacks that a loop makes have one row per iteration, and the graph around it need not know how many.
In the body of an outer loop their number may differ between iterations, so they are stacked one
after the other, with their lengths. Tensors with equal row counts share these lengths: otherwise
each level of nesting would double the values that its backward pass reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cytape.graph.control.body_checks import is_ragged
from cytape.graph.control.control_ops import CondOp, LoopOp
from cytape.graph.tracing.concrete_function import ConcreteFunction
from cytape.ops.calls.symbolic import SymbolicGraph
from cytape.ops.creation import constant_op
from cytape.tensor.tensor import Tensor

__all__ = ["row_count", "shared_lengths"]

_Lengths = TypeVar("_Lengths", Tensor, int)


def row_count(
    graph: SymbolicGraph, symbol: int, known: dict[tuple[SymbolicGraph, int], Any] | None = None,
) -> Any:
    """Return the number of rows of a tensor.

    Parameters
    ----------
    graph : SymbolicGraph
    symbol : int
    known : dict, optional
        Row counts found so far, by graph and symbol.

    Returns
    -------
    int or tuple
        A tuple if the number is not known: tensors of the graph with equal ones have as many rows.
    """
    known = {} if known is None else known
    if (graph, symbol) not in known:
        known[graph, symbol] = _row_count(graph, symbol, known)
    return known[graph, symbol]


def _row_count(graph: SymbolicGraph, symbol: int, known: dict) -> Any:
    spec = graph.spec_of(symbol)
    if not is_ragged(spec):
        return spec.shape[0] if spec.shape else ("symbol", symbol)
    node = graph.node_of(symbol)
    op, attrs = graph.ops[node], graph.attrs[node]
    place = symbol - graph.outputs_of(node)[0]
    if isinstance(op, CondOp):
        return ("branches", node, *[row_count(branch.graph, branch.output_symbols[place], known)
                                    for branch in attrs["branches"]])
    if isinstance(op, LoopOp) and not attrs.get("snapshots") and place > attrs["n_variables"]:
        body, kept = attrs["body"], place - 1
        if kept - attrs["n_variables"] not in attrs["ragged_kept"]:
            return _iteration_count(graph, node)
        return "rows", node, row_count(body.graph, body.output_symbols[kept], known)
    return "extents", id(spec.extents)


def _iteration_count(graph: SymbolicGraph, node: int) -> Any:
    """Return the number of iterations of a loop, as `row_count`."""
    attrs, limit = graph.attrs[node], graph.inputs_of(node)[0]
    if attrs["condition"] is not None:
        return "iterations", node
    producer = graph.node_of(limit)
    if graph.ops[producer] is constant_op:
        return max(int(graph.attrs[producer]["value"]), 0)
    if _is_count(graph, limit):
        return _iteration_count(graph, producer)
    return "limit", limit


def _is_count(graph: SymbolicGraph, symbol: int) -> bool:
    """Return whether a symbol is a loop's output, the number of iterations."""
    node = graph.node_of(symbol)
    return isinstance(graph.ops[node], LoopOp) and symbol == graph.outputs_of(node)[0]


def shared_lengths(
    body: ConcreteFunction, first: int, ragged: Sequence[int], lengths: Sequence[_Lengths],
    stacks: Sequence[_Lengths] = (),
) -> dict[int, _Lengths]:
    """Return the lengths of ragged stacks that a loop makes: one tensor for equal row counts.

    Parameters
    ----------
    body : ConcreteFunction
    first : int
        The first of its outputs that is stacked.
    ragged : sequence of int
        Which stacks are ragged.
    lengths : sequence of Tensor or int
        Of these, as the loop returns them; or symbols.
    stacks : sequence of Tensor or int, optional
        All stacks: that of a row count serves as the lengths.

    Returns
    -------
    dict of int to Tensor or int
        By stack.
    """
    graph, symbols = body.graph, body.output_symbols[first:]
    by_count: dict[Any, _Lengths] = {
        _iteration_count(graph, graph.node_of(symbol)): stack
        for symbol, stack in zip(symbols, stacks, strict=False) if _is_count(graph, symbol)}
    known: dict[tuple[SymbolicGraph, int], Any] = {}
    return {place: by_count.setdefault(row_count(graph, symbols[place], known), own)
            for place, own in zip(ragged, lengths, strict=True)}
