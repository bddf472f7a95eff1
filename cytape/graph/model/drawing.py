"""Drawings of graphs, in the language of Graphviz.

Scopes are boxes, solid edges are data, dashed edges are control inputs.
"""

from __future__ import annotations

import subprocess
from typing import Any

from cytape.graph.model.graph_variables import ASSIGNMENTS, read_variable_op, variable_handle_op
from cytape.graph.model.listing import call_text, is_number, short, spec_text
from cytape.ops.calls.dispatch import Lowering

LARGEST = 1000  # operations of a graph that is drawn automatically, since layout is slow
SECONDS = 60

_STYLES = {  # by op, or by its lowering
    Lowering.UNFED: 'shape=ellipse, fillcolor="#cfe2f3"',
    Lowering.CONSTANT: 'shape=note, fillcolor="#eeeeee"',
    variable_handle_op: 'shape=cylinder, fillcolor="#fff2cc"',
    read_variable_op: 'fillcolor="#fff2cc"',
    **dict.fromkeys(ASSIGNMENTS.values(), 'fillcolor="#f4cccc"'),
}
_GRADIENT_STYLE = 'fillcolor="#d9ead3"'


def to_dot(graph: Any) -> str:
    """Return a graph in the language of Graphviz."""
    scopes: dict[str, Any] = {}
    edges = []
    for node in range(graph.n_nodes):
        if is_number(graph, node):
            continue
        path, _, name = graph.name_of(node).rpartition("/")
        lines = _lines_of(scopes, path)
        lines.append(_box(graph, node, name))
        for position, symbol in enumerate(graph.inputs_of(node)):
            source = graph.node_of(symbol)
            start = f"n{source}"
            if is_number(graph, source):
                start = f"n{node}_{position}"
                text = _quoted(short(graph.attrs[source]["value"]))
                lines.append(f"{start} [label={text}, shape=plaintext, style=solid];")
            edges.append(f"{start} -> n{node} [label={_quoted(spec_text(graph, symbol))}];")
        edges += [
            f"n{other} -> n{node} [style=dashed];"
            for other in graph.control_inputs_of(node)
            if not is_number(graph, other)
        ]
    return "\n".join([
        "digraph {",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, '
        "fontsize=11];",
        "  edge [fontname=Helvetica, fontsize=9, color=gray40];",
        *_nested(scopes, "", 1),
        *["  " + edge for edge in edges],
        "}",
    ]) + "\n"  # fmt: skip


def _lines_of(scopes: dict[str, Any], path: str) -> list[str]:
    """Return the list of nodes in a scope; scopes in it are dicts."""
    for part in path.split("/") if path else ():
        scopes = scopes.setdefault(part, {})
    return scopes.setdefault("", [])


def _nested(scopes: dict[str, Any], path: str, depth: int) -> list[str]:
    indent = "  " * depth
    lines = [indent + line for line in scopes.get("", ())]
    for name, inner in scopes.items():
        if name:
            full = f"{path}{name}/"
            lines += [
                f"{indent}subgraph {_quoted('cluster_' + full)} {{",
                f'{indent}  label={_quoted(name)}; style="rounded"; color=gray60;',
                *_nested(inner, full, depth + 1),
                indent + "}",
            ]
    return lines


def _box(graph: Any, node: int, name: str) -> str:
    operation, op = graph.operation_at(node), graph.ops[node]
    text = call_text(graph, node) if op.lowering == Lowering.CONSTANT else operation.type
    label = name if name == text else f"{name}\n{text}"
    if operation.device:
        label += f"\n@{operation.device}"
    style = _STYLES.get(op) or _STYLES.get(op.lowering) or (
        _GRADIENT_STYLE if operation.original_op else "")
    return f"n{node} [label={_quoted(label)}{', ' * bool(style)}{style}];"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def to_svg(graph: Any) -> str | None:
    """Return a graph as a picture, if Graphviz is installed.

    Returns
    -------
    str or None
        SVG; None if the program ``dot`` of Graphviz is missing or fails, or the graph is too large.
    """
    if graph.n_nodes > LARGEST:
        return None
    try:
        run = subprocess.run(
            ["dot", "-Tsvg"], input=to_dot(graph), capture_output=True, text=True, check=True,
            timeout=SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout
