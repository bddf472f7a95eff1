"""Boxes and arrows of diagrams, and the kinds of boxes: outline and colour.

Each kind has an outline of its own or a mark, so that it can be recognised without colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["KINDS", "Arrow", "Box", "Kind"]


class Kind(NamedTuple):
    """Look of a box.

    Attributes
    ----------
    dot : str
        Attributes in the language of Graphviz.
    outline : str
        One of "round", "ellipse", "note", "cylinder", "double", "stack", "none".
    fill : str
        A colour.
    dashed : bool
    """

    dot: str
    outline: str
    fill: str
    dashed: bool = False


KINDS = {
    "op": Kind("", "round", "#ffffff"),
    "result": Kind("peripheries=2", "double", "#ffffff"),
    "input": Kind('shape=ellipse, fillcolor="#cfe2f3"', "ellipse", "#cfe2f3"),
    "constant": Kind('shape=note, fillcolor="#eeeeee"', "note", "#eeeeee"),
    "variable": Kind('shape=cylinder, fillcolor="#fff2cc"', "cylinder", "#fff2cc"),
    "read": Kind('fillcolor="#fff2cc"', "round", "#fff2cc"),
    "assignment": Kind('fillcolor="#f4cccc"', "round", "#f4cccc"),
    "derivative": Kind('fillcolor="#d9ead3"', "round", "#d9ead3", True),
    "number": Kind("shape=plaintext, style=solid", "none", "#ffffff"),
    "scope": Kind('shape=box3d, fillcolor="#e8e3f4"', "stack", "#e8e3f4"),
}


@dataclass(frozen=True)
class Box:
    """A box of a diagram.

    Parameters
    ----------
    key : str
        Unique in the diagram.
    label : str
        One or more lines.
    kind : str
        A key of `KINDS`: determines the outline and the colour.
    results : str, optional
        Dtypes and shapes, shown if arrows have no text.
    scope : str, optional
        Path of the scope, parts separated by slashes.
    """

    key: str
    label: str
    kind: str = "op"
    results: str = ""
    scope: str = ""


@dataclass(frozen=True)
class Arrow:
    """An arrow between two boxes, given by their keys; a dashed one carries no data."""

    start: str
    end: str
    text: str = ""
    dashed: bool = False
