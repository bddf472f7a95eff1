"""A graph and its gradient as a `Program`: bytes and seconds of values, and their readers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import inf, prod
from typing import Any

from cytape.graph.checkpoint.op_copies import Observer, Recomputation, Scheduled
from cytape.graph.checkpoint.recomputable import dependents
from cytape.graph.checkpoint.recompute_schedule import Program, Schedule
from cytape.graph.differentiation.aggregation import gradient_tensors
from cytape.graph.differentiation.graph_gradients import differentiated
from cytape.graph.differentiation.places import Place, Places
from cytape.graph.model.graph import Graph, placeholder_op
from cytape.graph.model.graph_variables import read_variable_op, variable_handle_op
from cytape.graph.model.subgraph import Subgraph
from cytape.graph.run.executable import peak_of_runs
from cytape.graph.run.interpreter import needed_nodes
from cytape.graph.tracing.function_graph import FunctionGraph
from cytape.graph.tracing.replay import inline
from cytape.ops.adjoints.conform import broadcast_to_op
from cytape.ops.calls.dispatch import Lowering
from cytape.tensor import nest
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.recording.state import building_into, unrecorded
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import symbolic_spec

__all__ = ["UNKNOWN_EXTENT", "GradientModel", "bytes_of", "known_shape", "peak_of_run"]

# Machine model for times: bytes moved, and multiplications, per second.
BYTES_PER_SECOND = 1e10
PRODUCTS_PER_SECOND = 1e10
SECONDS_PER_OP = 2e-7
UNKNOWN_EXTENT = 64  # assumed size of an unknown extent, unless the graph contradicts it
MOST_EXTENTS = 8  # known extents that are tried instead
CONTRADICTIONS = ValueError, IndexError, TypeError


class GradientModel:
    """Model of the gradient of a part of a graph: values it computes and reads, found in a copy.

    Parameters
    ----------
    graph : Graph
    ys, xs, grad_ys
        As `cytape.gradients` takes them.
    options : dict
        Further options of the gradient.

    Attributes
    ----------
    program : Program
        Its values are nodes of the graph that can be computed again.
    values : list of int
        These nodes.
    arrivals : list of int
        Per step back, the node at which the backward pass arrives.
    seconds : float
        Of all that is computed, once.
    unknown_extent : int
        The size assumed for unknown extents.
    """

    def __init__(self, graph: Any, ys: Any, xs: Any, grad_ys: Any, options: dict) -> None:
        self._original = graph
        self._copy_graph(graph)
        self._ys, self._xs, self._grad_ys = map(self._in_copy, (ys, xs, grad_ys))
        self._options = {**options, "stop_gradients": self._in_copy(options.get("stop_gradients"))}
        copy = self.graph
        self._n_forward = copy.n_nodes
        observers: list[Observer] = []

        def observing(places: Places, targets: list[Place], sources: list[Place]) -> Observer:
            observers.append(Observer(places, targets, sources))
            return observers[-1]

        found = self._differentiated(observing)
        self.fetches = _symbols(copy, found)
        [observer] = observers
        self._needed = needed_nodes(copy, list(self.fetches), (), [])
        self._feeds = self._placeholders(self.fetches)
        ends = (*self.fetches, *_symbols(copy, self._ys))
        self.unknown_extent = _extent_for(Subgraph(copy, self._placeholders(ends), ends))
        self._read_program(observer)
        self.peaks: dict[Schedule, int] = {}

    def _placeholders(self, fetches: tuple[int, ...]) -> tuple[int, ...]:
        graph = self.graph
        return tuple(
            symbol for node in needed_nodes(graph, list(fetches), (), [])
            if graph.ops[node] is placeholder_op for symbol in graph.outputs_of(node))

    def _copy_graph(self, graph: Any) -> None:
        copy = self.graph = FunctionGraph(graph.name, graph.outer_graph) if isinstance(
            graph, FunctionGraph) else Graph()
        self._symbols: dict[int, Tensor] = {}
        with building_into(copy), unrecorded():
            for outer, symbol in getattr(graph, "captures", ()):
                self._symbols[symbol] = copy.capture(outer)
            self._nodes: dict[int, int] = {}  # of the copy, by those of the graph
            for node in range(graph.n_nodes):
                n_before = copy.n_nodes
                inline(graph, self._symbols, copy, [node])
                if copy.n_nodes > n_before:
                    self._nodes[node] = copy.n_nodes - 1
                    if graph.ops[node] is variable_handle_op:
                        copy.restore_handle(graph.attrs[node]["variable"], copy.n_symbols - 1)
        self._origins = {copied: node for node, copied in self._nodes.items()}

    def _in_copy(self, structure: Any) -> Any:
        def counterpart(x: Any) -> Any:
            if isinstance(x, IndexedSlices):
                return IndexedSlices(counterpart(x.values), counterpart(x.indices), x.dense_shape)
            if isinstance(x, Tensor) and x.graph is self._original:
                return self._symbols[self._original.symbol_of(x)]
            return x

        if isinstance(structure, (list, tuple)):
            return [counterpart(x) for x in structure]
        return counterpart(structure)

    def _differentiated(self, stand_ins: Any) -> list[Any]:
        with building_into(self.graph), unrecorded():
            return differentiated(
                self._ys, self._xs, self._grad_ys, stand_ins=stand_ins, **self._options)

    # ---- the program

    def _read_program(self, observer: Observer) -> None:
        graph, n_forward = self.graph, self._n_forward
        places = Places(graph)
        dependent = dependents(places, observer.sources)
        made = {graph.node_of(symbol) for level, symbol in observer.sources if level == 0}
        needed = [node for node in self._needed if node < n_forward]
        nodes = sorted({*needed, *(graph.node_of(s) for node in self._needed
                                   for s in graph.inputs_of(node))} & set(range(n_forward)))
        self.nodes = [
            node for node in nodes
            if graph.inputs_of(node) and dependent[graph.outputs_of(node)[0]]
            and node not in made and graph.ops[node] is not read_variable_op]
        place = {node: i for i, node in enumerate(self.nodes)}
        # Steps: the nodes built between one arrival of gradients and the next.
        bounds = [start for _, start in observer.arrivals] + [graph.n_nodes]
        backward = set(self._needed)
        reads: list[tuple[int, ...]] = []
        self.reads: dict[int, tuple[bool, bool]] = {}
        for (node, start), stop in zip(observer.arrivals, bounds[1:], strict=False):
            symbols = {symbol for made_here in range(start, stop) if made_here in backward
                       for symbol in graph.inputs_of(made_here)
                       if graph.node_of(symbol) < n_forward}
            reads.append(tuple(sorted(
                {place[graph.node_of(symbol)] for symbol in symbols
                 if graph.node_of(symbol) in place})))
            self.reads[self._origins[node]] = (
                not symbols.isdisjoint(graph.inputs_of(node)),
                not symbols.isdisjoint(graph.outputs_of(node)))
        self.arrivals = [self._origins[node] for node, _ in observer.arrivals]
        self.values = [self._origins[node] for node in self.nodes]
        around, beside = self._other_bytes(place, observer, bounds)
        costs = [inf if graph.ops[node].stateful else self._seconds_of(node) for node in self.nodes]
        self.program = Program(
            [self._bytes_of(node) for node in self.nodes], costs,
            [tuple(sorted({place[maker] for symbol in graph.inputs_of(node)
                           if (maker := graph.node_of(symbol)) in place}))
             for node in self.nodes], reads, around, beside)
        self.seconds = sum(map(self._seconds_of, self._needed))

    def _other_bytes(
        self, place: dict[int, int], observer: Observer, bounds: list[int]
    ) -> tuple[list[int], list[int]]:
        """Return the bytes other than those of values, at each value and during each step."""
        graph = self.graph
        last = {symbol: len(graph.ops) for symbol in self.fetches}
        order = sorted(self._needed)
        for node in order:
            for symbol in graph.inputs_of(node):
                last[symbol] = max(last.get(symbol, -1), node)
        ends: dict[int, int] = {}
        live, during = 0, {}
        for node in order:
            counted = node not in place and bool(graph.inputs_of(node)) and not (
                is_view(graph.ops[node]))
            for symbol in graph.outputs_of(node) if counted else ():
                if symbol in last:
                    nbytes = self.bytes_of(symbol)
                    live += nbytes
                    ends[last[symbol]] = ends.get(last[symbol], 0) + nbytes
            during[node] = live
            live -= ends.pop(node, 0)
        around = [during[node] for node in self.nodes if node in during]
        around += [0] * (len(self.nodes) - len(around))
        beside, level = [], 0
        for start, stop in zip(bounds, bounds[1:], strict=False):
            here = [during[node] for node in range(start, stop) if node in during]
            level = max(here, default=level)
            beside.append(level)
        return around, beside

    def bytes_of(self, symbol: int) -> int:
        """Return the size of a tensor, with the assumed sizes of unknown extents."""
        return bytes_of(self.graph, symbol, self.unknown_extent)

    def _bytes_of(self, node: int) -> int:
        return sum(self.bytes_of(symbol)
                   for symbol in self.graph.outputs_of(node))

    def seconds_of(self, node: int) -> float:
        """Return the estimated time of a node of the graph."""
        return self._seconds_of(self._nodes[node])

    def _seconds_of(self, node: int) -> float:
        """Return the estimated time of an op."""
        graph = self.graph
        work, inputs = graph.ops[node].work, graph.inputs_of(node)
        moved = self._bytes_of(node) + sum(
            self.bytes_of(symbol) for symbol in inputs)
        specs = [graph.spec_of(symbol) for symbol in (*inputs, *graph.outputs_of(node))]
        products = 0
        if work is not None and all(spec.known for spec in specs):
            products = work(*[spec.shape for spec in specs])
        return moved / BYTES_PER_SECOND + products / PRODUCTS_PER_SECOND + SECONDS_PER_OP

    # ---- measuring

    def peak_bytes(self, schedule: Schedule) -> int:
        """Return the bytes that the executor will count at the peak."""
        if schedule not in self.peaks:
            fetches = self.fetches
            if any(schedule):
                fetches = _symbols(self.graph, self._differentiated(self.stand_ins(
                    schedule, self._nodes)))
            self.peaks[schedule] = self._measured(fetches)
        return self.peaks[schedule]

    def kept(self, symbols: Sequence[int]) -> tuple[int, list[int]]:
        """Return the effect of `rewrite` with some checkpoints.

        Parameters
        ----------
        symbols : sequence of int
            Of the graph.

        Returns
        -------
        int
            The bytes at the peak.
        list of int
            The nodes that are computed again, in order.
        """
        copies = [self.graph.symbol_of(self._symbols[symbol]) for symbol in symbols]
        made: list[_Noting] = []

        def stand_ins(places: Places, targets: list[Place], sources: list[Place]) -> Any:
            made.append(_Noting(places, targets, sources, copies))
            return made[-1]

        fetches = _symbols(self.graph, self._differentiated(stand_ins))
        needed = set(needed_nodes(self.graph, list(fetches), (), []))
        return self._measured(fetches), [
            self._origins[node] for node, copy in made[-1].made if copy in needed]

    def _measured(self, fetches: Sequence[int]) -> int:
        return peak_of_run(
            Subgraph(self.graph, self._feeds, tuple(fetches)), self.unknown_extent)

    def stand_ins(self, schedule: Schedule, numbers: Any = None) -> Any:
        """Return the function that makes copies by a schedule, in the graph or by `numbers`."""
        number = (lambda node: node) if numbers is None else numbers.__getitem__
        by_arrival = {
            number(node): [number(self.values[value]) for value in values]
            for node, values in zip(self.arrivals, schedule, strict=True) if values}
        reads = {number(node): both for node, both in self.reads.items()}

        def made(places: Places, targets: list[Place], sources: list[Place]) -> Scheduled:
            return Scheduled(places, targets, sources, by_arrival, reads)

        return made


def is_view(op: Any) -> bool:
    """Return whether an op returns its operand, at most in another shape or transposed.

    Other views count as arrays: they stand for the operand, which lives as long as they do.
    """
    return op.stays_view or op.same_if_same_spec and op is not broadcast_to_op and (
        op.makes_views or op.lowering == Lowering.SHOWN)


class _Noting(Recomputation):
    """Copies of ops, noted together with their originals."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.made: list[tuple[int, int]] = []

    def _note(self, node: int, copy: int) -> None:
        super()._note(node, copy)
        self.made.append((node, copy))


