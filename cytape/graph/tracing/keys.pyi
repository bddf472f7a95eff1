from collections.abc import Hashable
from typing import Any

def describe_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], in_order: bool = True
) -> tuple[tuple[Hashable, ...], list[Any], list[Any]]: ...
