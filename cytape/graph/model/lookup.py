"""Lookup of operations and tensors of a graph: by position, by name, by consumers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cytape.graph.model.names import Names
from cytape.graph.model.operation import Operation
from cytape.ops.calls.symbolic import SymbolicGraph
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.cached_property import cached_property


class Lookup(SymbolicGraph):
    """A graph with look-ups of operations and tensors."""

    # Indices that most traces never use are built on first use.
    _consumers_seen = 0
    # After moves of nodes: the present positions by order of creation, and the inverse.
    _places: tuple[list[int], list[int]] | None = None

    @cached_property
    def _consumers(self) -> list[list[int]]:  # by symbol, of the nodes seen so far
        return []

    @cached_property
    def _names(self) -> Names:
        return Names()

    def operation_at(self, node: int) -> Operation:
        """Return the operation in a position."""
        return Operation(self, node)

    def number_of(self, node: int) -> int:
        """Return the number of a node in the order of creation.

        Returns
        -------
        int
            The node itself, unless an edit has moved it.
        """
        self.checked_node(node)
        if self._places is None or node >= len(self._places[1]):
            return node
        return self._places[1][node]

    def node_numbered(self, number: int) -> int:
        """Return the node with a number in the order of creation."""
        if self._places is None or number >= len(self._places[0]):
            return number
        return self._places[0][number]

    def reorder_operations(self, first: int, order: Sequence[int]) -> None:
        """Update the numbers of operations when nodes are moved.

        Parameters
        ----------
        first : int
        order : sequence of int
            As for `NodeStore.reorder`.
        """
        places, numbers = self._places or ([], [])
        for numbered in places, numbers:
            numbered += range(len(numbered), first + len(order))
        numbers[first : first + len(order)] = [numbers[node] for node in order]
        for node in range(first, first + len(order)):
            places[numbers[node]] = node
        self._places = places, numbers
        self.forget_consumers()

    def operation_of(self, symbol: int) -> Operation:
        """Return the operation whose output a symbol is."""
        return self.operation_at(self.node_of(symbol))

    def consumers_of(self, symbol: int) -> list[Operation]:
        """Return the operations that take a symbol as an input, each once."""
        return [self.operation_at(node) for node in self.consumer_nodes(symbol)]

    def consumer_nodes(self, symbol: int) -> list[int]:
        """Return the nodes that read a symbol, each once, in order.

        Returns
        -------
        list of int
            Not to be changed.
        """
        self.checked_symbol(symbol)
        consumers = self._consumers
        consumers.extend([] for _ in range(len(consumers), self.n_symbols))
        for node in range(self._consumers_seen, self.n_nodes):
            for each in set(self.inputs_of(node)):
                consumers[each].append(node)
        self._consumers_seen = self.n_nodes
        return consumers[symbol]

    def forget_consumers(self) -> None:
        """Rebuild the lists of consumers on the next use."""
        self._consumers = []
        self._consumers_seen = 0

    def update_consumers(self, rows: Mapping[int, Sequence[int]]) -> None:
        """Note nodes whose inputs are about to change.

        Parameters
        ----------
        rows : mapping of int to sequence of int
            All that each of them will read.
        """
        gone: dict[int, set[int]] = {}  # by symbol
        new: dict[int, set[int]] = {}
        for node, row in rows.items():
            if node < self._consumers_seen:
                before, after = set(self.inputs_of(node)), set(row)
                for symbol in before - after:
                    gone.setdefault(symbol, set()).add(node)
                for symbol in after - before:
                    new.setdefault(symbol, set()).add(node)
        for symbol in gone.keys() | new.keys():
            nodes = set(self.consumer_nodes(symbol)) - gone.get(symbol, set())
            self._consumers[symbol] = sorted(nodes | new.get(symbol, set()))

    def name_of(self, node: int) -> str:
        """Return the full name of a node."""
        return self._names.name_of(self.checked_node(node), self)

    def was_named(self, node: int) -> bool:
        """Return whether the user named a node."""
        return node in self._names.given

    def scope_names(self) -> list[str]:
        """Return the full names of the scopes, as `Context.scope` counts them."""
        return self._names.scopes(self)

    def tensor_name_of(self, symbol: int) -> str:
        """Return the name of a symbol: its node's, a colon, and the position of the output."""
        return f"{self.name_of(self.node_of(symbol))}:{self.output_position(symbol)}"

    def get_operations(self) -> list[Operation]:
        """Return all operations, in the order in which they were built.

        Examples
        --------
        >>> import numpy as np
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> _ = np.tanh(graph.placeholder("float64", name="x"))
        >>> [operation.name for operation in graph.get_operations()]
        ['x', 'Tanh']
        """
        return [self.operation_at(node) for node in range(self.n_nodes)]

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation of a name.

        Raises
        ------
        KeyError, TypeError, ValueError
            As for `as_graph_element`, where tensors are not allowed.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> _ = graph.placeholder("float64", name="x")
        >>> graph.get_operation_by_name("x").type
        'Placeholder'
        """
        return self.as_graph_element(checked_string(name), allow_tensor=False)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Return the tensor of a name.

        Parameters
        ----------
        name : str
            As ``"op:0"``.

        Raises
        ------
        KeyError, TypeError, ValueError
            As for `as_graph_element`, where operations are not allowed.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> _ = graph.placeholder("float64", (2,), name="x")
        >>> graph.get_tensor_by_name("x:0")
        <Tensor 'x:0' (float64, shape (2,))>
        """
        return self.as_graph_element(checked_string(name), allow_operation=False)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """Return the tensor or operation of this graph with a name, or the argument if it is one.

        Parameters
        ----------
        obj : Tensor, Operation or str
        allow_tensor, allow_operation : bool, optional
            Kinds of results that are allowed.

        Returns
        -------
        Tensor or Operation

        Raises
        ------
        KeyError
            If there is nothing of that name.
        ValueError
            If it belongs to another graph, or is a name of a kind that is not allowed.
        TypeError
            If it is something else.

        Examples
        --------
        >>> import cytape
        >>> graph = cytape.Graph()
        >>> x = graph.placeholder("float64", name="x")
        >>> graph.as_graph_element("x:0"), graph.as_graph_element("x")
        (<Tensor 'x:0' (float64, unknown shape)>, <Operation 'x' (Placeholder)>)
        """
        wanted = " or ".join(["a tensor"] * allow_tensor + ["an operation"] * allow_operation)
        if isinstance(obj, str):
            obj = self._element_named(obj)
            problem: type[Exception] = ValueError
        else:
            problem = TypeError
        if isinstance(obj, Tensor) and allow_tensor and obj.graph is not None:
            self.symbol_of(obj)
            return obj
        if isinstance(obj, Operation) and allow_operation:
            self.as_node(obj)
            return obj
        raise problem(f"{obj!r} is not {wanted} of a graph")

    def _element_named(self, name: str) -> Any:
        operation, colon, index = name.rpartition(":")
        node = self._names.node_named(operation if colon else name, self)
        if node is None:
            raise KeyError(f"the graph has no operation {operation if colon else name!r}")
        if not colon:
            return self.operation_at(node)
        outputs = self.outputs_of(node)
        if not index.isdecimal():
            raise ValueError(f"{name!r} is not the name of a tensor: a number must follow the "
                             "colon")
        if int(index) >= len(outputs):
            raise KeyError(f"operation {operation!r} has {len(outputs)} outputs, none is {name!r}")
        return self.tensor_at(outputs[int(index)])

    def as_node(self, op: Operation | Tensor | str) -> int:
        """Return the node of an operation, of a tensor's operation, or of either's name.

        Parameters
        ----------
        op : Operation, Tensor or str

        Raises
        ------
        KeyError, ValueError, TypeError
            As `as_graph_element`.
        """
        if isinstance(op, str):
            op = self._element_named(op)
        if isinstance(op, Tensor):
            return self.node_of(self.symbol_of(op))
        if not isinstance(op, Operation):
            raise TypeError(f"{op!r} is not an operation, nor a tensor, of a graph")
        if op.graph is not self:
            raise ValueError(f"{op!r} does not belong to this graph")
        return op.node


def checked_string(name: Any) -> str:
    """Return a name, or raise if it is not a string."""
    if not isinstance(name, str):
        raise TypeError(f"a name is a string, got {name!r}")
    return name
