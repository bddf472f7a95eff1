"""Random numbers: ``cytape.numpy.random``, with the names of `numpy.random`.

In a traced function or a graph each run draws new numbers. Draws are differentiable in parameters
that are tensors. All other names are those of ``numpy.random``.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any

import numpy as _numpy

from cytape.numpy.own_names import numpys as _numpys
from cytape.ops.python.draws import drawing_functions as _drawing_functions
from cytape.ops.python.draws import seed as seed
from cytape.tensor.names_elsewhere import NAMES as _NAMES
from cytape.tensor.names_elsewhere import no_attribute as _no_attribute

if TYPE_CHECKING:
    from cytape.ops.sampling.distributions import *  # noqa: F403
    from cytape.ops.sampling.samples import *  # noqa: F403


def _functions() -> dict[str, _Any]:
    import cytape.ops.sampling.samples  # noqa: F401  # here: few programs draw

    return _drawing_functions


def __getattr__(name: str) -> _Any:
    function = _functions().get(name)
    if function is None:
        if name in _NAMES[__name__]:
            raise _no_attribute(__name__, name)
        return _numpys(_numpy.random, name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({"seed", *_functions(), *_numpy.random.__all__})
