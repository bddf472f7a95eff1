from typing import Any, final

from cytape.ops.engine.general_op import GeneralOp

@final
class IndexOp(GeneralOp):
    def call(self, x: Any, index: Any) -> Any: ...

def index_in_batch(index: Any) -> tuple[Any, ...] | None: ...
def static(index: Any) -> Any: ...
