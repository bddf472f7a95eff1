"""NumPy's names, differentiable: `cytape.numpy`, and functions with autograd's conventions."""

import importlib as _importlib
from typing import Any as _Any

import cytape.numpy as _functions
from cytape.autograd.numpy.numpy_wrapper import *  # noqa: F403
from cytape.autograd.numpy.numpy_wrapper import numpy_version as __version__  # noqa: F401

_MODULES = ("fft", "linalg", "numpy_boxes", "numpy_jvps", "numpy_vjps", "numpy_vspaces", "random")


def __getattr__(name: str) -> _Any:
    """Import the modules of this package, and look up functions, at first use."""
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(_functions, name)
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *dir(_functions)})


__all__ = [name for name in __dir__() if not name.startswith("_")]
