"""Forms of a TensorArray: a list of elements, or the rows of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from cytape.graph.control.row_ops import (
    blank_like_op,
    blank_op,
    capacity_op,
    checked_op,
    confirmed_op,
    mark_op,
    resized_op,
    taken_op,
    update_rows_op,
)
from cytape.graph.nested.row_program import out_of_range, written_before
from cytape.ops.adjoints.conform import broadcast_to
from cytape.ops.creation import constant_op
from cytape.ops.joining import stack
from cytape.ops.shaping import size
from cytape.tensor.making import constant, convert_to_tensor
from cytape.tensor.tensor import Tensor

__all__ = [
    "Elements",
    "Rows",
    "Shape",
    "as_index",
    "as_leaf",
    "constant_of",
    "has_value",
    "is_known",
    "merged",
    "numbers",
]

Shape = tuple[int | None, ...] | None


def is_known(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Return whether a shape is completely known.

    Examples
    --------
    >>> is_known((2, 3)), is_known((2, None)), is_known(None)
    (True, False, False)
    """
    return shape is not None and None not in shape


def has_value(index: Any) -> bool:
    """Return whether an index, or several, have values."""
    if isinstance(index, (list, tuple)):
        return all(map(has_value, index))
    return not isinstance(index, Tensor) or index.graph is None


def constant_of(x: Any) -> Any:
    """Return the value of a constant of a graph or of outer graphs; other objects unchanged."""
    while type(x) is Tensor and x.graph is not None:
        graph: Any = x.graph
        symbol = graph.symbol_of(x)
        node = graph.node_of(symbol)
        if graph.ops[node] is constant_op:
            return graph.attrs[node]["value"]
        outer = {inner: outer for outer, inner in getattr(graph, "captures", ())}.get(symbol)
        if type(outer) is not Tensor:
            break
        x = outer
    return x


def numbers(index: Any) -> list[int]:
    """Return the values of an index, or of several.

    Examples
    --------
    >>> numbers(np.int32(3)), numbers([1, 2]), numbers([])
    ([3], [1, 2], [])
    """
    array = index.numpy() if isinstance(index, Tensor) else np.asarray(index)
    _check_index(array.dtype, array.size)
    return array.reshape(-1).tolist()


def as_index(index: Any) -> Tensor:
    """Return an index, or several, as a tensor of the common dtype."""
    if has_value(index) and not isinstance(index, Tensor):
        shape = np.shape(index)
        return convert_to_tensor(np.asarray(numbers(index), np.int64).reshape(shape))
    tensor = convert_to_tensor(index)
    _check_index(tensor.dtype)
    return tensor if tensor.dtype == np.int64 else tensor.astype(np.int64)


def as_leaf(x: Any) -> Any:
    """Return an array as a tensor, other objects unchanged."""
    return convert_to_tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x


def _check_index(dtype: np.dtype, size: int | None = None) -> None:
    if dtype.kind not in "iu" and size != 0:  # NumPy's dtype of an empty list is float
        raise TypeError(f"an index of a TensorArray must be an integer, got {dtype}")


def merged(shape: Shape, other: Sequence[int | None] | None) -> Shape:
    """Return the combination of two compatible shapes.

    Examples
    --------
    >>> merged((2, None), (None, 3)), merged(None, (2,))
    ((2, 3), (2,))
    """
    if shape is None or other is None:
        return shape if other is None else tuple(other)
    return tuple([m if n is None else n for n, m in zip(shape, other, strict=True)])


class _History:
    """All elements written to an array and to arrays derived from it, by index.

    Each is stored with the number of its write.
    """

    __slots__ = ("by_index", "n_writes")

    def __init__(self, by_index: dict[int, tuple[int, Tensor]], n_writes: int) -> None:
        self.by_index, self.n_writes = by_index, n_writes


