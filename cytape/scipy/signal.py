"""Signal processing, differentiable, with the names of `scipy.signal`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.signal as _scipys

from cytape.ops.signals.convolutions import *  # noqa: F403
from cytape.ops.signals.linear_filters import *  # noqa: F403
from cytape.ops.signals.rank_order import *  # noqa: F403
from cytape.ops.signals.resampling import *  # noqa: F403
from cytape.ops.signals.spectra import *  # noqa: F403


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
