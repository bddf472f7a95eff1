"""Tensors and variables, the handles that users hold; structures of tensors; operators."""

from cytape.tensor.indexed_slices import IndexedSlices
from cytape.tensor.making import constant, convert_to_tensor, from_dlpack
from cytape.tensor.structures import register_structure
from cytape.tensor.tensor import Tensor
from cytape.tensor.values.spec import Spec
from cytape.tensor.variable import Variable

__all__ = [
    "IndexedSlices",
    "Spec",
    "Tensor",
    "Variable",
    "constant",
    "convert_to_tensor",
    "from_dlpack",
    "register_structure",
]


def __dir__() -> list[str]:
    return __all__
