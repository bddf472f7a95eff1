"""The backward pass over the nodes of a graph, and of the graphs around it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from cytape.errors import InvalidGradientError
from cytape.graph.control.control_ops import LoopOp
from cytape.graph.differentiation.aggregation import (
    AggregationMethod,
    add_all,
    add_pair,
    add_slices,
    checked_method,
    device_of,
    gradient_tensors,
)
from cytape.graph.differentiation.places import Place, Places
from cytape.graph.differentiation.reach import (
    BETWEEN,
    REACHED,
    SOURCE,
    STOPPED,
    nodes_between,
    reach,
)
from cytape.ops.adjoints.conform import fill_like
from cytape.ops.adjoints.identity_groups import tuple_op
from cytape.ops.calls.symbolic import in_graph
from cytape.ops.engine.node_vspace import gradients_of_node, takes_none
from cytape.ops.engine.user_rules import gradient_rule
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.recording.state import building_under
from cytape.tensor.tensor import Tensor


class StandIns(Protocol):
    """Nodes that are differentiated in place of others."""

    def stand_in(self, node: int, gradients: list[Any]) -> tuple[int, int]:
        """Return stand-ins for a node: nodes that compute the same.

        Parameters
        ----------
        node : int
        gradients : list of Tensor, IndexedSlices or None
            What arrived for its outputs.

        Returns
        -------
        int, int
            Whose inputs a gradient function is to read, and whose outputs.
        """


class Backward:
    """One backward pass over nodes, latest first, which adds ops to a graph.

    Parameters
    ----------
    places : Places
        The graph to which they are added, which is being built, and those around it.
    method : int or None
        How to aggregate.
    gate, colocate : bool
        As `gradients` takes them.
    stand_ins : StandIns, optional
        For nodes of the graph that is built.
    """

    def __init__(
        self, places: Places, method: Any, gate: bool, colocate: bool,
        stand_ins: StandIns | None = None,
    ) -> None:
        self._places = places
        self._graphs = places.graphs
        self._graph = self._graphs[0]
        self._method = method
        self._gate = gate
        self._colocate = colocate
        self._stand_ins = stand_ins
        self._marks: list[bytearray] = []
        self._arrived: list[dict[int, list[Any]]] = [{} for _ in self._graphs]
        self._found: dict[Place, Any] = {}
        self._sum_scopes: dict[Place, int] = {}
        self._loops: list[tuple[int, int]] = []  # levels and nodes of differentiated loops

    def run(
        self, targets: list[Place], seeds: list[Any], sources: list[Place], stops: list[Place]
    ) -> list[Any]:
        """Differentiate.

        Parameters
        ----------
        targets, sources, stops : list of Place
        seeds : list of Tensor, IndexedSlices or None
            The gradient of each target; None: ones.

        Returns
        -------
        list of Tensor, IndexedSlices or None
            One per source.
        """
        self._marks = self._reached(sources, stops)
        for place, seed in zip(targets, seeds, strict=True):
            if self._passes(place, self._marks):
                self._marks[place[0]][place[1]] |= BETWEEN
                self._arrive(place, self.filled(place, 1) if seed is None else seed)
        for level in range(len(self._graphs)):
            self._differentiate(level)
        for source in sources:
            if source not in self._found and self._feeds_an_exit(source, stops):
                self._found[source] = self.filled(source, 0)
        return [self._found.get(source) for source in sources]

    def _reached(self, sources: list[Place], stops: list[Place]) -> list[bytearray]:
        """Return the marks of symbols that depend on sources, level by level."""
        all_marks = [bytearray(graph.n_symbols) for graph in self._graphs]
        for level, symbol in stops:
            all_marks[level][symbol] |= STOPPED
        for level, symbol in sources:
            all_marks[level][symbol] |= SOURCE | REACHED
        for level in reversed(range(len(self._graphs))):
            marks = all_marks[level]
            links = {**self._places.captures_of(level), **self._places.starts_of(level)}
            for symbol, outer in links.items():
                if self._passes(outer, all_marks) and not marks[symbol] & STOPPED:
                    marks[symbol] |= REACHED
            reach(self._graphs[level], marks)
        return all_marks

    def _passes(self, place: Place, marks: list[bytearray]) -> bool:
        level, symbol = place
        reached = marks[level][symbol] & REACHED
        return bool(reached and self._graphs[level].spec_of(symbol).trainable)

    def _feeds_an_exit(self, source: Place, stops: list[Place]) -> bool:
        """Return whether a differentiated loop uses a source for other results.

        The gradient is then zeros, as in TensorFlow, but only for the source itself, since zeros
        before it could be multiplied by infinite slopes.
        """
        if not self._loops:
            return False
        marks = self._reached([source], stops)
        for level, node in self._loops:
            graph = self._graphs[level]
            fed = {i for i, symbol in enumerate(graph.inputs_of(node))
                   if self._passes((level, symbol), marks)}
            if fed and _reaches_an_exit(graph.attrs[node], fed):
                return True
        return False

    def _differentiate(self, level: int) -> None:
        """Call the gradient functions of one graph's nodes and deliver their results."""
        graph, marks, arrived = self._graphs[level], self._marks[level], self._arrived[level]
        captures = self._places.captures_of(level)
        nodes = nodes_between(graph, marks)
        for symbol, (around, start) in self._places.starts_of(level).items():
            if marks[symbol] & BETWEEN and not marks[symbol] & (SOURCE | STOPPED):
                raise ValueError(
                    f"inside a loop there is no gradient with respect to "
                    f"{self._graphs[around].describe(start)}, the start value of a loop variable, "
                    "or through it: the iterations before take part in it. Differentiate the "
                    "results of the loop"
                )
        for symbol, (outer, origin) in captures.items():
            if symbol >= len(marks):
                continue  # captured by a seed, which is not differentiated
            if marks[symbol] & BETWEEN and not marks[symbol] & STOPPED:
                self._marks[outer][origin] |= BETWEEN
        for node in nodes:
            gradients, any_arrived = [], False
            for symbol in graph.outputs_of(node):
                gradient = None
                if symbol in arrived:
                    gradient = self._aggregated(level, symbol)
                    if marks[symbol] & SOURCE:
                        self._found[level, symbol] = gradient
                    if marks[symbol] & STOPPED:
                        gradient = None
                    else:
                        any_arrived = True
                gradients.append(gradient)
            if not any_arrived:
                continue
            inputs = graph.inputs_of(node)
            needed = [bool(marks[symbol] & BETWEEN) for symbol in inputs]
            if any(needed):
                results = self._gradients_of_inputs(level, node, gradients, needed)
                for symbol, gradient in zip(inputs, results, strict=True):
                    if gradient is not None and marks[symbol] & BETWEEN:
                        self._arrive((level, symbol), gradient)
            elif not inputs and captures:
                outer_place = captures.get(graph.outputs_of(node)[0])
                if outer_place is not None and self._passes(outer_place, self._marks):
                    self._arrive(outer_place, gradients[0])

    def _gradients_of_inputs(
        self, level: int, node: int, gradients: list[Any], needed: list[bool]
    ) -> list[Any]:
        graph = self._graphs[level]
        op, override = graph.ops[node], graph.gradient_override_of(node)
        passed = override is None and op.passes_gradients
        inputs_of, outputs_of = node, -1
        if self._stand_ins is not None and level == 0 and not passed:
            inputs_of, outputs_of = self._stand_ins.stand_in(node, gradients)
        for i, symbol in enumerate(
                graph.outputs_of(node if outputs_of < 0 else outputs_of)
                if len(gradients) > 1 else ()):
            if passed and not needed[i]:
                gradients[i] = None
            elif gradients[i] is None and graph.spec_of(symbol).trainable and (
                    override is not None or not takes_none(op, i)):
                gradients[i] = self.filled((level, symbol), 0)
        if passed:
            results = gradients
        else:
            rule = None if override is None else gradient_rule(override)
            number = self._context_for(level, node)
            before = self._graph.enter_context(number)
            try:
                results = gradients_of_node(
                    graph, inputs_of, gradients, needed, rule, outputs_of)
            except InvalidGradientError as error:
                raise InvalidGradientError(
                    f"{error} (operation {graph.name_of(node)!r})") from error
            finally:
                self._graph.enter_context(before)
            if isinstance(op, LoopOp) and rule is None:
                self._loops.append((level, node))
        if self._gate and sum(gradient is not None for gradient in results) > 1:
            with self._colocated(level, node):
                return gated(results)
        return results

    def filled(self, place: Place, number: int) -> Tensor:
        """Return a tensor with the shape and dtype of the one in a place.

        Parameters
        ----------
        place : Place
        number : int
            Each of its elements.
        """
        level, symbol = place
        graph = self._graphs[level]
        with self._colocated(level, graph.node_of(symbol)):
            return self._own(fill_like(graph.tensor_at(symbol), number))

    # ---- sums

    def _arrive(self, place: Place, gradient: Any) -> None:
        """Note a gradient of a symbol."""
        level, symbol = place
        gradient = self._own(gradient)
        terms = self._arrived[level].setdefault(symbol, [])
        if terms and checked_method(self._method) != AggregationMethod.ADD_N and isinstance(
                gradient, Tensor):
            for i, term in enumerate(terms):
                if isinstance(term, Tensor):
                    terms[i] = self._in_pairs(place, [term, gradient])
                    return
        terms.append(gradient)

    def _own(self, gradient: Any) -> Any:
        """Return a gradient as one of the graph that is being built."""
        if isinstance(gradient, IndexedSlices):
            return IndexedSlices(
                self._own(gradient.values), self._own(gradient.indices), gradient.dense_shape)
        return in_graph(self._graph, gradient)

    def _aggregated(self, level: int, symbol: int) -> Any:
        terms = self._arrived[level].pop(symbol)
        if len(terms) == 1:
            return terms[0]
        pairwise = checked_method(self._method) != AggregationMethod.ADD_N

        def add(tensors: list[Tensor]) -> Tensor:
            if pairwise:
                return self._in_pairs((level, symbol), tensors)
            return add_all(self._graph, tensors, self._on_device)

        if any(isinstance(term, IndexedSlices) for term in terms):
            return add_slices(terms, add)
        return add(terms)

    def _in_pairs(self, place: Place, tensors: list[Tensor]) -> Tensor:
        level, symbol = place
        graph = self._graphs[level]
        node = graph.node_of(symbol)
        number = self._sum_scopes.get((level, node))
        if number is None:
            scope = f"{graph.name_of(node)}_gradient_sum"
            with self._colocated(level, node):
                number = self._sum_scopes[level, node] = self._graph.scope_context(scope)
        before = self._graph.enter_context(number)
        try:
            total = tensors[0]
            for tensor in tensors[1:]:
                total = add_pair(total, tensor)
            return total
        finally:
            self._graph.enter_context(before)

    # ---- the context of new ops

    def _context_for(self, level: int, node: int) -> int:
        """Return the number of the context of ops that differentiate a node."""
        graph = self._graphs[level]
        device = device_of(graph, node) if self._colocate else None
        if level == 0:
            return self._graph.gradient_context(node, device)
        with building_under(self._graph, self._graph.scope_context(f"{graph.name_of(node)}_grad")):
            return self._graph.context_with(**{} if device is None else {"device": device})

    def _colocated(self, level: int, node: int) -> AbstractContextManager[Any]:
        if not self._colocate:
            return nullcontext()
        return self._on_device(device_of(self._graphs[level], node))

    def _on_device(self, device: str) -> AbstractContextManager[Any]:
        if self._graph.contexts[self._graph.present_context].device == device:
            return nullcontext()
        return self._graph.device(device)


def _reaches_an_exit(attrs: dict[str, Any], fed: set[int]) -> bool:
    """Return whether a loop variable depends on some of the loop's inputs."""
    body, n = attrs["body"], attrs["n_variables"]
    if any(1 <= i <= n for i in fed):
        return True
    graph, marks = body.graph, bytearray(body.graph.n_symbols)
    places = [*range(1, 1 + n + attrs["n_stacks"]), *attrs["body_inputs"]]
    for position, symbol in zip(places, body.input_symbols, strict=True):
        if position in fed:
            marks[symbol] = SOURCE | REACHED
    reach(graph, marks)
    return any(marks[symbol] & REACHED and graph.spec_of(symbol).trainable
               for symbol in body.output_symbols[:n])


def gated(gradients: list[Any]) -> list[Any]:
    """Pass gradients through one op, so that none is used before all are computed."""
    passed = iter(tuple_op(*gradient_tensors(gradients)))
    return [
        None
        if gradient is None
        else IndexedSlices(next(passed), next(passed), gradient.dense_shape)
        if isinstance(gradient, IndexedSlices)
        else next(passed)
        for gradient in gradients
    ]
