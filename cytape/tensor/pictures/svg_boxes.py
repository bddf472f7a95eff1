"""Diagrams as SVG, without other programs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cytape.tensor.pictures.diagram_parts import KINDS, Arrow, Box
from cytape.tensor.pictures.layered_layout import layered

__all__ = ["svg_text"]

CHARACTER, LINE = 6.8, 14  # extents in Helvetica of 11 points, rounded up
MARGIN, PADDING = 12, 8
RIM = 8  # of a cylinder
LINES = 'fill="none" stroke="#333333"'


def svg_text(title: str, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Return a diagram as SVG.

    Each box is a group of the class "box" with its key as `data-key`, each arrow a group of the
    class "arrow" with `data-start` and `data-end`.
    """
    texts = {box.key: _lines_of(box) for box in boxes}
    sizes = {box.key: _size(texts[box.key], RIM if KINDS[box.kind].outline == "cylinder" else 0)
             for box in boxes}
    layout = layered(sizes, [(arrow.start, arrow.end) for arrow in arrows])
    empty = 2 * PADDING + CHARACTER * len(title) if not boxes else 0
    width = max(layout.width, empty) + 2 * MARGIN
    height = max(layout.height, 2 * LINE if not boxes else 0) + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width:.0f}" height="{height:.0f}" '
        'fill="#ffffff"/>']
    for arrow in arrows:
        parts.append(_arrow(arrow, layout.centres, sizes, layout.routes[arrow.start, arrow.end]))
    for box in boxes:
        parts.append(_box(box, texts[box.key], layout.centres[box.key], sizes[box.key]))
    if not boxes:
        parts.append(_text(title, width / 2 - MARGIN, LINE))
    return "\n".join([*parts, "</svg>"])


def _lines_of(box: Box) -> list[str]:
    lines = box.label.split("\n")
    if box.scope and box.kind != "number":
        lines[0] = f"{box.scope}/{lines[0]}"
    return lines + box.results.split("\n") if box.results else lines


def _size(lines: list[str], rim: float) -> tuple[float, float]:
    return (max(map(len, lines)) * CHARACTER + 2.5 * PADDING,
            len(lines) * LINE + 1.5 * PADDING + rim)


def _text(text: str, x: float, y: float, rest: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{rest}>{escape(text)}</text>'


def _box(
    box: Box, lines: list[str], centre: tuple[float, float], size: tuple[float, float]
) -> str:
    (x, y), (width, height) = centre, size
    kind = KINDS[box.kind]
    n_results = box.results.count("\n") + 1 if box.results else 0
    top = y - LINE * len(lines) / 2 + LINE - 3 + (RIM / 2 if kind.outline == "cylinder" else 0)
    texts = [_text(line, x, top + i * LINE,
                   ' fill="#555555"' if i >= len(lines) - n_results else "")
             for i, line in enumerate(lines)]
    outline = _outline(kind.outline, kind.fill, x - width / 2, y - height / 2, width, height)
    dashes = ' stroke-dasharray="4 2"' if kind.dashed else ""
    return (f'<g class="box" data-key="{escape(box.key)}" data-kind="{box.kind}">'
            f'<g stroke="#333333" fill="{kind.fill}"{dashes}>{outline}</g>{"".join(texts)}</g>')


def _outline(
    outline: str, fill: str, x: float, y: float, width: float, height: float
) -> str:
    """Return the outline of a box with a corner at x, y."""
    if outline == "none":
        return ""
    if outline == "note":
        fold = 7
        return (
            f'<path d="M{x:.1f} {y:.1f}h{width - fold:.1f}l{fold} {fold}v{height - fold:.1f}'
            f'h{-width:.1f}z"/>'
            f'<path d="M{x + width - fold:.1f} {y:.1f}v{fold}h{fold}" {LINES}/>')
    if outline == "cylinder":
        r, half = RIM / 2, width / 2
        return (
            f'<path d="M{x:.1f} {y + r:.1f}a{half:.1f} {r} 0 0 1 {width:.1f} 0'
            f'v{height - 2 * r:.1f}a{half:.1f} {r} 0 0 1 {-width:.1f} 0z"/>'
            f'<path d="M{x:.1f} {y + r:.1f}a{half:.1f} {r} 0 0 0 {width:.1f} 0" {LINES}/>')
    radius = height / 2 if outline == "ellipse" else 5

    def frame(inset: float) -> str:
        return (f'<rect x="{x + inset:.1f}" y="{y + inset:.1f}" width="{width - 2 * inset:.1f}" '
                f'height="{height - 2 * inset:.1f}" rx="{radius:.1f}"/>')

    if outline == "stack":
        behind = f"M{x + width:.1f} {y + 4:.1f}h3v{height - 1:.1f}h{6 - width:.1f}v-3"
        return f'<path d="{behind}"/>{frame(0)}'
    return frame(0) + (frame(2.5) if outline == "double" else "")


def _arrow(
    arrow: Arrow, centres: dict, sizes: dict[str, tuple[float, float]],
    route: list[tuple[float, float]],
) -> str:
    """Return an arrow that bends between layers only, so that it meets no box."""
    (x, y), (end_x, end_y) = centres[arrow.start], centres[arrow.end]
    way = 1 if y < end_y else -1
    path = f"M{x:.1f} {y + way * sizes[arrow.start][1] / 2:.1f}"
    for (xa, ya), (xb, yb) in zip(route[::2], route[1::2], strict=True):
        middle = (ya + yb) / 2
        path += f"V{ya:.1f}C{xa:.1f} {middle:.1f} {xb:.1f} {middle:.1f} {xb:.1f} {yb:.1f}"
    end_y -= way * sizes[arrow.end][1] / 2
    dashes = ' stroke-dasharray="5 3"' if arrow.dashed else ""
    about = f"<title>{escape(arrow.text)}</title>" if arrow.text else ""
    return (f'<g class="arrow" data-start="{escape(arrow.start)}" data-end="{escape(arrow.end)}">'
            f'{about}<path d="{path}V{end_y - 5 * way:.1f}" fill="none" stroke="#777777"{dashes}/>'
            f'<path d="M{end_x:.1f} {end_y:.1f}l-3.5 {-7 * way}h7z" fill="#777777"/></g>')
