"""SciPy's functions on tensors, by SciPy's names and signatures (``pip install scipy``).

Called with plain arrays they return SciPy's results; with a tensor they return tensors.
"""

import importlib as _importlib
from typing import Any as _Any

try:
    import scipy as _scipy
except ImportError as _error:
    raise ImportError(
        "cytape.scipy needs SciPy, an optional dependency: pip install scipy") from _error

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats"]


def __getattr__(name: str) -> _Any:
    """Import a module at its first use, as SciPy does; return SciPy's own of other names."""
    if name in __all__:
        return _importlib.import_module(f"cytape.scipy.{name}")
    return getattr(_scipy, name)


def __dir__() -> list[str]:
    return list(__all__)
