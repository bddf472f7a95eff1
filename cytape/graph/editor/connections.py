"""Connections of operations and tensors: producers, consumers, boundaries."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.listed_arguments import (
    graph_of,
    make_list_of_op,
    make_list_of_t,
    nodes_of,
    symbols_of,
)
from cytape.graph.model.graph import Graph
from cytape.graph.model.operation import Operation
from cytape.tensor.tensor import Tensor

__all__ = [
    "ControlOutputs",
    "check_cios",
    "compute_boundary_ts",
    "get_consuming_ops",
    "get_generating_ops",
    "get_ops_ios",
    "get_tensors",
]


def get_tensors(graph: Graph) -> list[Tensor]:
    """Return all tensors of a graph.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> _ = graph.placeholder("float64", name="x")
    >>> get_tensors(graph)
    [<Tensor 'x:0' (float64, unknown shape)>]
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a graph, got {graph!r}")
    return make_list_of_t(graph)


def get_generating_ops(ts: Any) -> list[Operation]:
    """Return the operation that computes a tensor, or those that compute each of several ones.

    Examples
    --------
    >>> import cytape
    >>> get_generating_ops(cytape.Graph().placeholder("float64", name="x"))
    [<Operation 'x' (Placeholder)>]
    """
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """Return the operations that read a tensor or one of several, each operation once.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y, z = x * x, x + 1.0
    >>> get_consuming_ops(x)
    [<Operation 'Multiply' (Multiply)>, <Operation 'Add' (Add)>]
    """
    ts = make_list_of_t(ts, allow_graph=False)
    graph = graph_of(ts)
    nodes = {node: None for symbol in symbols_of(ts) for node in graph.consumer_nodes(symbol)}
    return [graph.operation_at(node) for node in nodes]


class ControlOutputs:
    """Control outputs of operations: the operations that have them as control inputs.

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import editor
    >>> graph = cytape.Graph()
    >>> first, second = graph.no_op("first"), graph.no_op("second")
    >>> editor.add_control_inputs(second, first)
    >>> editor.ControlOutputs(graph).get(first)
    [<Operation 'second' (NoOp)>]
    """

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"expected a graph, got {graph!r}")
        self._graph = graph
        self._version: Any = None
        self._waiting: dict[Operation, list[Operation]] = {}
        self.update()

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph

    def update(self) -> ControlOutputs:
        """Update after changes of the graph.

        Returns
        -------
        ControlOutputs
            This one.
        """
        if self._version != self._graph.version:
            self._version = self._graph.version
            self._waiting = {}
            for op in self._graph.get_operations() if self._graph.has_control_inputs else ():
                for before in op.control_inputs:
                    self._waiting.setdefault(before, []).append(op)
        return self

    def get(self, op: Operation) -> list[Operation]:
        """Return the operations that wait for a given one."""
        return list(self._waiting.get(op, ()))

    def get_all(self) -> dict[Operation, list[Operation]]:
        """Return all operations with control outputs, and these."""
        return {op: list(waiting) for op, waiting in self._waiting.items()}


def check_cios(
    control_inputs: bool = False, control_outputs: ControlOutputs | None = None,
    control_ios: ControlOutputs | None = None,
) -> tuple[bool, ControlOutputs | None]:
    """Return whether control inputs count, and the control outputs if these count.

    Parameters
    ----------
    control_inputs : bool, optional
    control_outputs : ControlOutputs, optional
    control_ios : ControlOutputs, optional
        Control outputs, of which the inputs are to count, too.

    Returns
    -------
    control_inputs : bool
    control_outputs : ControlOutputs or None
        As the graph is now.

    Raises
    ------
    TypeError
        If one of the last two is something else.
    ValueError
        If it is said twice.

    Examples
    --------
    >>> check_cios(control_inputs=True)
    (True, None)
    """
    for given in control_outputs, control_ios:
        if given is not None and not isinstance(given, ControlOutputs):
            raise TypeError(f"expected a ControlOutputs, or None, got {given!r}")
    if control_ios is not None:
        if control_outputs is not None:
            raise ValueError("give control_ios or control_outputs, not both")
        control_inputs, control_outputs = True, control_ios
    if control_outputs is not None:
        control_outputs.update()
    return control_inputs, control_outputs


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: ControlOutputs | None = None,
    control_ios: ControlOutputs | None = None,
) -> list[Operation]:
    """Return the producers or consumers of operations.

    Parameters
    ----------
    ops : Graph, Operation, or iterable of Operation
    control_inputs, control_outputs, control_ios
        Whether control inputs and outputs count, as `check_cios` takes it.

    Returns
    -------
    list of Operation
        Each once.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> z = abs(x * x)
    >>> get_ops_ios(z.op.inputs[0].op)
    [<Operation 'x' (Placeholder)>, <Operation 'Absolute' (Absolute)>]
    """
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    found: dict[Operation, None] = {}
    for op in make_list_of_op(ops):
        found.update((t.op, None) for t in op.inputs)
        for t in op.outputs:
            found.update((consumer, None) for consumer in t.consumers())
        if control_outputs is not None:
            found.update((after, None) for after in control_outputs.get(op))
        if control_inputs:
            found.update((before, None) for before in op.control_inputs)
    return list(found)


def compute_boundary_ts(ops: Any) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return the inputs and outputs of a set of operations, and the tensors inside of it.

    Parameters
    ----------
    ops : Graph, Operation, or iterable of Operation

    Returns
    -------
    inputs, outputs, inside : list of Tensor
        Outputs are computed by the operations and read outside, or not at all. Tensors inside are
        computed and read by the operations; they may be outputs, too.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = x * x
    >>> z = abs(y)
    >>> inputs, outputs, inside = compute_boundary_ts([y.op, z.op])
    >>> [t.name for t in inputs + outputs + inside]
    ['x:0', 'Absolute:0', 'Multiply:0']
    """
    ops = make_list_of_op(ops)
    graph = graph_of(ops)
    return tuple(  # type: ignore[return-value]
        [graph.tensor_at(symbol) for symbol in symbols]
        for symbols in boundary_symbols(graph, nodes_of(ops)))


def boundary_symbols(graph: Any, nodes: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the boundary as symbols; see `compute_boundary_ts`."""
    reads = {symbol: None for node in nodes for symbol in graph.inputs_of(node)}
    made = {symbol: None for node in nodes for symbol in graph.outputs_of(node)}
    members = set(nodes)
    inside = [symbol for symbol in reads if symbol in made]
    outputs = [
        symbol for symbol in made
        if symbol not in reads or not members.issuperset(graph.consumer_nodes(symbol))]
    return [symbol for symbol in reads if symbol not in made], outputs, inside
