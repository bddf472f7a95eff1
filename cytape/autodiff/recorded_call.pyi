from collections.abc import Callable
from typing import Any

from cytape.tensor.tensor import Tensor

class RecordedCall:
    @property
    def value(self) -> Any: ...
    @property
    def aux(self) -> Any: ...
    @property
    def arrays_out(self) -> bool: ...
    def __init__(
        self, fun: Callable, args: tuple, kwargs: dict, argnums: int | tuple, has_aux: bool
    ) -> None: ...
    def gradients(
        self, outputs: list[Tensor], seeds: list | None = None, keep: bool = False
    ) -> Any: ...
