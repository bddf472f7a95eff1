"""Picture: an SVG drawing that notebooks show and that can be saved."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Picture"]


class Picture:
    """An SVG drawing.

    A notebook shows it; ``str(picture)`` is its text.

    Parameters
    ----------
    svg : str

    Examples
    --------
    >>> picture = Picture('<svg xmlns="http://www.w3.org/2000/svg"/>')
    >>> picture
    <Picture of 41 characters>
    >>> str(picture)
    '<svg xmlns="http://www.w3.org/2000/svg"/>'
    """

    def __init__(self, svg: str) -> None:
        self._svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, as SVG; raises if its name does not end in ".svg".

        Examples
        --------
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "empty.svg")
        ...     Picture("<svg/>").save(path)
        ...     os.path.getsize(path)
        6
        """
        if not os.fspath(path).lower().endswith(".svg"):
            raise ValueError(
                f"pictures are saved as SVG: the name must end in '.svg', got {os.fspath(path)!r}")
        Path(path).write_text(self._svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self._svg

    def __str__(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"<Picture of {len(self._svg)} characters>"
