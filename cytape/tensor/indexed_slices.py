"""Sparse gradients: some slices of a large tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cytape.tensor.values.plain_arrays import plain_array

if TYPE_CHECKING:
    from cytape.tensor.tensor import Tensor

__all__ = ["IndexedSlices"]


class IndexedSlices(NDArrayOperatorsMixin):
    """Slices of a tensor at given positions of its first axis; all other entries are zero.

    The gradient of `gather` with respect to its first argument has this form. An index that
    occurs several times stands for the sum of its slices. Optimizers update the slices only;
    operators and NumPy's ufuncs compute with the dense tensor.

    Parameters
    ----------
    values : Tensor or IndexedSlices
        One slice per index, along the first axis.
    indices : Tensor
        Integers of shape ``(len(values),)``.
    dense_shape : tuple of int, optional
        Shape of the tensor the slices belong to.

    Examples
    --------
    >>> import cytape
    >>> slices = cytape.IndexedSlices(
    ...     cytape.constant([[1.0], [2.0]]), cytape.constant([2, 2]), dense_shape=(3, 1))
    >>> slices.to_tensor().numpy()
    array([[0.],
           [0.],
           [3.]])
    >>> 0.5 * slices
    Tensor([[0. ],
            [0. ],
            [1.5]])
    """

    __slots__ = ("values", "indices", "dense_shape", "__weakref__")

    # Conversion to a dense tensor, by ops of a higher package: cytape.numpy.slots sets it.
    _densify: Any = None

    def __init__(
        self,
        values: Tensor | IndexedSlices,
        indices: Tensor,
        dense_shape: Iterable[int] | None = None,
    ) -> None:
        for given in (values, indices):
            if isinstance(given, np.ndarray):
                plain_array(given)  # raises for masked arrays and similar classes
        self.values = values
        self.indices = indices
        if not (dense_shape is None or isinstance(dense_shape, tuple)):
            dense_shape = tuple(dense_shape)
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the slices."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the dense tensor, None if it is unknown."""
        return self.dense_shape

    def to_tensor(self) -> Tensor:
        """Return the dense tensor; slices of the same index are summed.

        Raises
        ------
        ValueError
            If the dense shape is unknown.

        Examples
        --------
        >>> import cytape
        >>> cytape.IndexedSlices(
        ...     cytape.constant([1.0, 2.0]), cytape.constant([2, 2]), (3,)).to_tensor()
        Tensor([0., 0., 3.])
        """
        return IndexedSlices._densify(self)

    def numpy(self) -> np.ndarray:
        """Return the dense array."""
        return self.to_tensor().numpy()

    __hash__ = object.__hash__  # comparisons are elementwise, as those of tensors

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.to_tensor(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if keywords.get("out", (None,))[0] is inputs[0]:  # x += 1 gives x another object
            del keywords["out"]
        return getattr(ufunc, method)(
            *[x.to_tensor() if isinstance(x, IndexedSlices) else x for x in inputs], **keywords)

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(values={self.values!r}, indices={self.indices!r}, "
            f"dense_shape={self.dense_shape})"
        )
