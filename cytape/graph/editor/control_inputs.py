"""Control inputs of operations, added and removed."""

from __future__ import annotations

from typing import Any

from cytape.graph.editor.arguments import graph_of, make_list_of_op
from cytape.graph.model.operation import Operation

__all__ = ["add_control_inputs", "remove_control_inputs"]


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Have an operation run only after others.

    Parameters
    ----------
    op : Operation
    cops : Operation or iterable of Operation
        Also such as were built later, which then run earlier.

    Raises
    ------
    ValueError
        If it waits for one of them already, one of them depends on it, or belongs to another graph.

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import editor
    >>> graph = cytape.Graph()
    >>> first, second = graph.no_op("first"), graph.no_op("second")
    >>> editor.add_control_inputs(first, second)
    >>> first.control_inputs
    (<Operation 'second' (NoOp)>,)
    """
    before, nodes = _checked(op, cops)
    if known := [each for each in nodes if each in before]:
        raise ValueError(
            f"op {op.name!r} waits for {op.graph.name_of(known[0])!r} already: nothing has been "
            "changed")
    op.graph.rewire({}, {op.node: [*before, *nodes]})


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Have an operation no longer wait for others.

    Parameters
    ----------
    op : Operation
    cops : Operation or iterable of Operation

    Raises
    ------
    ValueError
        If it does not wait for one of them.

    Examples
    --------
    >>> import cytape
    >>> from cytape.graph import editor
    >>> graph = cytape.Graph()
    >>> first = graph.no_op("first")
    >>> both = graph.group(first, graph.no_op("second"))
    >>> editor.remove_control_inputs(both, first)
    >>> both.control_inputs
    (<Operation 'second' (NoOp)>,)
    """
    before, nodes = _checked(op, cops)
    if unknown := [each for each in nodes if each not in before]:
        raise ValueError(
            f"op {op.name!r} does not wait for {op.graph.name_of(unknown[0])!r}: nothing has been "
            "changed")
    op.graph.rewire({}, {op.node: [each for each in before if each not in nodes]})


def _checked(op: Operation, cops: Any) -> tuple[list[int], list[int]]:
    """Return the nodes that an operation waits for, and those that are given."""
    if not isinstance(op, Operation):
        raise TypeError(f"op must be an operation, got {op!r}")
    others = make_list_of_op(cops, allow_graph=False)
    graph_of([op, *others])
    return op.graph.control_inputs_of(op.node), [other.node for other in others]
