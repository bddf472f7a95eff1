"""NumPy's functions, differentiable: ``import cytape.numpy as np``.

Called with plain arrays they return NumPy's results; with a tensor they return tensors. Names
without a derivative (dtypes, constants, array creation, ...) are NumPy's own.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import numpy as _numpy

from cytape.numpy import random as random
from cytape.numpy import slots as _slots  # noqa: F401  (which it fills)
from cytape.numpy.families import *  # noqa: F403
from cytape.numpy.own_names import ndarray as ndarray
from cytape.numpy.own_names import numpys as _numpys
from cytape.numpy.protocols import later as _later

if _TYPE_CHECKING:  # NumPy's own types and constants, which `__getattr__` finds
    from numpy import bool_ as bool_
    from numpy import complex64 as complex64
    from numpy import complex128 as complex128
    from numpy import dtype as dtype
    from numpy import e as e
    from numpy import errstate as errstate
    from numpy import finfo as finfo
    from numpy import float16 as float16
    from numpy import float32 as float32
    from numpy import float64 as float64
    from numpy import iinfo as iinfo
    from numpy import inf as inf
    from numpy import int8 as int8
    from numpy import int16 as int16
    from numpy import int32 as int32
    from numpy import int64 as int64
    from numpy import nan as nan
    from numpy import newaxis as newaxis
    from numpy import pi as pi
    from numpy import uint8 as uint8


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
