"""Tensors and variables, the handles that users hold; structures of tensors; operators."""

import sys
from types import ModuleType
from typing import Any, NoReturn

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


class _Module(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Advise programs that call ``tensor``, a function of other libraries."""
        raise TypeError("cytape.tensor is a module: make tensors by cytape.constant(x), and "
                        "parameters, which tapes watch, by cytape.Variable(x)")


sys.modules[__name__].__class__ = _Module
