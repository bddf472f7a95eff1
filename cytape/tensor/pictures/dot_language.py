"""Diagrams in the language of Graphviz; scopes are clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cytape.tensor.pictures.diagram_parts import KINDS, Arrow, Box

__all__ = ["dot_text"]


def dot_text(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Return a diagram as text for the program ``dot``."""
    scopes: dict[str, Any] = {}
    for box in boxes:
        style = KINDS[box.kind].dot
        _lines_of(scopes, box.scope).append(
            f"{box.key} [label={_quoted(box.label)}{', ' * bool(style)}{style}];")
    return "\n".join([
        "digraph {",
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, '
        "fontsize=11];",
        "  edge [fontname=Helvetica, fontsize=9, color=gray40];",
        *_nested(scopes, "", 1),
        *[f"  {arrow.start} -> {arrow.end} "
          f"[{'style=dashed' if arrow.dashed else f'label={_quoted(arrow.text)}'}];"
          for arrow in arrows],
        "}",
    ]) + "\n"  # fmt: skip


def _lines_of(scopes: dict[str, Any], path: str) -> list[str]:
    """Return the list of boxes in a scope; scopes in it are dicts."""
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


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
