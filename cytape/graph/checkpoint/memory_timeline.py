"""Text drawings of the bytes in memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["timeline"]

WIDTH, HEIGHT, MARGIN = 640, 240, 40
COLOURS = ("#888888", "#1f77b4", "#d62728", "#2ca02c")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def timeline(curves: Mapping[str, Sequence[int]]) -> str:
    """Draw the bytes in memory step by step.

    Parameters
    ----------
    curves : mapping of str to sequence of int
        By their names.

    Returns
    -------
    str
        SVG.

    Examples
    --------
    >>> drawing = timeline({"a": [10, 20, 5], "b": [10, 10, 10, 10]})
    >>> drawing.count("<path"), "20 bytes" in drawing
    (2, True)
    """
    most = max((max(values, default=0) for values in curves.values()), default=0) or 1
    longest = max((len(values) for values in curves.values()), default=0) or 1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<text x="{MARGIN}" y="{MARGIN - 8}">{_size(most)}</text>',
        f'<line x1="{MARGIN}" y1="{HEIGHT - MARGIN}" x2="{WIDTH - MARGIN}" y2="{HEIGHT - MARGIN}" '
        'stroke="black"/>']
    for i, (name, values) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        across, up = (WIDTH - 2 * MARGIN) / longest, (HEIGHT - 2 * MARGIN) / most
        path = "".join(
            f"{'L' if k else 'M'}{MARGIN + k * across:.1f} {HEIGHT - MARGIN - value * up:.1f}"
            f"H{MARGIN + (k + 1) * across:.1f}" for k, value in enumerate(values))
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}"/>')
        lines.append(f'<text x="{MARGIN + 150 * i}" y="{HEIGHT - 14}" fill="{colour}">'
                     f"{name}: {_size(max(values, default=0))}</text>")
    return "\n".join([*lines, "</svg>"])


def _size(nbytes: int) -> str:
    number, unit = float(nbytes), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.4g} {_UNITS[unit]}"
