"""Image processing, differentiable, with the names of `scipy.ndimage`.

Names without derivatives here are SciPy's own.
"""

from typing import Any as _Any

import scipy.ndimage as _scipys

from cytape.ops.images.correlations import *  # noqa: F403
from cytape.ops.images.gaussian_filters import *  # noqa: F403
from cytape.ops.images.grey_morphology import *  # noqa: F403
from cytape.ops.images.measurements import *  # noqa: F403
from cytape.ops.images.rank_filters import *  # noqa: F403
from cytape.ops.images.splines import *  # noqa: F403
from cytape.ops.images.transforms import *  # noqa: F403


def __getattr__(name: str) -> _Any:
    return getattr(_scipys, name)


def __dir__() -> list[str]:
    return list(_scipys.__all__)
