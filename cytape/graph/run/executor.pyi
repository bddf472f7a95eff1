from typing import Any

from cytape.ops.engine.general_op import GeneralOp

class ValueOp(GeneralOp):
    def run_values(self, values: list[Any], attrs: dict[str, Any]) -> list[Any]: ...
