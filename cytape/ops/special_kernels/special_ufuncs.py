"""The names of `scipy.special`; also where SCIPY_ARRAY_API=1 wraps ufuncs, they are ufuncs."""

from typing import Any

import numpy as np
import scipy.special


def __getattr__(name: str) -> Any:
    found = getattr(scipy.special, name)
    return found if isinstance(found, np.ufunc) else getattr(scipy.special._ufuncs, name, found)
