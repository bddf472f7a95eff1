from typing import Any

from cytape.tensor import Tensor

def layout(tensor: Tensor) -> Any: ...
