"""Control inputs of operations, added and removed."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.listed_arguments import graph_of, make_list_of_op
from cytape.graph.model.operation import Operation
from cytape.ops.python.python_ops import given_results_op, python_values_op

__all__ = ["add_control_inputs", "remove_control_inputs"]


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Make an operation run only after others.

    Parameters
    ----------
    op : Operation
    cops : Operation or iterable of Operation
        Also such as were built later, which then run earlier.

    Raises
    ------
    ValueError
        If it waits for one of them already, one of them depends on it, or belongs to another graph.

    Notes
    -----
    The result of `numpy_function` has an operation of its own, which knows the derivative. The call
    of the Python function waits with it.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> first, second = graph.no_op("first"), graph.no_op("second")
    >>> add_control_inputs(first, second)
    >>> first.control_inputs
    (<Operation 'second' (NoOp)>,)
    """
    before, nodes = _checked(op, cops)
    if known := [each for each in nodes if each in before]:
        raise ValueError(
            f"op {op.name!r} waits for {op.graph.name_of(known[0])!r} already: nothing has been "
            "changed")
    graph = op.graph
    graph.rewire({}, {
        node: [*graph.control_inputs_of(node), *nodes] for node in _waiting(op)})


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Remove control inputs from an operation.

    Parameters
    ----------
    op : Operation
    cops : Operation or iterable of Operation
        The operation must wait for each of them.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> first = graph.no_op("first")
    >>> both = graph.group(first, graph.no_op("second"))
    >>> remove_control_inputs(both, first)
    >>> both.control_inputs
    (<Operation 'second' (NoOp)>,)
    """
    before, nodes = _checked(op, cops)
    if unknown := [each for each in nodes if each not in before]:
        raise ValueError(
            f"op {op.name!r} does not wait for {op.graph.name_of(unknown[0])!r}: nothing has been "
            "changed")
    graph = op.graph
    graph.rewire({}, {
        node: [each for each in graph.control_inputs_of(node) if each not in nodes]
        for node in _waiting(op)})


def _waiting(op: Operation) -> list[int]:
    """Return the nodes that get an operation's control inputs: itself, and its Python call."""
    graph, node = op.graph, op.node
    if graph.ops[node] is not given_results_op:
        return [node]
    results = graph.inputs_of(node)[-graph.attrs[node]["n_results"]:]
    makers = {graph.node_of(symbol) for symbol in results}
    return [node, *[maker for maker in makers if graph.ops[maker] is python_values_op]]


def _checked(op: Operation, cops: Any) -> tuple[list[int], list[int]]:
    """Return the nodes that an operation waits for, and the given ones."""
    if not isinstance(op, Operation):
        raise TypeError(f"op must be an operation, got {op!r}")
    others = make_list_of_op(cops, allow_graph=False)
    graph_of([op, *others])
    return op.graph.control_inputs_of(op.node), [other.node for other in others]
