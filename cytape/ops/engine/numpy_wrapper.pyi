from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Version = TypeVar("_Version", bound=Callable[..., Any])

def numpy_function(
    theirs: Callable[..., Any], *deciding: str, added: Iterable[str] = ...
) -> Callable[[_Version], _Version]: ...
