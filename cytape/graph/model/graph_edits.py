"""Edits of a graph: inputs and control inputs of existing operations, and undoing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cytape.graph.model.graph_variables import Variables
from cytape.graph.model.operation import Operation
from cytape.graph.model.run_order import order_within
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.cached_property import cached_property
from cytape.tensor.values.spec import Spec


class Editable(Variables):
    """A graph whose operations can get other inputs and control inputs."""

    _n_edits = 0
    _is_undoable = False

    @cached_property
    def _more_controls(self) -> dict[int, tuple[int, ...]]:
        return {}

    @property
    def version(self) -> tuple[int, int]:
        """A value that differs after every change of the graph's computation."""
        return self.n_nodes, self._n_edits

    # ---- control inputs

    def add_control_inputs(self, op: Operation | Tensor, control_inputs: Any) -> None:
        """Make an operation run only after others.

        Parameters
        ----------
        op : Operation or Tensor
        control_inputs : iterable of Operation, Tensor or str
            All built before the operation.

        Raises
        ------
        ValueError
            If one of them was built later, or belongs to another graph.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> first, second = graph.no_op("first"), graph.no_op("second")
        >>> graph.add_control_inputs(second, [first])
        >>> second.control_inputs
        (<Operation 'first' (NoOp)>,)
        """
        node = self.as_node(op)
        more = self._nodes_of(control_inputs)
        for other in more:
            if other >= node:
                raise ValueError(
                    f"op {self.name_of(node)!r} cannot wait for {self.name_of(other)!r}, which was "
                    "built after it"
                )
        if self.finalized:
            raise RuntimeError(
                f"the graph is finalized: op {self.name_of(node)!r} cannot wait for others any more"
            )
        known = self._more_controls.get(node, ())
        self._more_controls[node] = tuple(dict.fromkeys((*known, *more)))
        self._n_edits += 1
        self.has_control_inputs = True

    def control_inputs_of(self, node: int) -> list[int]:
        """Return the nodes that must run before a node, besides those of its inputs.

        Returns
        -------
        list of int
            In the order in which they run.
        """
        controls = self.contexts[self.context_of(node)].controls
        if self._more_controls:
            more = self._more_controls.get(node)
            if more is not None:
                return sorted({*controls, *more})
        return list(controls)

    def more_controls_of(self, node: int) -> tuple[int, ...]:
        """Return the control inputs that a node was given after it was built."""
        return self._more_controls.get(node, ())

    # ---- edits

    def rewire(
        self, inputs: Mapping[int, Mapping[int, int]], controls: Mapping[int, Iterable[int]]
    ) -> None:
        """Change the inputs and control inputs of nodes.

        Producers of inputs are moved before the nodes that read them: numbers of nodes change,
        those of symbols and operations do not.

        Parameters
        ----------
        inputs : mapping of int to mapping of int to int
            Of nodes: which of their inputs become which symbols. Of each symbol at least as much
            is known as of the one before (`says_as_much`).
        controls : mapping of int to iterable of int
            Of nodes: all that they wait for from now on.

        Raises
        ------
        ValueError
            If a node would have to run before itself, or cannot read tensors of such shapes;
            nothing is changed then.
        RuntimeError
            If the graph is finalized.
        """
        if self.finalized:
            raise RuntimeError("the graph is finalized: it cannot be edited any more")
        rows = {node: self.inputs_of(node) for node in inputs}
        for node, row in rows.items():
            for position, symbol in inputs[node].items():
                row[position] = self.checked_symbol(symbol)
        waits = {node: sorted(set(befores)) for node, befores in controls.items()}
        first, order = self._order_for(rows, waits)
        specs = self._specs_for(inputs, rows, first, order)

        self.update_consumers(rows)
        for node, changes in inputs.items():
            for position, symbol in changes.items():
                self.set_input(node, position, symbol)
        for node, befores in waits.items():
            context = self.contexts[self.context_of(node)]
            self.set_context(node, self.context_number(context._replace(controls=tuple(befores))))
            self._more_controls.pop(node, None)
        for symbol, spec in specs.items():
            self.set_spec(symbol, spec)
        if order:
            self._move(first, order)
        self._n_edits += 1

    def _order_for(
        self, rows: Mapping[int, list[int]], waits: Mapping[int, list[int]]
    ) -> tuple[int, list[int]]:
        """Return the first number of moved nodes, and the new order from there on."""
        latest = {node: max(map(self.node_of, row), default=-1) for node, row in rows.items()}
        for node, befores in waits.items():
            latest[node] = max(latest.get(node, -1), max(befores, default=-1))
        late = [node for node, before in latest.items() if before >= node]
        if not late:
            return 0, []
        first, end = min(late), max(latest[node] for node in late) + 1
        return first, order_within(self, first, end, rows, waits)

    def _specs_for(
        self, inputs: Mapping[int, Mapping[int, int]], rows: Mapping[int, list[int]],
        first: int, order: list[int],
    ) -> dict[int, Spec]:
        """Return the new specs of symbols, where they differ from the present ones."""
        specs: dict[int, Spec] = {}
        changed = {
            node for node, changes in inputs.items()
            for position, symbol in changes.items()
            if self.spec_of(symbol) is not self.spec_of(self.inputs_of(node)[position])}
        if not changed:
            return specs
        begin = min(changed) if not order else min(first, *changed)
        for node in itertools.chain(
                range(begin, first), order, range(max(begin, first + len(order)), self.n_nodes)):
            row = rows[node] if node in rows else self.inputs_of(node)
            if node not in changed and specs.keys().isdisjoint(row):
                continue
            for symbol, spec in zip(
                    self.outputs_of(node), self.inferred(node, row, specs), strict=True):
                before = self.spec_of(symbol)
                if before.known and spec is not before:
                    raise ValueError(
                        f"{self.describe(symbol)} would be of shape {spec.shape}: nothing has "
                        "been changed")
                if spec is not before:
                    specs[symbol] = spec
        return specs

    def _move(self, first: int, order: list[int]) -> None:
        """Renumber nodes in all data that refers to them."""
        places = {node: first + i for i, node in enumerate(order)}

        def moved(nodes: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted(places.get(node, node) for node in nodes))

        self._names.reorder(self, first, order)
        self.reorder(first, order)
        self.reorder_operations(first, order)
        for number, context in enumerate(self.contexts):
            if context.controls or context.original >= 0:
                self.contexts[number] = context._replace(
                    controls=moved(context.controls),
                    original=places.get(context.original, context.original))
        self._numbers = {self.contexts[number]: number for number in self._numbers.values()}
        self._more_controls = {
            places.get(node, node): moved(more) for node, more in self._more_controls.items()}
        self._reads = {
            variable: {moved(controls): symbol for controls, symbol in reads.items()}
            for variable, reads in self._reads.items()}

    # ---- undoing

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Remove the operations that were built in a block if it raises."""
        if self._is_undoable:
            yield
            return
        places, n_nodes, named = self._places, self.n_nodes, self._names.begin()
        lengths = {name: len(items) for name, items in self._lists.items()}
        self._is_undoable, succeeded = True, False
        try:
            yield
            succeeded = True
        finally:
            self._is_undoable = False
            if succeeded or places is not self._places:  # moved nodes have new numbers
                self._names.done()
            else:
                self._names.take_back(n_nodes, named)
                self.truncate(n_nodes)
                self._n_edits += 1
                for name, items in self._lists.items():
                    del items[lengths.get(name, 0) :]

    def truncate(self, n_nodes: int) -> None:
        """Remove the nodes from this one on, which were built last."""
        super().truncate(n_nodes)
        self.forget_consumers()
        self._handles = {
            variable: symbol for variable, symbol in self._handles.items()
            if symbol < self.n_symbols}
        for reads in self._reads.values():
            for controls in [c for c, symbol in reads.items() if symbol >= self.n_symbols]:
                del reads[controls]
        self._more_controls = {
            node: more for node, more in self._more_controls.items() if node < n_nodes}


def says_as_much(spec: Spec, other: Spec) -> bool:
    """Return whether a spec is at least as specific as another one.

    Examples
    --------
    >>> says_as_much(Spec.of((2, 3), float), Spec.of((None, 3), float))
    True
    >>> says_as_much(Spec.of((None, 3), float), Spec.of((2, 3), float))
    False
    """
    if spec.dtype != other.dtype:
        return False
    if spec is other or other.shape is None:
        return True
    return spec.shape is not None and len(spec.shape) == len(other.shape) and all(
        extent in (None, own) for own, extent in zip(spec.shape, other.shape, strict=True))
