from collections.abc import Hashable
from typing import Any

def describe_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], words: Any
) -> tuple[tuple[Hashable, ...], list[Any], list[Any]]: ...
