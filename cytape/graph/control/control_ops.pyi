from collections.abc import Sequence
from typing import Any

import numpy as np

from cytape.graph.run.executor import ValueOp
from cytape.tensor.spec import Spec

class CondOp(ValueOp): ...
class LoopOp(ValueOp): ...

def stacked(arrays: Sequence[np.ndarray[Any, Any]], spec: Spec) -> np.ndarray[Any, Any]: ...
