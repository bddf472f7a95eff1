from collections.abc import Callable
from types import FunctionType
from typing import Any

numpy_global: Any
python_global: Any

class Reachable:
    functions: list[tuple[FunctionType, tuple[Any, ...]]]
    generators: dict[int, Any]
    states: dict[int, tuple[Any, ...]]
    seen: set[int]
    names: set[str]
    def __init__(self, f: Callable[..., Any], arguments: tuple[Any, ...] = ()) -> None: ...
    def moved(self) -> list[int]: ...

def state_of(generator: Any) -> tuple[Any, ...]: ...
def contents(x: Any) -> dict[str, Any]: ...
def is_of_cytape(function: FunctionType) -> bool: ...
