"""Operation: the user's view of one op call in a graph."""

from __future__ import annotations

from typing import Any

from cytape.tensor.tensor import Tensor

__all__ = ["Operation"]


class Operation:
    """One op call in a graph, with its inputs and outputs.

    Graphs make these views on demand; two views of the same call are equal.

    Parameters
    ----------
    graph : Graph
    node : int
        Its position in the graph.

    Attributes
    ----------
    graph : Graph

    Examples
    --------
    >>> import numpy as np
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", (2,), name="x")
    >>> y = np.tanh(x)
    >>> y.op
    <Operation 'Tanh' (Tanh)>
    >>> y.op.inputs[0].name, y.op.outputs[0].name
    ('x:0', 'Tanh:0')
    """

    __slots__ = ("_number", "graph", "__weakref__")

    def __init__(self, graph: Any, node: int) -> None:
        self.graph = graph
        self._number = graph.number_of(node)

    @property
    def node(self) -> int:
        """Its position in the graph, in which it runs; edits can change it."""
        return self.graph.node_numbered(self._number)

    @property
    def name(self) -> str:
        """The full name, scopes in front."""
        return self.graph.name_of(self.node)

    @property
    def type(self) -> str:
        """The op type."""
        return self.graph.ops[self.node].name

    @property
    def definition(self) -> Any:
        """The op itself, as it was declared."""
        return self.graph.ops[self.node]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that are operands."""
        return tuple(map(self.graph.tensor_at, self.graph.inputs_of(self.node)))

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that are results."""
        return tuple(map(self.graph.tensor_at, self.graph.outputs_of(self.node)))

    def values(self) -> tuple[Tensor, ...]:
        """Return the outputs.

        Examples
        --------
        >>> import cytape
        >>> len(cytape.Graph().placeholder("float64").op.values())
        1
        """
        return self.outputs

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """The operations that run before this one, besides those of its inputs."""
        nodes = self.graph.control_inputs_of(self.node)
        return tuple(Operation(self.graph, node) for node in nodes)

    @property
    def device(self) -> str:
        """The device label, "" for none."""
        return self.graph.contexts[self.graph.context_of(self.node)].device

    @property
    def original_op(self) -> Operation | None:
        """The operation whose derivative this one is part of; None if there is none."""
        node = self.graph.original_of(self.node)
        return None if node is None else Operation(self.graph, node)

    @property
    def location(self) -> tuple[str, int, str] | None:
        """The file, line and function in which it was built, None if unknown."""
        return self.graph.location_of(self.node)

    @property
    def attrs(self) -> dict[str, Any]:
        """The static arguments of the call."""
        return dict(self.graph.attrs[self.node])

    def get_attr(self, name: str) -> Any:
        """Return a static argument of the call; raise a KeyError if it has none of that name.

        Examples
        --------
        >>> import cytape
        >>> cytape.Graph().placeholder("float64", (2, 3)).op.get_attr("shape")
        (2, 3)
        """
        attrs = self.graph.attrs[self.node]
        if name not in attrs:
            raise KeyError(f"op {self.name!r} has no attribute {name!r}, only {sorted(attrs)}")
        return attrs[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        return self.graph is other.graph and self._number == other._number

    def __hash__(self) -> int:
        return hash((id(self.graph), self._number))

    def __repr__(self) -> str:
        return f"<Operation {self.name!r} ({self.type})>"
