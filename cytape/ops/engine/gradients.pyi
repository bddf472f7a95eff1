from collections.abc import Callable
from typing import Any, final

from cytape.core.vspace import VSpace
from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.state import Recorder
from cytape.tensor.tensor import Tensor

@final
class TensorVSpace(VSpace): ...

tensor_vspace: TensorVSpace

def compute_gradients(
    recorder: Recorder,
    targets: list[Tensor],
    sources: list[Tensor],
    seeds: list[Tensor | IndexedSlices | None] | None = None,
    keep: bool = False,
) -> list[Any]: ...
def install_aggregate(function: Callable[[list[Any]], Any]) -> None: ...
