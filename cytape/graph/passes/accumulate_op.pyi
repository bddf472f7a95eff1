from collections.abc import Sequence
from typing import Any, final

import numpy as np

from cytape.ops.engine.dispatch import Op
from cytape.tensor.spec import Spec

@final
class AccumulateOp(Op):
    def __init__(
        self, spec: Spec, operand_specs: Sequence[Spec], indices: Sequence[Any]
    ) -> None: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def operand_specs(self) -> tuple[Spec, ...]: ...
    @property
    def indices(self) -> tuple[Any, ...]: ...
    def forward(self, *arrays: np.ndarray) -> np.ndarray: ...
    def report(self, *arrays: np.ndarray) -> np.ndarray: ...
