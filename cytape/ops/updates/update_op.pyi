from collections.abc import Callable
from typing import Any, final

from cytape.ops.engine.general_op import GeneralOp

@final
class UpdateOp(GeneralOp):
    def __init__(
        self, name: str, forward: Callable[..., Any], kind: str, **rules: Any
    ) -> None: ...
    general: Callable[..., None]
