from collections.abc import Callable
from typing import Any

from cytape.ops.engine.dispatch import Op
from cytape.tensor.tensor import Tensor

def operands(output: Tensor, inputs: list[Tensor]) -> list[Tensor]: ...

class PartialsOp(Op):
    @property
    def n_inputs(self) -> int: ...
    @property
    def partials(self) -> tuple[Callable[..., Any] | None, ...]: ...
    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        partials: tuple[Callable[..., Any] | None, ...],
    ) -> None: ...
