from collections.abc import Iterable, Sequence
from typing import Any

from cytape.ops.engine.symbolic import SymbolicGraph
from cytape.tensor.tensor import Tensor

def symbolic_gradients(
    graph: SymbolicGraph,
    targets: Sequence[int],
    sources: Sequence[int],
    seeds: Sequence[Tensor | None],
) -> list[Any]: ...
def symbolic_tangents(
    graph: SymbolicGraph,
    sources: Sequence[int],
    tangents: Sequence[Tensor | None],
    targets: Sequence[int],
    nodes: Iterable[int] | None = None,
    use_batch: bool = False,
) -> list[Any]: ...
def inline(
    graph: SymbolicGraph,
    symbols: dict[int, Tensor],
    into: SymbolicGraph,
    some: Iterable[int] | None = None,
    afresh: bool = False,
) -> None: ...
def build_again(
    graph: SymbolicGraph,
    n: int,
    inputs: list[Tensor],
    into: SymbolicGraph,
    context: int,
    afresh: bool = False,
) -> tuple[int, Sequence[Tensor]]: ...
def context_within(into: Any, present: int, inner: Any) -> int: ...
def kept_by(graph: SymbolicGraph, body: type) -> tuple[int, list[Any]]: ...
