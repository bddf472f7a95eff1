from collections.abc import Callable
from typing import Any, final

from cytape.ops.engine.general_op import GeneralOp

@final
class StructuralOp(GeneralOp):
    @property
    def key(self) -> str: ...
    @property
    def pieces(self) -> Callable[..., Any] | None: ...
    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        pieces: Callable[..., Any] | None,
        transpose: Callable[..., Any] | None,
        batched: Callable[..., Any] | None = None,
        shape_rule: Callable[..., Any] | None = None,
        is_own: bool = True,
        makes_views: bool = False,
    ) -> None: ...
    def move(self, *arrays: Any, **attrs: Any) -> tuple[Any, ...]: ...

def structural_op(key: str) -> StructuralOp: ...
