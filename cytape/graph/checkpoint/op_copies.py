"""Copies of ops that a backward pass builds to recompute values: in segments or by a schedule."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cytape.graph.checkpoint.recomputable import dependents
from cytape.graph.differentiation.aggregation import gradient_tensors
from cytape.graph.differentiation.places import Place, Places
from cytape.graph.model.names import ROOT
from cytape.graph.tracing.replay import build_again
from cytape.ops.creation import identity_op
from cytape.tensor.recording.state import stop_recording
from cytape.tensor.tensor import Tensor

_logger = logging.getLogger(__name__)
MOST_COPIES = 3  # of an op; the last one is kept until the backward pass reaches the op


class Recomputation:
    """Copies of ops, which replace the originals in a backward pass.

    The ops after a checkpoint are copied when the backward pass reaches them. The copies read kept
    tensors (checkpoints, sources, results of stateful ops) through identities that wait, by control
    inputs, for the gradients that have arrived. So they run late, and passes, which do not merge
    nodes with control inputs, do not merge them with the originals. At the next checkpoint the
    copies are dropped: a tensor read across a checkpoint is recomputed, a bounded number of times.

    Parameters
    ----------
    places : Places
    targets, sources : list of (int, int)
    kept : iterable of int
        Symbols of the graph that is built: the checkpoints.
    """

    def __init__(
        self, places: Places, targets: list[Place], sources: list[Place], kept: Any
    ) -> None:
        self._graph = graph = places.graphs[0]
        self._dependent = dependents(places, sources)
        made = {symbol for level, symbol in sources if level == 0}
        self._checkpoints = set(kept) - made
        self._kept = made | self._checkpoints
        self._waits = sorted({
            graph.node_of(symbol) for level, symbol in targets if level == 0})
        self._made = {graph.node_of(symbol) for symbol in made}
        self._copies: dict[int, int] = {}   # node -> its copy, of this segment
        self._lasting: dict[int, int] = {}  # the last copies of nodes that many segments need
        self._n_copies: dict[int, int] = {}

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return a copy of a node, or the node itself if it must not run again.

        Parameters
        ----------
        node : int
        gradients : list of Tensor, IndexedSlices or None
            The gradients that arrived for its outputs.

        Returns
        -------
        int, int
            The nodes whose inputs and outputs to read: a checkpoint's outputs are known.
        """
        if not self._is_copied(node):
            return node, node
        outputs = set(self._graph.outputs_of(node))
        if not self._checkpoints.isdisjoint(outputs):
            self._copies.clear()
        if self._copy_of(node) is None:
            self._build(self._missing(node), self._arrival(gradients))
            self._waits = []
        copy = self._copy_of(node)
        assert copy is not None
        return copy, node if outputs <= self._checkpoints else copy

    def _is_copied(self, node: int) -> bool:
        graph = self._graph
        outputs = graph.outputs_of(node)  # all depend on sources, or none does
        return bool(
            len(outputs) and self._dependent[outputs[0]] and graph.inputs_of(node)
            and not graph.ops[node].stateful and node not in self._made)

    def _copy_of(self, node: int) -> int | None:
        copy = self._copies.get(node)
        return self._lasting.get(node) if copy is None else copy

    def _missing(self, node: int) -> list[int]:
        """List a node and the nodes to copy before it, in the order of building."""
        graph = self._graph
        found, pending = {node}, [node]
        while pending:
            for symbol in graph.inputs_of(pending.pop()):
                if symbol in self._kept or not self._dependent[symbol]:
                    continue
                producer = graph.node_of(symbol)
                if producer not in found and self._copy_of(producer) is None and (
                        self._is_copied(producer)):
                    found.add(producer)
                    pending.append(producer)
        return sorted(found)

    def _arrival(self, gradients: list[Any]) -> tuple[int, ...]:
        """Return the nodes that compute the gradients that have arrived; first also the targets."""
        graph = self._graph
        nodes = {graph.node_of(graph.symbol_of(tensor)) for tensor in gradient_tensors(gradients)}
        return tuple(sorted(nodes.union(self._waits)))

    def _build(self, nodes: list[int], waits: tuple[int, ...]) -> None:
        graph = self._graph
        late = graph.context_with(scope=ROOT, controls=waits, original=-1)
        pins: dict[int, Tensor] = {}  # kept symbol -> its identity here
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug(
                "compute %d ops again: %s", len(nodes), ", ".join(map(graph.name_of, nodes)))
        present = graph.present_context
        try:
            with stop_recording():
                for node in nodes:
                    inputs = [self._read(symbol, pins, late) for symbol in graph.inputs_of(node)]
                    self._note(node, self._copied(node, inputs))
        finally:
            graph.enter_context(present)

    def _read(self, symbol: int, pins: dict[int, Tensor], late: int) -> Tensor:
        """Return the tensor that a copy reads in place of a symbol."""
        graph = self._graph
        if not self._dependent[symbol]:
            return graph.tensor_at(symbol)
        node = graph.node_of(symbol)
        copy = None if symbol in self._kept else self._copy_of(node)
        if copy is not None:
            return graph.tensor_at(graph.outputs_of(copy)[graph.output_position(symbol)])
        if symbol not in pins:
            name = graph.name_of(node)
            graph.enter_context(late)
            pins[symbol] = graph.build(
                identity_op, graph.tensor_at(self._source_of(symbol)), late=True)
            graph.give_name(pins[symbol], f"{name}_sg")
        return pins[symbol]

    def _source_of(self, symbol: int) -> int:
        """Return the symbol that an identity passes on."""
        return symbol

    def _copied(self, node: int, inputs: list[Tensor]) -> int:
        graph = self._graph
        name = graph.name_of(node) if graph.was_named(node) else None
        context = graph.context_number(
            graph.contexts[graph.context_of(node)]._replace(controls=()))
        copy, _ = build_again(graph, node, inputs, graph, context, True)
        if name is not None:
            graph.give_name(graph.operation_at(copy), name.rpartition("/")[2])
        return copy

    def _note(self, node: int, copy: int) -> None:
        count = self._n_copies[node] = self._n_copies.get(node, 0) + 1
        (self._lasting if count == MOST_COPIES else self._copies)[node] = copy


