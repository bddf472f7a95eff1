from collections.abc import Callable
from typing import Any, final, overload

from cytape.ops.calls.dispatch import Op
from cytape.tensor.tensor import Tensor

@final
class ElementwiseOp(Op):
    together: Callable[..., Any] | None
    def __init__(
        self, name: str, forward: Callable[..., Any],
        partials: tuple[Callable[..., Any] | None, ...],
    ) -> None: ...
    @overload
    def __call__(self, x: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, x: Any, y: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
    def by_numpy(self, *operands: Any) -> Any: ...
