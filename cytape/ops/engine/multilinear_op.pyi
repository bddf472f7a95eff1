from collections.abc import Callable, Sequence
from typing import Any

from cytape.ops.engine.general_op import GeneralOp

class MultilinearOp(GeneralOp):
    @property
    def transposes(self) -> tuple[Callable[..., Any] | None, ...]: ...
    @property
    def core(self) -> tuple[int, ...] | None: ...
    def __init__(
        self, name: str, forward: Callable[..., Any],
        transposes: Sequence[Callable[..., Any] | None], core: Sequence[int] | None = None,
        batched: Callable[..., Any] | None = None, shape_rule: Callable[..., Any] | None = None,
        composition: Callable[..., Any] | None = None,
    ) -> None: ...  # fmt: skip
    def is_linear_in(self, i: int) -> bool: ...
