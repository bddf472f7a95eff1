from typing import Any, final

from cytape.ops.general_op import GeneralOp

@final
class IndexOp(GeneralOp): ...

def static(index: Any) -> Any: ...
