from collections.abc import Sequence
from typing import Any, final

import numpy as np

from cytape.graph.passes.fused_loop import FusedLoop
from cytape.ops.engine.dispatch import Op
from cytape.tensor.spec import Spec

@final
class FusedOp(FusedLoop):
    def __init__(
        self,
        spec: Spec,
        operand_specs: Sequence[Spec],
        calls: Sequence[tuple[Op, dict[str, Any], tuple[int, ...], bool]],
        results: Sequence[int],
        layouts: dict[int, Sequence[int]] | None = None,
    ) -> None: ...
    @property
    def calls(self) -> list[tuple[Op, dict[str, Any], tuple[int, ...], bool]]: ...
    @property
    def results(self) -> tuple[int, ...]: ...
    def forward(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]: ...
    def report(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]: ...
