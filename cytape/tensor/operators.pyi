from collections.abc import Callable
from typing import Any

def install(
    operators: dict[str, Callable[..., Any]], others: dict[str, Callable[..., Any]]
) -> None: ...

class Operator: ...
