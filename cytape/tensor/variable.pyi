from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import final

from numpy.typing import ArrayLike, DTypeLike

from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.tensor import Tensor

@final
class Variable(Tensor):
    @property
    def name(self) -> str: ...
    @property
    def trainable(self) -> bool: ...
    def __new__(
        cls,
        initial_value: ArrayLike | Tensor | Callable[[], ArrayLike | Tensor],
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> Variable: ...
    def value(self) -> Tensor: ...
    def assign(self, value: ArrayLike | Tensor | IndexedSlices) -> Variable: ...
    def assign_add(self, delta: ArrayLike | Tensor | IndexedSlices) -> Variable: ...
    def assign_sub(self, delta: ArrayLike | Tensor | IndexedSlices) -> Variable: ...

def assignments_refused() -> AbstractContextManager[None]: ...
