from typing import final

from cytape.ops.engine.multilinear_op import MultilinearOp

@final
class MatMulOp(MultilinearOp): ...
