from collections.abc import Sequence
from typing import Any

from cytape.graph.subgraph import Subgraph
from cytape.tensor.tensor import Tensor

class Executable:
    @property
    def subgraph(self) -> Subgraph: ...
    def __init__(self, subgraph: Subgraph) -> None: ...
    def run(self, values: Sequence[Any], trace: Any = None) -> list[Tensor]: ...
