from typing import Any, final, overload

from cytape.ops.engine.partials_op import PartialsOp
from cytape.tensor.tensor import Tensor

@final
class ElementwiseOp(PartialsOp):
    @overload
    def __call__(self, x: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, x: Any, y: Tensor, /, *inputs: Any, **arguments: Any) -> Tensor: ...
    @overload
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
    def by_numpy(self, *operands: Any) -> Any: ...