def _symbols(graph: Any, structure: Any) -> tuple[int, ...]:
    """List the symbols of the tensors that gradients consist of."""
    tensors = [x for x in gradient_tensors(nest.flatten(structure)) if isinstance(x, Tensor)]
    return tuple(dict.fromkeys(map(graph.symbol_of, tensors)))


def known_shape(shape: tuple[int | None, ...] | None, extent: int) -> tuple[int, ...]:
    """Return a shape with an assumed size in place of unknown extents."""
    return tuple(extent if each is None else each for each in shape or ())


def peak_of_run(subgraph: Subgraph, extent: int) -> int:
    """Return the peak bytes of a run, with an assumed size of unknown extents.

    If no size fits, live bytes are counted without a plan.
    """
    try:
        return _planned_peak(subgraph, extent)
    except CONTRADICTIONS:
        return _live_peak(subgraph, extent)


def _planned_peak(subgraph: Subgraph, extent: int) -> int:
    specs = [subgraph.graph.spec_of(symbol) for symbol in subgraph.feeds]
    return peak_of_runs(subgraph, [
        spec if spec.known else symbolic_spec(known_shape(spec.shape, extent), spec.dtype)
        for spec in specs])


def _live_peak(subgraph: Subgraph, extent: int) -> int:
    graph, feeds, fetches, keep = subgraph
    order = needed_nodes(graph, list(fetches), feeds, list(keep))
    last = {symbol: node for node in order for symbol in graph.inputs_of(node)}
    ends: dict[int, int] = {}
    live = peak = 0
    for node in order:
        for symbol in graph.outputs_of(node) if graph.inputs_of(node) else ():
            nbytes = bytes_of(graph, symbol, extent)
            live += nbytes
            if symbol not in fetches:
                end = last.get(symbol, node)
                ends[end] = ends.get(end, 0) + nbytes
        peak = max(peak, live)
        live -= ends.pop(node, 0)
    return peak


def _extent_for(subgraph: Subgraph) -> int:
    """Return a size that fits all unknown extents, if there is one."""
    graph = subgraph.graph
    if all(graph.spec_of(symbol).known for symbol in subgraph.feeds):
        return UNKNOWN_EXTENT
    known = dict.fromkeys(
        extent for symbol in range(graph.n_symbols)
        for extent in graph.spec_of(symbol).shape or () if extent)
    for extent in (UNKNOWN_EXTENT, *islice(known, MOST_EXTENTS), 1):
        try:
            _planned_peak(subgraph, extent)
        except CONTRADICTIONS:
            continue
        return extent
    return UNKNOWN_EXTENT


def bytes_of(graph: Any, symbol: int, extent: int) -> int:
    """Return the size of a tensor, with an assumed size of unknown extents."""
    spec = graph.spec_of(symbol)
    if spec.known:
        return int(spec.nbytes)
    return 0 if spec.shape is None else prod(known_shape(spec.shape, extent)) * spec.dtype.itemsize