class Elements:
    """Elements as they were written: those of a history up to some write.

    The newest array appends to the history, older ones to a copy, so the time of a write does not
    depend on the size.

    Parameters
    ----------
    size : int
    by_index : dict of int to Tensor, optional

    Attributes
    ----------
    size, n_writes : int

    Examples
    --------
    >>> import cytape
    >>> none = Elements(2)
    >>> one = none.with_written([0], [cytape.constant(1.0)])
    >>> other = none.with_written([0], [cytape.constant(2.0)])
    >>> none.find(0), one.find(0), other.find(0), other.find(1)
    (None, Tensor(1.), Tensor(2.), None)
    """

    __slots__ = ("size", "n_writes", "_history")

    def __init__(self, size: int, by_index: dict[int, Tensor] | None = None) -> None:
        numbered = {i: (0, x) for i, x in (by_index or {}).items()}
        self.size, self.n_writes = size, 1 if numbered else 0
        self._history = _History(numbered, self.n_writes)

    def by_index(self) -> dict[int, Tensor]:
        """Return all elements that have been written."""
        found = self._history.by_index.items()
        return {i: x for i, (number, x) in found if number < self.n_writes}

    @property
    def parts(self) -> list[Tensor]:
        """The tensors that reads use: the elements themselves."""
        elements = self.by_index()
        return [elements[i] for i in sorted(elements)]

    def with_parts(self, parts: Sequence[Any]) -> Elements:
        """Return other tensors, say gradients, as elements; None for those not written."""
        return Elements(self.size, {
            i: convert_to_tensor(x)
            for i, x in zip(sorted(self.by_index()), parts, strict=True) if x is not None})

    def stacked(
        self, n: int, zeros: Callable[[int], Tensor]
    ) -> tuple[Tensor | None, np.ndarray]:
        """Return n rows (None if no element is written) and the mask of written ones.

        Parameters
        ----------
        n : int
        zeros : callable
            Returns zeros for the element of an index.
        """
        elements = self.by_index()
        places = sorted(elements)
        written = np.zeros(n, bool)
        written[places] = True
        if not places:
            return None, written
        rows = stack([elements[i] for i in places])
        if len(places) == n:
            return rows, written
        other, n_rows = zeros(int(np.argmin(written))), np.asarray(n)
        blank = (broadcast_to(constant(0, other.dtype), (n, *other.shape))
                 if is_known(other.shape) else blank_like_op(other, n_rows))
        return update_rows_op(blank, rows, np.asarray(places), n_rows, axis=0), written

    def find(self, index: int) -> Tensor | None:
        """Return an element, None if it was not written."""
        if not 0 <= index < self.size:
            raise out_of_range(index, self.size)
        number, element = self._history.by_index.get(index, (self.n_writes, None))
        return element if number < self.n_writes else None

    def with_written(
        self, places: list[int], values: list[Tensor], grows: bool = False
    ) -> Elements:
        """Return these elements with others appended."""
        size = max([self.size, *[place + 1 for place in places]]) if grows else self.size
        after = Elements(size)
        history = self._history
        if history.n_writes != self.n_writes:
            history = _History({i: (0, x) for i, x in self.by_index().items()}, self.n_writes)
        new: set[int] = set()
        for place in places:
            if not 0 <= place < size:
                raise out_of_range(place, size)
            if place in history.by_index or place in new:
                raise written_before(place)
            new.add(place)
        for place, value in zip(places, values, strict=True):
            history.by_index[place] = (self.n_writes, value)
        after.n_writes = history.n_writes = self.n_writes + 1
        after._history = history
        return after


class Rows:
    """All elements as one tensor.

    Parameters
    ----------
    tensor : Tensor or None
        None as long as the shape of elements is not known.
    written : Tensor
        Boolean, one for each row there is room for.
    size : Tensor
        The number of elements.
    grows : bool
        Whether there may be room for more.
    """

    __slots__ = ("tensor", "written", "size", "grows")

    def __init__(self, tensor: Any, written: Any, size: Any, grows: bool) -> None:
        self.tensor, self.written, self.size, self.grows = tensor, written, size, grows

    @property
    def n_rows(self) -> Any:
        """The number of rows with room."""
        (n,) = self.written.shape
        if n is not None:
            return np.asarray(n, np.int64)
        return capacity_op(self.size) if self.grows else self.size

    @property
    def leaves(self) -> list[Any]:
        """The tensors of this form."""
        return [self.tensor, self.written, self.size]

    @property
    def parts(self) -> list[Any]:
        """The tensor that reads of elements use."""
        return [] if self.tensor is None else [self.tensor]

    def with_parts(self, parts: Sequence[Any]) -> Rows:
        """Return rows of another tensor, say a gradient."""
        return Rows(convert_to_tensor(*parts), self.written, self.size, self.grows)

    def grown_to(self, size: Any) -> Rows:
        """Return rows with room for a number of elements, for a growing array."""
        ns = self.n_rows, capacity_op(size)
        tensor = None if self.tensor is None else resized_op(self.tensor, *ns, axis=0)
        return Rows(tensor, resized_op(self.written, *ns, axis=0), size, True)

    def blank(self, shape: Shape, dtype: np.dtype) -> Rows:
        """Return the same number of rows for elements of a shape, all unwritten."""
        tensor = convert_to_tensor(blank_op(self.n_rows, shape=shape, dtype=dtype))
        return Rows(tensor, self.written, self.size, self.grows)

    def with_written(self, index: Tensor, values: Tensor, shape: Shape) -> Rows:
        """Return rows with one or several of them written."""
        rows = self
        if rows.grows:
            rows = rows.grown_to(np.maximum(rows.size, np.max(index) + 1))
        if rows.tensor is None and is_known(shape):
            rows = rows.blank(shape, values.dtype)
        tensor = rows.tensor
        if tensor is None:
            element = values if index.shape == () else values[0]
            tensor = convert_to_tensor(blank_like_op(element, rows.n_rows))
        written = mark_op(rows.written, index)  # first, since its errors are more specific
        tensor = update_rows_op(tensor, values, index, rows.n_rows, axis=0)
        return Rows(tensor, written, rows.size, self.grows)

    def read(self, index: Tensor) -> Tensor:
        """Return one element or several."""
        found = taken_op(self.tensor, checked_op(index, self.size), self.n_rows, axis=0)
        return confirmed_op(found, self.written)

    def all(self) -> Tensor:
        """Return all elements."""
        tensor = confirmed_op(self.tensor, self.written)
        return resized_op(tensor, self.n_rows, self.size, axis=0) if self.grows else tensor


def with_row_in_graph(x: Tensor, row: Tensor, number: Any, axis: int) -> Tensor:
    """Return an array with one row replaced, whose number is known only at run time."""
    index = as_index(number)
    n_rows = x.shape[axis]
    if n_rows is None:
        n_rows = size(x, axis)
    return update_rows_op(x, row, index, convert_to_tensor(n_rows), axis=axis)
