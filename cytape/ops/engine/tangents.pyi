from cytape.tensor.state import TangentRecorder
from cytape.tensor.tensor import Tensor

def fetch(recorder: TangentRecorder, id: int) -> Tensor | None: ...
