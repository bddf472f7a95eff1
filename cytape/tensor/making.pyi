from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from cytape.tensor.tensor import Tensor

def tensor_of_copy(array: ArrayLike) -> Tensor: ...
def constant(
    value: ArrayLike | Tensor, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor: ...
def convert_to_tensor(value: Any, dtype: DTypeLike | None = None) -> Tensor: ...
def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: bool | None = None
) -> Tensor: ...