class Scheduled(Recomputation):
    """Copies of ops at the places of a schedule; the backward pass reads the latest ones.

    Parameters
    ----------
    places, targets, sources
        As for `Recomputation`.
    schedule : mapping of int to sequence of int
        By a node at which the backward pass arrives: which nodes to copy before, in order.
    reads : mapping of int to (bool, bool)
        By node: whether its gradient reads its inputs, and its outputs.
    """

    def __init__(
        self, places: Places, targets: list[Place], sources: list[Place],
        schedule: Mapping[int, Sequence[int]], reads: Mapping[int, tuple[bool, bool]],
    ) -> None:
        super().__init__(places, targets, sources, ())
        self._schedule = schedule
        self._reads = reads
        self._batch: set[int] = set()
        self._made_of: dict[int, tuple[int, ...]] = {}  # copy -> the copies of its inputs

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return nodes with the last copies of the values that the gradient of a node reads."""
        values = self._schedule.get(node, ())
        if values:
            self._make(values, gradients)
        present = self._copies.get(node, node)
        reads_inputs, _ = self._reads.get(node, (True, True))
        if not reads_inputs or self._makers(present, node) == self._present_makers(node):
            return present, present
        # Copied only for its inputs; its outputs have no readers, so it never runs.
        self._make([node], gradients)
        made = self._copies.pop(node)
        if present != node:
            self._copies[node] = present
        return made, present

    def _make(self, nodes: Sequence[int], gradients: list[Any]) -> None:
        self._batch = set()
        self._build(list(nodes), self._arrival(gradients))
        self._waits = []

    def _makers(self, present: int, node: int) -> tuple[int, ...]:
        return self._made_of.get(present) or tuple(
            map(self._graph.node_of, self._graph.inputs_of(node)))

    def _present_makers(self, node: int) -> tuple[int, ...]:
        graph = self._graph
        makers = map(graph.node_of, graph.inputs_of(node))
        return tuple(self._copies.get(maker, maker) for maker in makers)

    def _copy_of(self, node: int) -> int | None:
        """Return a copy that is read directly; kept values are read through an identity."""
        return self._copies.get(node) if node in self._batch else None

    def _source_of(self, symbol: int) -> int:
        copy = self._copies.get(self._graph.node_of(symbol))
        if copy is None:
            return symbol
        return self._graph.outputs_of(copy)[self._graph.output_position(symbol)]

    def _note(self, node: int, copy: int) -> None:
        self._made_of[copy] = self._present_makers(node)
        self._copies[node] = copy
        self._batch.add(node)


class Observer:
    """Observer of a backward pass: notes the nodes it reaches, and makes no copies.

    Attributes
    ----------
    arrivals : list of (int, int)
        The node, and how many nodes the graph had then.
    """

    def __init__(self, places: Places, targets: list[Place], sources: list[Place]) -> None:
        self._graph = places.graphs[0]
        self.targets, self.sources = targets, sources
        self.arrivals: list[tuple[int, int]] = []

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return the node itself, twice."""
        self.arrivals.append((node, self._graph.n_nodes))
        return node, node
