"""Warnings that point at the line of the user's program that is meant."""

import os
import sys
import warnings
from types import FrameType

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
NUMPY = os.path.dirname(np.__file__) + os.sep  # whose functions call those of this package


_shown: dict[str, dict] = {}  # by file: what has been said of which line


def user_line() -> str:
    """Say where in the user's program this is."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"in {frame.f_code.co_filename}, line {frame.f_lineno}"


def numpy_call() -> str | None:
    """Name the Python function of NumPy's that the user's program called to get here, if any."""
    frame: FrameType | None = sys._getframe(1)
    name = None
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
        if frame.f_code.co_filename.startswith(NUMPY):
            name = frame.f_code.co_qualname.partition(".")[0]  # of a method, its class
        frame = frame.f_back
    return name


def warn_of_line(file: str, line: int, message: str, category: type[Warning]) -> None:
    """Issue a warning of a line that ran before, which Python shows once for each line.

    Parameters
    ----------
    file : str
    line : int
    message : str
    category : type of Warning
    """
    warnings.warn_explicit(
        message, category, file, line, registry=_shown.setdefault(file, {}))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning, which Python shows once for each line that calls into this package.

    Parameters
    ----------
    message : str
    category : type of Warning, optional
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, NUMPY)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
