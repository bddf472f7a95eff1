from collections.abc import Callable, Iterable
from typing import Any

class Op:
    @property
    def name(self) -> str: ...
    @property
    def forward(self) -> Callable[..., Any]: ...
    stateful: bool
    rule_takes_tensors: bool
    makes_views: bool
    @property
    def composition(self) -> Callable[..., Any] | None: ...
    def __getattr__(self, name: str) -> Any: ...

UFUNC_METHODS: tuple[str, ...]
UFUNC_ATTRIBUTES: tuple[str, ...]

def partly_followed(operands: Iterable[Any]) -> bool: ...
def install_conform(**functions: Callable[..., Any]) -> None: ...
