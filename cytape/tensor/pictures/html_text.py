"""Short HTML texts that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["described", "size_text", "table"]

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size_text(nbytes: int) -> str:
    """Return a number of bytes with its unit.

    Examples
    --------
    >>> size_text(1536)
    '1.5 KiB'
    """
    number, unit = float(nbytes), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.4g} {_UNITS[unit]}"


def described(kind: str, about: str, text: str) -> str:
    """Return the kind of an object in bold type, a few words on it, and a text as it is.

    Examples
    --------
    >>> described("Tensor", "int64 ()", "1 < 2")
    '<div><b>Tensor</b> int64 ()</div><pre>1 &lt; 2</pre>'
    """
    return f"<div><b>{escape(kind)}</b> {escape(about)}</div><pre>{escape(text)}</pre>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return a table; the first column is to the left, numbers in the others to the right.

    Examples
    --------
    >>> table(["a"], [["<"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
    """
    def row(cells: Sequence[str], tag: str) -> str:
        return "".join([
            "<tr>", *(
                f'<{tag}{" style=text-align:right" if i and cell[:1].isdigit() else ""}>'
                f"{escape(cell)}</{tag}>" for i, cell in enumerate(cells)), "</tr>"])

    return "".join([
        "<table>", f"<caption>{escape(caption)}</caption>" * bool(caption),
        "<thead>", row(head, "th"), "</thead><tbody>", *(row(cells, "td") for cells in rows),
        "</tbody></table>"])
