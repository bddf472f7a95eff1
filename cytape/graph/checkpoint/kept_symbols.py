"""Tensors that a call of a trace keeps: by a policy, or as `gradients` chooses checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cytape.graph.checkpoint.call_budget import CallGradient, symbols_within
from cytape.graph.checkpoint.recomputing_traces import KeptSymbols
from cytape.graph.tracing.trace_derivatives import Ends
from cytape.ops.creation import identity_op
from cytape.ops.python.checkpoint_policy import KINDS, Automatic, Policy
from cytape.ops.python.checkpointed_call_op import checkpointed_call_op
from cytape.tensor.recording.state import building_into, unrecorded

__all__ = ["kept_of", "named_as", "root_of", "symbols_of"]


def kept_of(trace: Ends, checkpoints: Any, outputs: bool, least_size: int) -> KeptSymbols:
    """Return the values that calls of a trace keep.

    Parameters
    ----------
    trace, outputs, least_size
        As for `symbols_within`.
    checkpoints : Policy, Automatic, frozenset of int, str or list
        Symbols of the trace, or as `chosen` takes them.
    """
    if isinstance(checkpoints, frozenset):
        return KeptSymbols(trace, checkpoints, outputs)
    kept, graph = KeptSymbols(trace, (), outputs), trace.graph
    if isinstance(checkpoints, Policy):
        kept.symbols = frozenset(symbols_of(graph, kept.again, checkpoints))
        return kept
    if isinstance(checkpoints, Automatic):
        kept.symbols = symbols_within(trace, checkpoints.memory_budget, outputs, least_size)
        return kept
    gradient = CallGradient(trace)
    if gradient.xs and gradient.ys:
        with building_into(graph), unrecorded():
            kept.symbols = gradient.chosen(checkpoints, least_size)
    return kept


def root_of(graph: Any, symbol: int) -> int:
    """Return the symbol that a chain of identities, named or not, passes on."""
    while graph.ops[graph.node_of(symbol)] is identity_op:
        symbol = graph.inputs_of(graph.node_of(symbol))[0]
    return symbol


def named_as(graph: Any) -> dict[int, list[str]]:
    """Return the names of symbols given by `checkpoint_name`, also through identities."""
    names: dict[int, list[str]] = {}
    for node in range(graph.n_nodes):
        if graph.ops[node] is identity_op and "name" in graph.attrs[node]:
            names.setdefault(root_of(graph, graph.inputs_of(node)[0]), []).append(
                graph.attrs[node]["name"])
    return names


def symbols_of(graph: Any, nodes: Iterable[int], policy: Policy) -> list[int]:
    """Return the tensors that a policy keeps.

    Parameters
    ----------
    graph : FunctionGraph
        A trace.
    nodes : iterable of int
        Those that would run again.
    policy : Policy

    Returns
    -------
    list of int
        Symbols, without results of identities, which show other tensors, and of calls within
        checkpointed calls, which are never differentiated themselves.

    Raises
    ------
    ValueError
        If a name or op type of the policy does not occur in the trace.
    """
    names = named_as(graph)
    known = {name for each in names.values() for name in each}
    types = {
        op.name for node, op in enumerate(graph.ops)
        if op is not identity_op and graph.inputs_of(node)}
    unknown = [
        item for item in (*policy.kept, *policy.but)
        if item not in KINDS and item not in known and item not in types]
    if unknown:
        raise ValueError(
            f"policy: there is no {', '.join(map(repr, unknown))} in {graph.name}. Names, as "
            f"cytape.checkpoint_name gives them: {_listed(known)}. Op types: {_listed(types)}")

    def matches(symbol: int, items: tuple[str, ...]) -> bool:
        op = graph.ops[graph.node_of(symbol)]
        return (
            "everything" in items or op.name in items or "dots" in items and op.is_product
            or any(name in items for name in names.get(symbol, ())))

    roots = {root_of(graph, symbol) for node in nodes if not _is_inner_call(graph, node)
             for symbol in graph.outputs_of(node)}
    return [
        symbol for symbol in sorted(roots)
        if matches(symbol, policy.kept) and not matches(symbol, policy.but)]


def _is_inner_call(graph: Any, node: int) -> bool:
    return (graph.ops[node] is checkpointed_call_op
            and not graph.contexts[graph.context_of(node)].recorded)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(words))) or "none"
