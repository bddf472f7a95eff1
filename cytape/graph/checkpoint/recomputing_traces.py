"""Derivatives of traced functions that keep only checkpoints of a call."""

from __future__ import annotations

from collections.abc import Iterable

from cytape.graph.checkpoint.op_copies import MOST_COPIES
from cytape.graph.checkpoint.recomputable import Between
from cytape.graph.differentiation.places import Places
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.replay import inline
from cytape.graph.tracing.trace_derivatives import DerivativeGraph, Ends
from cytape.ops.creation import constant_op, identity_op
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor

__all__ = ["KeptSymbols", "RecomputingGraph"]


class KeptSymbols:
    """The values that a call of a trace keeps for its derivatives: `Kept` by symbols.

    Parameters
    ----------
    trace : Ends
    checkpoints : iterable of int
        Symbols. Arguments of the call are kept anyway, and so are results of ops that do not run
        again.
    outputs : bool
        Whether its outputs are kept, too.

    Attributes
    ----------
    again : frozenset of int
        The nodes that are recomputed where a derivative reads a value that is not kept.
    """

    def __init__(self, trace: Ends, checkpoints: Iterable[int], outputs: bool) -> None:
        self.graph = graph = trace.graph
        self._trace = trace
        self._there = {*trace.input_symbols, *(trace.output_symbols if outputs else ())}
        self.symbols = frozenset(checkpoints)
        with building_into(graph), unrecorded():
            self.again = frozenset(Between(
                Places(graph), [(0, symbol) for symbol in range(graph.n_symbols)],
                [(0, symbol) for symbol in trace.input_symbols]).nodes)

    def is_kept(self, symbol: int) -> bool:
        """Return whether a call keeps a tensor that a derivative reads."""
        return (
            symbol in self.symbols or symbol in self._there
            or self.graph.node_of(symbol) not in self.again)

    def passed(self) -> list[int]:
        """List the symbols that derivatives may read besides inputs, outputs and constants."""
        graph, trace = self.graph, self._trace
        return [
            symbol for node in needed_nodes(graph, trace.output_symbols, (), graph.stateful)
            if graph.ops[node] is not constant_op
            for symbol in graph.outputs_of(node)
            if self.is_kept(symbol) and symbol not in trace.input_symbols]

    def new_body(self, name: str) -> RecomputingGraph:
        """Return the body of a derivative, which recomputes values that are not kept."""
        return RecomputingGraph(name, self)


class RecomputingGraph(DerivativeGraph):
    """The body of a derivative, which recomputes values that a call has not kept.

    Parameters
    ----------
    name : str
    kept : KeptSymbols

    Attributes
    ----------
    n_copies : dict of int to int
        Number of recomputations of a node, for recomputed nodes.
    """

    def __init__(self, name: str, kept: KeptSymbols) -> None:
        super().__init__(name, kept.graph)
        self._kept = kept
        # Symbols of the trace -> symbols here: a graph that keeps its own tensors is never freed.
        self._copies: dict[int, int] = {}   # of this segment
        self._lasting: dict[int, int] = {}  # of nodes that many segments need
        self.n_copies: dict[int, int] = {}
        self._read: set[int] = set()

    def stand_in_for(self, tensor: Tensor) -> Tensor:
        """Copy a node of the trace, to recompute a value from kept ones."""
        trace, kept = self._kept.graph, self._kept
        if tensor.graph is not trace or kept.is_kept(trace.symbol_of(tensor)):
            return super().stand_in_for(tensor)
        nodes, reads = self._missing(trace.symbol_of(tensor))
        if not (kept.symbols & reads) <= self._read:
            self._forget()  # a new segment begins behind a checkpoint
            nodes, reads = self._missing(trace.symbol_of(tensor))
        self._read |= reads
        symbols = {
            symbol: self.tensor_at(copy) for node in nodes for symbol in trace.inputs_of(node)
            if (copy := self._copy_of(symbol)) is not None}
        # Recomputed ops wait for the latest gradient, and so are not merged with those of another
        # segment.
        waits = () if self.n_nodes == 0 else (self.n_nodes - 1,)
        sources = [self.capture(trace.tensor_at(symbol)) for symbol in sorted(reads)]
        before = self.enter_context(self.context_with(controls=waits))
        try:
            for symbol, source in zip(sorted(reads), sources, strict=True):
                symbols[symbol] = identity_op(source, late=True)
        finally:
            self.enter_context(before)
        inline(trace, symbols, self, nodes, True)
        for node in nodes:
            count = self.n_copies[node] = self.n_copies.get(node, 0) + 1
            copies = self._lasting if count == MOST_COPIES else self._copies
            for symbol in trace.outputs_of(node):
                copies[symbol] = self.symbol_of(symbols[symbol])
                self._captured[trace.tensor_at(symbol).id] = copies[symbol]
        return symbols[trace.symbol_of(tensor)]

    def _missing(self, symbol: int) -> tuple[list[int], set[int]]:
        """Return the nodes to build for a symbol, in order, and the kept symbols that they read."""
        trace, kept = self._kept.graph, self._kept
        node = trace.node_of(symbol)
        nodes, reads, pending = {node}, set(), [node]
        while pending:
            for read in trace.inputs_of(pending.pop()):
                if kept.is_kept(read):
                    reads.add(read)
                    continue
                node = trace.node_of(read)
                if node not in nodes and self._copy_of(read) is None:
                    nodes.add(node)
                    pending.append(node)
        return sorted(nodes), reads

    def _copy_of(self, symbol: int) -> int | None:
        copy = self._copies.get(symbol)
        return self._lasting.get(symbol) if copy is None else copy

    def _forget(self) -> None:
        """Drop the copies of a segment, so that the next one copies again."""
        for symbol in self._copies:
            self._captured.pop(self._kept.graph.tensor_at(symbol).id, None)
        self._copies.clear()
