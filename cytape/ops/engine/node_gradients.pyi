from collections.abc import Callable
from typing import Any

from cytape.ops.engine.dispatch import Op
from cytape.ops.engine.symbolic import SymbolicGraph

def gradients_of_node(
    graph: SymbolicGraph,
    node: int,
    output_gradients: list[Any],
    needed: list[bool],
    rule: Callable[..., Any] | None = None,
    outputs_of: int = -1,
) -> list[Any]: ...
def takes_none(op: Op, position: int) -> bool: ...
