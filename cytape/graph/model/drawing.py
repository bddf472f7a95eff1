"""Drawings of graphs: operations are boxes, tensors arrows, control inputs dashed arrows."""

from __future__ import annotations

from typing import Any

from cytape.graph.model.graph_variables import ASSIGNMENTS, read_variable_op, variable_handle_op
from cytape.graph.model.listing import call_text, is_number, short, spec_text
from cytape.ops.calls.dispatch import Lowering
from cytape.tensor.pictures.diagram import Diagram
from cytape.tensor.pictures.diagram_parts import Arrow, Box

_KINDS = {  # by op, or by its lowering
    Lowering.UNFED: "input",
    Lowering.CONSTANT: "constant",
    variable_handle_op: "variable",
    read_variable_op: "read",
    **dict.fromkeys(ASSIGNMENTS.values(), "assignment"),
}


def diagram_of(graph: Any, depth: int | None = None) -> Diagram:
    """Return a graph as a diagram.

    Parameters
    ----------
    graph : Graph
    depth : int, optional
        The number of nested scopes that are opened; deeper ones are one box each.
    """
    boxes: dict[str, Box] = {}
    arrows: dict[Arrow, None] = {}
    keys: dict[int, str] = {}
    inside: dict[str, int] = {}
    for node in range(graph.n_nodes):
        if is_number(graph, node):
            continue
        path, _, name = graph.name_of(node).rpartition("/")
        parts = path.split("/") if path else []
        if depth is not None and len(parts) > depth:
            scope = "/".join(parts[: depth + 1])
            keys[node] = key = f"s{list(inside).index(scope)}" if scope in inside else (
                f"s{len(inside)}")
            inside[scope] = inside.get(scope, 0) + 1
            boxes[key] = Box(key, f"{parts[depth]}/\n{inside[scope]} operations", "scope",
                             scope="/".join(parts[:depth]))
        else:
            keys[node] = key = f"n{node}"
            boxes[key] = _box(graph, node, key, name, path)
        for position, symbol in enumerate(graph.inputs_of(node)):
            source = graph.node_of(symbol)
            if is_number(graph, source):
                if not key.startswith("n"):
                    continue
                start = f"{key}_{position}"
                boxes[start] = Box(
                    start, short(graph.attrs[source]["value"]), "number", scope=path)
            else:
                start = keys[source]
            if start != key:
                arrows[Arrow(start, key, spec_text(graph, symbol))] = None
        arrows.update(dict.fromkeys(
            Arrow(keys[other], key, dashed=True) for other in graph.control_inputs_of(node)
            if not is_number(graph, other) and keys[other] != key))
    return Diagram(repr(graph)[1:-1], list(boxes.values()), list(arrows))


def _box(graph: Any, node: int, key: str, name: str, path: str) -> Box:
    operation, op = graph.operation_at(node), graph.ops[node]
    text = call_text(graph, node) if op.lowering == Lowering.CONSTANT else operation.type
    label = name if name == text else f"{name}\n{text}"
    if operation.device:
        label += f"\n@{operation.device}"
    symbols = graph.outputs_of(node)
    kind = _KINDS.get(op) or _KINDS.get(op.lowering) or (
        "result" if symbols and not any(map(graph.consumers_of, symbols)) else
        "derivative" if operation.original_op else "op")
    return Box(key, label, kind, "\n".join(spec_text(graph, symbol) for symbol in symbols), path)
