from collections.abc import Callable, Iterable
from typing import Any

from cytape.tensor.operators import Operator

class Op(Operator):
    @property
    def name(self) -> str: ...
    @property
    def forward(self) -> Callable[..., Any]: ...
    stateful: bool

def partly_followed(operands: Iterable[Any]) -> bool: ...
def install_conform(**functions: Callable[..., Any]) -> None: ...
