"""Probability distributions, differentiable in all parameters, with the names of `scipy.stats`.

Other names are SciPy's own; their functions refuse recorded tensors.
"""

from types import FunctionType as _FunctionType
from typing import Any as _Any

import scipy.stats as _scipys

from cytape.ops.calls.without_derivatives import without_derivatives as _without_derivatives
from cytape.scipy.stats.bounded import *  # noqa: F403
from cytape.scipy.stats.compounds import *  # noqa: F403
from cytape.scipy.stats.counts import *  # noqa: F403
from cytape.scipy.stats.gamma_powers import *  # noqa: F403
from cytape.scipy.stats.half_line import *  # noqa: F403
from cytape.scipy.stats.hypothesis_tests import *  # noqa: F403
from cytape.scipy.stats.integrals import *  # noqa: F403
from cytape.scipy.stats.joint import *  # noqa: F403
from cytape.scipy.stats.multivariate import *  # noqa: F403
from cytape.scipy.stats.real_line import *  # noqa: F403
from cytape.scipy.stats.reciprocals import *  # noqa: F403
from cytape.scipy.stats.robust_summaries import *  # noqa: F403
from cytape.scipy.stats.samples import *  # noqa: F403
from cytape.scipy.stats.summaries import *  # noqa: F403
from cytape.scipy.stats.two_sided import *  # noqa: F403


def __getattr__(name: str) -> _Any:
    value = getattr(_scipys, name)
    return _without_derivatives(value) if isinstance(value, _FunctionType) else value


def __dir__() -> list[str]:
    ours = {name for name in globals() if not name.startswith("_")}
    return sorted({*ours, *_scipys.__all__})
