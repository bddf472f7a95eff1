"""Walks along a graph: descendants and ancestors of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cytape.graph.editor.connections import ControlOutputs, check_cios
from cytape.graph.editor.listed_arguments import (
    graph_of,
    make_list_of_op,
    make_list_of_t,
    nodes_of,
    symbols_of,
)
from cytape.graph.model.operation import Operation
from cytape.tensor.tensor import Tensor

__all__ = [
    "get_backward_walk_ops",
    "get_forward_walk_ops",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
]


def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None,
    within_ops_fn: Callable[[Operation], bool] | None = None, stop_at_ts: Any = (),
    control_outputs: ControlOutputs | None = None,
) -> list[Operation]:
    """Return the operations that depend on the given ones.

    Parameters
    ----------
    seed_ops : Operation or Tensor, or iterable of either
        Begin of the walk; for tensors, their consumers.
    inclusive : bool, optional
        Whether the seeds are returned, too.
    within_ops : Graph, Operation or iterable of Operation, optional
        The walk does not leave these; an empty list leaves none.
    within_ops_fn : callable, optional
        Nor does it enter an operation for which this returns false.
    stop_at_ts : Tensor or iterable of Tensor, optional
        Tensors that are not crossed.
    control_outputs : ControlOutputs, optional
        If given, the walk also follows control outputs.

    Returns
    -------
    list of Operation
        In the order in which they run.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = abs(x * x)
    >>> [op.name for op in get_forward_walk_ops(x.op)]
    ['x', 'Multiply', 'Absolute']
    >>> [op.name for op in get_forward_walk_ops(x)]
    ['Multiply', 'Absolute']
    """
    _, control_outputs = check_cios(False, control_outputs)

    def waiting(graph: Any, node: int) -> Iterable[int]:
        return () if control_outputs is None else (
            nodes_of(control_outputs.get(graph.operation_at(node))))

    return _walk(
        seed_ops, lambda graph, node: graph.outputs_of(node),
        lambda graph, symbol: graph.consumer_nodes(symbol), waiting, inclusive, within_ops,
        within_ops_fn, stop_at_ts)


def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None,
    within_ops_fn: Callable[[Operation], bool] | None = None, stop_at_ts: Any = (),
    control_inputs: bool = False,
) -> list[Operation]:
    """Return the operations that the given ones depend on.

    Parameters
    ----------
    seed_ops : Operation or Tensor, or iterable of either
        Begin of the walk; for tensors, their producers.
    inclusive, within_ops, within_ops_fn, stop_at_ts
        As for `get_forward_walk_ops`, which also says in which order operations are returned.
    control_inputs : bool, optional
        Whether the walk also follows control inputs.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = abs(x * x)
    >>> [op.name for op in get_backward_walk_ops(y.op, inclusive=False)]
    ['x', 'Multiply']
    """
    return _walk(
        seed_ops, lambda graph, node: graph.inputs_of(node),
        lambda graph, symbol: [graph.node_of(symbol)],
        lambda graph, node: graph.control_inputs_of(node) if control_inputs else (), inclusive,
        within_ops, within_ops_fn, stop_at_ts)


def _listed(seed_ops: Any) -> list[Any]:
    """Return the seeds of a walk: all operations, or all tensors."""
    seeds = [seed_ops] if isinstance(seed_ops, (Operation, Tensor)) else seed_ops
    if isinstance(seeds, Iterable):
        seeds = list(seeds)
        if seeds and not isinstance(seeds[0], Operation):
            return make_list_of_t(seeds, allow_graph=False)
    return make_list_of_op(seeds, allow_graph=False)


def _walk(
    seed_ops: Any, symbols: Callable[[Any, int], Iterable[int]],
    nodes: Callable[[Any, int], Iterable[int]], waiting: Callable[[Any, int], Iterable[int]],
    inclusive: bool, within_ops: Any, within_ops_fn: Callable[[Operation], bool] | None,
    stop_at_ts: Any,
) -> list[Operation]:
    """Walk from a node to the nodes at some of its symbols, and to those that wait for it."""
    listed = _listed(seed_ops)
    graph = graph_of(listed)
    if graph is None:
        return []
    stops = set(symbols_of(make_list_of_t(stop_at_ts)))
    start = nodes_of(listed) if isinstance(listed[0], Operation) else [
        node for symbol in symbols_of(listed) for node in nodes(graph, symbol)]
    within = None if within_ops is None else set(nodes_of(make_list_of_op(within_ops)))
    seeds = set(start if within is None else within.intersection(start))
    found, stack = set(seeds), list(seeds)
    while stack:
        last = stack.pop()
        reached = [node for symbol in symbols(graph, last) if symbol not in stops
                   for node in nodes(graph, symbol)]
        for node in (*reached, *waiting(graph, last)):
            if node not in found and (within is None or node in within) and (
                    within_ops_fn is None or within_ops_fn(graph.operation_at(node))):
                found.add(node)
                stack.append(node)
    return [graph.operation_at(node) for node in sorted(found if inclusive else found - seeds)]


def get_walks_intersection_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True,
    backward_inclusive: bool = True, within_ops: Any = None,
    within_ops_fn: Callable[[Operation], bool] | None = None, control_inputs: bool = False,
    control_outputs: ControlOutputs | None = None, control_ios: ControlOutputs | None = None,
) -> list[Operation]:
    """Return the operations that both a forward walk and a backward walk visit.

    Parameters
    ----------
    forward_seed_ops, backward_seed_ops
        Begin of each walk.
    forward_inclusive, backward_inclusive : bool, optional
        Whether these are visited, too.
    within_ops, within_ops_fn
        As for `get_forward_walk_ops`, which also says in which order operations are returned.
    control_inputs, control_outputs, control_ios
        As `check_cios` takes them.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = x * x
    >>> z, other = abs(y), y + 1.0
    >>> [op.name for op in get_walks_intersection_ops(x.op, z.op)]
    ['x', 'Multiply', 'Absolute']
    """
    forward, backward = _walks(
        forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive, within_ops,
        within_ops_fn, control_inputs, control_outputs, control_ios)
    both = set(backward)
    return [op for op in forward if op in both]


def get_walks_union_ops(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool = True,
    backward_inclusive: bool = True, within_ops: Any = None,
    within_ops_fn: Callable[[Operation], bool] | None = None, control_inputs: bool = False,
    control_outputs: ControlOutputs | None = None, control_ios: ControlOutputs | None = None,
) -> list[Operation]:
    """Return the operations that a forward walk or a backward walk visits.

    Parameters and order are those of `get_walks_intersection_ops`.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.Graph().placeholder("float64", name="x")
    >>> y = x * x
    >>> z = abs(y)
    >>> [op.name for op in get_walks_union_ops(z.op, y.op)]
    ['x', 'Multiply', 'Absolute']
    """
    forward, backward = _walks(
        forward_seed_ops, backward_seed_ops, forward_inclusive, backward_inclusive, within_ops,
        within_ops_fn, control_inputs, control_outputs, control_ios)
    return sorted({*forward, *backward}, key=lambda op: op.node)


def _walks(
    forward_seed_ops: Any, backward_seed_ops: Any, forward_inclusive: bool,
    backward_inclusive: bool, within_ops: Any,
    within_ops_fn: Callable[[Operation], bool] | None, control_inputs: bool,
    control_outputs: ControlOutputs | None, control_ios: ControlOutputs | None,
) -> tuple[list[Operation], list[Operation]]:
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    forward = get_forward_walk_ops(
        forward_seed_ops, forward_inclusive, within_ops, within_ops_fn,
        control_outputs=control_outputs)
    backward = get_backward_walk_ops(
        backward_seed_ops, backward_inclusive, within_ops, within_ops_fn,
        control_inputs=control_inputs)
    return forward, backward


def get_within_boundary_ops(
    ops: Any, seed_ops: Any, boundary_ops: Any = (), inclusive: bool = True,
    control_inputs: bool = False, control_outputs: ControlOutputs | None = None,
    control_ios: ControlOutputs | None = None,
) -> list[Operation]:
    """Return the operations that can be reached from some in any direction, up to a boundary.

    Parameters
    ----------
    ops : Graph, Operation or iterable of Operation
        The operations among which to look.
    seed_ops : Operation or iterable of Operation
        Begin of the walk, none of them on the boundary.
    boundary_ops : Operation or iterable of Operation, optional
        Operations that the walk does not cross.
    inclusive : bool, optional
        Whether the boundary is returned, too.
    control_inputs, control_outputs, control_ios
        As `check_cios` takes it.

    Examples
    --------
    >>> import cytape
    >>> graph = cytape.Graph()
    >>> x = graph.placeholder("float64", name="x")
    >>> y = x * x
    >>> z = abs(y)
    >>> [op.name for op in get_within_boundary_ops(graph, x.op, y.op)]
    ['x', 'Multiply']
    """
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    found = set(make_list_of_op(seed_ops, allow_graph=False))
    boundary = set(make_list_of_op(boundary_ops))
    if both := found & boundary:
        raise ValueError(f"seed_ops are on the boundary: {sorted(op.name for op in both)}")
    stack = list(found)
    while stack:
        op = stack.pop()
        around = [t.op for t in op.inputs] + [each for t in op.outputs for each in t.consumers()]
        if control_inputs:
            around += op.control_inputs
        if control_outputs is not None:
            around += control_outputs.get(op)
        for each in around:
            if each not in found:
                found.add(each)
                if each not in boundary:
                    stack.append(each)
    return [op for op in make_list_of_op(ops) if op in found and (
        inclusive or op not in boundary)]
