from collections.abc import Callable, Sequence
from typing import Any

from cytape.ops.shared.reachable import Reachable

def call_traced(
    graph: Any, f: Callable, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
) -> Any: ...

class Draws(Reachable):
    def streams(self) -> list[Any]: ...
    def may_reach(self, generator: Any) -> bool: ...
