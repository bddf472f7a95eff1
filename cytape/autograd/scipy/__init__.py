"""Functions of SciPy, by the names of `autograd.scipy`."""

import importlib as _importlib
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    """Import a module at its first use."""
    if name in ("integrate", "linalg", "misc", "signal", "special", "stats"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
