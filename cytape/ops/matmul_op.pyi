from typing import final

from cytape.ops.general_op import GeneralOp

@final
class MatMulOp(GeneralOp): ...
