from collections.abc import Callable, Sequence
from typing import Any, final, overload

from cytape.ops.dispatch import Op
from cytape.tensor.tensor import Tensor

@final
class ElementwiseOp(Op):
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
    @overload
    def __call__(self, x: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, x: Any, y: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
    def jvp_of(self, inputs: Sequence[Any], tangents: Sequence[Any]) -> Tensor | None: ...
