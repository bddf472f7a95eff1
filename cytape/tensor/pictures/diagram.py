"""Diagram: boxes joined by arrows, drawn by Graphviz or by a layout of this package.

`Diagram.draw` is the entry. It runs the program ``dot`` if there is one, and otherwise places the
boxes by `layered_layout`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from cytape.tensor.pictures.diagram_parts import Arrow, Box
from cytape.tensor.pictures.dot_language import dot_text
from cytape.tensor.pictures.picture import Picture
from cytape.tensor.pictures.svg_boxes import svg_text

__all__ = ["Diagram"]

SECONDS = 60    # that dot may take
LARGEST = 1000  # boxes that are drawn unless the caller asks for more, since layout is slow


@dataclass
class Diagram:
    """Boxes and arrows.

    Parameters
    ----------
    title : str
        Read by screen readers; shown if there are no boxes.
    boxes : list of Box
    arrows : list of Arrow

    Examples
    --------
    >>> diagram = Diagram("a square", [Box("x", "x", "input"), Box("y", "Square")])
    >>> diagram.arrows.append(Arrow("x", "y", "float64 ()"))
    >>> print(diagram.to_dot())
    digraph {
      node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11];
      edge [fontname=Helvetica, fontsize=9, color=gray40];
      x [label="x", shape=ellipse, fillcolor="#cfe2f3"];
      y [label="Square"];
      x -> y [label="float64 ()"];
    }
    <BLANKLINE>
    """

    title: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def to_dot(self) -> str:
        """Return the diagram in the language of Graphviz."""
        return dot_text(self.boxes, self.arrows)

    def draw(self, most: int = LARGEST, advice: str = "pass a larger `most`") -> Picture:
        """Return the diagram as a picture.

        Raises
        ------
        ValueError
            If there are more boxes than `most`.
        """
        if len(self.boxes) > most:
            raise ValueError(
                f"the picture would have {len(self.boxes)} boxes, more than most={most}: {advice}")
        return Picture(_drawn_by_graphviz(self.to_dot()) or svg_text(
            self.title, self.boxes, self.arrows))


def _drawn_by_graphviz(text: str) -> str | None:
    """Return SVG made by the program ``dot``; None if it is missing or fails."""
    command: Sequence[str] = ["dot", "-Tsvg"]
    try:
        run = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout
