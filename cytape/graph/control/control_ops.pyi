from collections.abc import Sequence
from typing import Any

import numpy as np

from cytape.graph.run.executor import ValueOp
from cytape.tensor.spec import Spec

class CondOp(ValueOp): ...
class LoopOp(ValueOp): ...

class Slices:
    stack: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any] | None
    def __init__(self, stack: np.ndarray[Any, Any]) -> None: ...
    def __getitem__(self, place: int) -> Any: ...

def slices_of(
    arrays: Sequence[np.ndarray[Any, Any]], n_stacks: int, ragged: Sequence[int]
) -> list[Slices]: ...
def kept_arrays(
    rows: Sequence[Sequence[np.ndarray[Any, Any]]], specs: Sequence[Spec], ragged: Sequence[int]
) -> list[np.ndarray[Any, Any]]: ...
def stacked(arrays: Sequence[np.ndarray[Any, Any]], spec: Spec) -> np.ndarray[Any, Any]: ...
