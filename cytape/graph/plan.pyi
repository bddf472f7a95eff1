from collections.abc import Sequence

from numpy.typing import ArrayLike

from cytape.graph.code import Code
from cytape.graph.subgraph import Subgraph
from cytape.graph.trace_events import RunTrace
from cytape.tensor.tensor import Tensor

class Plan:
    def __init__(self, subgraph: Subgraph) -> None: ...
    @property
    def code(self) -> Code: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def n_instructions(self) -> int: ...
    @property
    def n_calls(self) -> int: ...
    def run(
        self, values: Sequence[Tensor | ArrayLike], trace: RunTrace | None = None
    ) -> list[Tensor]: ...
