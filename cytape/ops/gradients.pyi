from collections.abc import Callable
from typing import Any, final

from cytape.core.vspace import VSpace

@final
class TensorVSpace(VSpace): ...

tensor_vspace: TensorVSpace

def install_aggregate(function: Callable[[list[Any]], Any]) -> None: ...
