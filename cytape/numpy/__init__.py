"""NumPy's functions, differentiable: ``import cytape.numpy as np``.

Called with plain arrays they return NumPy's results; with a tensor they return tensors. Names
without a derivative (dtypes, constants, array creation, ...) are NumPy's own.
"""

import importlib as _importlib
from typing import Any as _Any

import numpy as _numpy

from cytape.numpy import random as random
from cytape.numpy import slots as _slots  # noqa: F401  (which it fills)
from cytape.numpy.families import *  # noqa: F403
from cytape.numpy.own_names import ndarray as ndarray
from cytape.numpy.own_names import numpys as _numpys
from cytape.numpy.protocols import later as _later


def __getattr__(name: str) -> _Any:
    """Return NumPy's own object; import functions of cytape and its modules on first use."""
    if name in ("fft", "linalg"):
        return _importlib.import_module(f"cytape.numpy.{name}")
    ours = _later(name)
    if ours is None:
        return _numpys(_numpy, name)
    globals()[name] = ours
    return ours


def __dir__() -> list[str]:
    return sorted({*globals(), *_numpy.__all__})
