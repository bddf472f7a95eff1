"""``x.at[index]``: updates that return new tensors, as in JAX."""

import numpy as np

from cytape.ops.cumulative import prod
from cytape.ops.indexing import getitem
from cytape.ops.reductions import max as max_of
from cytape.ops.reductions import min as min_of
from cytape.ops.updates.part_updates import accumulate_into, add_into, as_cast, set_part
from cytape.tensor import convert_to_tensor

__all__ = ["At"]


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


class At:
    """The object ``x.at``, whose items ``x.at[index]`` are parts of a tensor.

    Parameters
    ----------
    tensor : Tensor or Variable
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor):
        self._tensor = tensor

    def __getitem__(self, index):
        return Part(self._tensor, index)


class Part:
    """A part of a tensor; each method returns a new tensor with the part updated.

    The index is any that NumPy accepts. If it selects an element several times, all values count,
    in order, as in ``numpy.ufunc.at``; of values that are set, the last one. Values are broadcast
    to the part, and cast to the tensor's dtype by NumPy's rules.

    Examples
    --------
    >>> import cytape
    >>> x = cytape.constant([1.0, 2.0, 3.0])
    >>> x.at[0].set(5.0), x.at[[1, 1]].add(1.0), x.at[1:].multiply(2.0)
    (Tensor([5., 2., 3.]), Tensor([1., 4., 3.]), Tensor([1., 4., 6.]))
    >>> cytape.grad(lambda v: np.sum(x.at[1].set(v) ** 2))(4.0)
    np.float64(8.0)
    """

    __slots__ = ("_index", "_tensor")

    def __init__(self, tensor, index):
        self._tensor, self._index = tensor, index

    def get(self):
        """Return the part, ``x[index]``."""
        return getitem(self._tensor, self._index)

    def set(self, values):
        """Return the tensor with other values in the part."""
        return set_part(convert_to_tensor(self._tensor), self._index, values)

    def add(self, values):
        """Return the tensor with values added to the part."""
        return add_into(self._checked(np.add, values), self._index, values)

    def subtract(self, values):
        """Return the tensor with values subtracted from the part."""
        tensor = self._checked(np.subtract, values)
        return add_into(tensor, self._index, np.negative(as_cast(values, tensor.dtype)))

    def multiply(self, values):
        """Return the tensor with the part multiplied by values."""
        return self._accumulated(np.multiply, values, lambda dtype: 1, prod)

    def divide(self, values):
        """Return the tensor with the part divided by values."""
        return self._accumulated(np.divide, values, None, None)

    def power(self, values):
        """Return the tensor with the part raised to the power of values."""
        return self._accumulated(np.power, values, None, None)

    def min(self, values):
        """Return the tensor with values in the part where they are less."""
        return self._accumulated(np.minimum, values, _highest, min_of)

    def max(self, values):
        """Return the tensor with values in the part where they are greater."""
        return self._accumulated(np.maximum, values, _lowest, max_of)

    def _checked(self, ufunc, values):
        """Return the tensor, or raise if NumPy would not cast a result to its dtype."""
        tensor = convert_to_tensor(self._tensor)
        values = values if isinstance(values, (int, float, complex)) else (
            convert_to_tensor(values).dtype)
        dtype = np.result_type(tensor.dtype, values) if ufunc is not np.divide else (
            ufunc.resolve_dtypes((tensor.dtype, np.result_type(tensor.dtype, values), None))[2])
        if not np.can_cast(dtype, tensor.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' output from {dtype} to {tensor.dtype} with "
                "casting rule 'same_kind': convert the tensor by astype first")
        return tensor

    def _accumulated(self, ufunc, values, neutral, reduce):
        tensor = self._checked(ufunc, values)
        return accumulate_into(tensor, self._index, values, ufunc, neutral, reduce)
