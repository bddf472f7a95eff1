from collections.abc import Callable, Sequence
from typing import Any, final

from cytape.core.vspace import OpType
from cytape.ops.engine.dispatch import Op
from cytape.tensor.tensor import Tensor

@final
class CustomOp(Op):
    def __init__(self, name: str) -> None: ...

def install_custom_call(function: Callable[..., list[Tensor]]) -> None: ...

class GradientsIfNeeded:
    compute: Callable[[tuple[bool, ...]], Sequence[Any]]
    def __init__(self, compute: Callable[[tuple[bool, ...]], Sequence[Any]]) -> None: ...

def custom_call(
    name: str,
    results: Sequence[Any],
    inputs: Sequence[Tensor],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    optional: bool = False,
) -> list[Tensor]: ...
def described_call(
    op_type: str | OpType,
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    optional: bool = False,
    deleter: Callable[[Any], object] | None = None,
) -> tuple[CustomOp, dict[str, Any]]: ...
def record_custom(
    op_type: str | OpType,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    backward: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    optional: bool = False,
    lazy: bool = False,
    deleter: Callable[[Any], object] | None = None,
) -> bool: ...
