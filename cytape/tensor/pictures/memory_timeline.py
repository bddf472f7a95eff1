"""Text drawings of the bytes in memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from cytape.tensor.pictures.html_text import size_text

__all__ = ["timeline"]

WIDTH, HEIGHT, MARGIN = 640, 240, 40
COLOURS = ("#888888", "#1f77b4", "#d62728", "#2ca02c")


def timeline(
    curves: Mapping[str, Sequence[int]], times: Sequence[float] | None = None, unit: str = ""
) -> str:
    """Draw the bytes in memory step by step.

    Parameters
    ----------
    curves : mapping of str to sequence of int
        By their names.
    times : sequence of float, optional
        When each number of a curve holds from, ascending, and a last one when it ends. By default
        steps are of equal length.
    unit : str, optional
        Of the times; the length of all is written below the axis.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> drawing = timeline({"a": [10, 20, 5], "b": [10, 10, 10, 10]})
    >>> drawing.count("<path"), "20 bytes" in drawing
    (2, True)
    >>> "3 ms" in timeline({"a": [10, 20]}, [0.0, 1.0, 3.0], "ms")
    True
    """
    most = max((max(values, default=0) for values in curves.values()), default=0) or 1
    longest = max((len(values) for values in curves.values()), default=0) or 1
    ends = list(range(longest + 1)) if times is None else [time - times[0] for time in times]
    across, up = (WIDTH - 2 * MARGIN) / (ends[-1] or 1), (HEIGHT - 2 * MARGIN) / most
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<text x="{MARGIN}" y="{MARGIN - 8}">{size_text(most)}</text>',
        f'<line x1="{MARGIN}" y1="{HEIGHT - MARGIN}" x2="{WIDTH - MARGIN}" y2="{HEIGHT - MARGIN}" '
        'stroke="black"/>']
    if unit:
        lines.append(f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN + 14}" text-anchor="end">'
                     f"{ends[-1]:.4g} {escape(unit)}</text>")
    for i, (name, values) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = "".join(
            f"{'L' if k else 'M'}{MARGIN + ends[k] * across:.1f} {HEIGHT - MARGIN - value * up:.1f}"
            f"H{MARGIN + ends[k + 1] * across:.1f}" for k, value in enumerate(values))
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}"/>')
        lines.append(f'<text x="{MARGIN + 150 * i}" y="{HEIGHT - 14}" fill="{colour}">'
                     f"{escape(name)}: {size_text(max(values, default=0))}</text>")
    return "\n".join([*lines, "</svg>"])
