"""Run orders of nodes after their inputs or control inputs have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cytape.graph.model.graph_variables import ASSIGNMENTS, read_variable_op
from cytape.ops.python.draws import Stream

__all__ = ["order_within"]


def order_within(
    graph: Any, first: int, end: int, inputs: Mapping[int, list[int]],
    controls: Mapping[int, Iterable[int]],
) -> list[int]:
    """Return an order in which some nodes can run, as close as possible to the present one.

    A node that is needed earlier is moved right before its first consumer. Nodes with side effects
    keep their relative order.

    Parameters
    ----------
    graph : Graph
    first, end : int
        The nodes from `first` on, before `end`.
    inputs : mapping of int to list of int
        The symbols that nodes are to read, where these are others than now.
    controls : mapping of int to iterable of int
        The nodes that they are to wait for, likewise.

    Raises
    ------
    ValueError
        If there is none.
    """
    effects = _before_by_effect(graph, first, end)

    def befores(node: int) -> Iterable[int]:
        for symbol in inputs[node] if node in inputs else graph.inputs_of(node):
            yield graph.node_of(symbol)
        yield from controls[node] if node in controls else graph.control_inputs_of(node)
        yield from effects.get(node, ())

    order: list[int] = []
    done: set[int] = set()
    for start in range(first, end):
        if start in done:
            continue
        path = {start: iter(befores(start))}  # ordered: each needs the next
        while path:
            node = next(reversed(path))
            for before in path[node]:
                if before in path:
                    raise ValueError(_message(graph, [*path], before))
                if before >= first and before not in done:
                    path[before] = iter(befores(before))
                    break
            else:
                del path[node]
                done.add(node)
                order.append(node)
    return order


def _message(graph: Any, path: list[int], again: int) -> str:
    cycle = path[path.index(again) :]
    names = [repr(graph.name_of(node)) for node in cycle]
    if len(names) > 8:
        names[4:-3] = ["..."]
    effects = (
        " (of stateful ops, each also needs those before it that read or change the same)"
        if any(graph.ops[node].stateful for node in cycle) else "")
    return (
        f"op {names[0]} would have to run before itself: {' needs '.join([*names, names[0]])}"
        f"{effects}. Nothing has been changed"
    )


def _before_by_effect(graph: Any, first: int, end: int) -> dict[int, list[int]]:
    """Return the nodes that must run before stateful nodes, to preserve side effects."""
    befores: dict[int, list[int]] = {}
    last: dict[Any, int] = {}         # id of a state -> the last node that changed it
    since: dict[Any, list[int]] = {}  # id of a state -> the nodes that have read it since
    barrier = -1                      # the last node whose effects are unknown
    all_since: list[int] = []         # those since
    for node in graph.stateful:
        if not first <= node < end:
            continue
        what = _touched(graph.ops[node], graph.attrs[node])
        before = [barrier] if barrier >= 0 else []
        if what is None:
            before += all_since
            barrier, all_since = node, []
            last, since = {}, {}
        else:
            all_since.append(node)
            changes = graph.ops[node] is not read_variable_op
            if what in last:
                before.append(last[what])
            if changes:
                before += since.pop(what, ())
                last[what] = node
            else:
                since.setdefault(what, []).append(node)
        befores[node] = before
    return befores


def _touched(op: Any, attrs: dict[str, Any]) -> int | None:
    """Return the id of the state that an op reads or changes; None if unknown."""
    if op is read_variable_op or op in ASSIGNMENTS.values():
        return attrs["variable"].id
    if "stream" not in attrs:
        return None
    stream = attrs["stream"]
    return -id(stream if type(stream) is Stream else attrs)  # draws without a seed may be exchanged
