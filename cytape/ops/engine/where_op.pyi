from typing import final

from cytape.ops.engine.general_op import GeneralOp

@final
class WhereOp(GeneralOp): ...
