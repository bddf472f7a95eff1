from collections.abc import Mapping, Sequence
from typing import Any

from cytape.core.trace import Trace
from cytape.core.vspace import VSpace

class Tape(Trace):
    @property
    def persistent(self) -> bool: ...
    def __init__(self, persistent: bool = False) -> None: ...
    def compute_gradient(
        self,
        vspace: VSpace,
        targets: Sequence[int],
        sources: Sequence[int],
        sources_that_are_targets: Mapping[int, Any] | None = None,
        output_gradients: Sequence[Any] | None = None,
        build_default_zeros_grads: bool = True,
        keep: bool = False,
    ) -> list[Any]: ...
