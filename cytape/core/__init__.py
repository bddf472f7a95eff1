"""The tape and the accumulator over integer ids, for any array library: they know no arrays.

Other libraries build on it by subclassing `VSpace`, in Python or, through the installed ``.pxd``
files, in Cython. `cytape.core.reference` implements the same contract in plain Python.
"""

from cytape.core.accumulator import ForwardAccumulator
from cytape.core.tape import Tape
from cytape.core.vspace import OpType, VSpace, is_trainable

__all__ = ["ForwardAccumulator", "OpType", "Tape", "VSpace", "is_trainable"]
