from collections.abc import Callable
from typing import Any, final

from cytape.ops.engine.general_op import GeneralOp

@final
class SumOp(GeneralOp):
    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjp: Callable[..., Any],
        is_mean: bool,
        batched: Callable[..., Any],
        shape_rule: Callable[..., Any] | None = None,
        composition: Callable[..., Any] | None = None,
    ) -> None: ...
