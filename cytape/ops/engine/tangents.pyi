from typing import Any

from cytape.tensor.state import TangentRecorder
from cytape.tensor.tensor import Tensor

def note_call(inputs: list[Tensor], outputs: list[Tensor]) -> None: ...
def fetch(recorder: TangentRecorder, id: int) -> Tensor | None: ...
def follow_call(
    recorder: TangentRecorder,
    op: Any,
    inputs: list[Tensor],
    outputs: list[Tensor],
    attrs: dict[str, Any],
) -> None: ...
