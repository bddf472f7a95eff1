"""The tape and the accumulator over integer ids, for any array library: they know no arrays.

Other libraries build on it by subclassing `VSpace`, in Python or, through the installed ``.pxd``
files, in Cython. `cytape.core.reference` implements the same contract in plain Python.
"""

import sys

try:
    from cytape.core.accumulator import ForwardAccumulator
except ModuleNotFoundError as error:
    if error.name != "cytape.core.accumulator":
        raise
    raise ImportError(
        f"the modules of cytape in {__path__[0]} have not been compiled for this Python "
        f"({sys.executable}): run `make build` (and then .venv/bin/python) or `pip install .` in "
        "the folder that contains cytape. If cytape is installed, start Python in another folder"
    ) from None
from cytape.core.tape import Tape
from cytape.core.vspace import OpType, VSpace, is_trainable

__all__ = ["ForwardAccumulator", "OpType", "Tape", "VSpace", "is_trainable"]
