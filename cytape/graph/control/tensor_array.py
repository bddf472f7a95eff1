"""TensorArray: elements that are written and read one by one, in programs and in loops of graphs.

An array has one of two forms. A *list* has the elements as they were written, which adds nothing to
derivatives; it is the form while all indices are numbers. *Rows* are one tensor of all elements and
a mask of the written ones, perhaps symbolic; it is the form of loop variables, arguments and
results.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cytape.graph.control.element_stores import (
    Elements,
    Rows,
    Shape,
    as_index,
    as_leaf,
    constant_of,
    has_value,
    is_known,
    merged,
    numbers,
)
from cytape.graph.control.function_checks import as_tensor
from cytape.graph.control.row_ops import blank_op, capacity, capacity_op, positions_op
from cytape.ops.adjoints.conform import fill_like
from cytape.ops.adjoints.extent_checks import ensure_shape
from cytape.ops.adjoints.identity_groups import may_agree
from cytape.ops.joining import concatenate, split, stack, unstack
from cytape.ops.shaping import reshape
from cytape.tensor import nest
from cytape.tensor.making import constant, convert_to_tensor
from cytape.tensor.recording.state import current_graph
from cytape.tensor.structures import register_structure
from cytape.tensor.tensor import Tensor, another, tensor_of

__all__ = ["TensorArray"]


class TensorArray:
    """An array of tensors of one dtype, which are written and read by index, each written once.

    Every write returns a new array and does not change the old one; writes to the newest array take
    constant time. An array can be a loop variable, an argument or a result of `function`, and a
    result of `cond`; all its methods are differentiable.

    Parameters
    ----------
    dtype : dtype
    size : int or Tensor, optional
        0 by default.
    dynamic_size : bool, optional
        Whether writing beyond the end lets it grow.
    clear_after_read : bool, optional
        Without effect, as in TensorFlow's graphs: an element can be read again.
    infer_shape : bool, optional
        Whether all elements must have one shape, that of the first. They must in any case in graphs
        with indices that are tensors.
    element_shape : tuple, optional
        The shape of all elements; None for an extent that is not known.
    name : str, optional
        Without effect.

    Attributes
    ----------
    dtype : numpy.dtype
    dynamic_size : bool
    element_shape : tuple or None
        None if nothing is known of it.

    Raises
    ------
    TypeError
        If a written element has another dtype.
    ValueError
        If it has another shape, or an index is written a second time; also where an element is read
        that was not written, unless the shape of elements is known: then it is zeros.
    IndexError
        If an index is negative, or beyond the end. With indices that are tensors of a graph this
        and a second write are errors when the graph runs.

    Examples
    --------
    >>> import cytape
    >>> array = cytape.TensorArray("float64", size=3)
    >>> for i in range(3):
    ...     array = array.write(i, [1.0 * i, 2.0])
    >>> array.read(1).numpy(), array.stack().shape
    (array([1., 2.]), (3, 2))

    In a loop of a graph:

    >>> @cytape.function
    ... def powers(x):
    ...     start = 0, cytape.constant(1.0), cytape.TensorArray("float64", size=4)
    ...     _, _, found = cytape.while_loop(
    ...         lambda i, p, found: i < 4, lambda i, p, found: (i + 1, p * x, found.write(i, p)),
    ...         start)
    ...     return found.stack()
    >>> powers(cytape.constant(2.0)).numpy()
    array([1., 2., 4., 8.])
    >>> cytape.jacfwd(powers)(2.0)
    array([ 0.,  1.,  4., 12.])
    """

    __slots__ = (
        "dtype", "dynamic_size", "element_shape", "_held", "_infer_shape", "_unused", "__weakref__")

    def __init__(
        self,
        dtype: DTypeLike,
        size: Any = None,
        dynamic_size: bool = False,
        clear_after_read: bool | None = None,
        *,
        infer_shape: bool = True,
        element_shape: Sequence[int | None] | None = None,
        name: str | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self.element_shape: Shape = None if element_shape is None else tuple(element_shape)
        self._infer_shape, self._unused = bool(infer_shape), False
        self._held: Elements | Rows
        if isinstance(size, Tensor) and size.graph is not None:
            self._held = self._blank_rows(size)
            return
        n = 0 if size is None else operator.index(size)
        if n < 0:
            raise ValueError(f"the size of a TensorArray must not be negative, got {n}")
        self._held = Elements(n)

    def __del__(self) -> None:
        if getattr(self, "_unused", False) and not sys.is_finalizing():
            warnings.warn(
                "a write to a TensorArray is lost: write, scatter, split and unstack return a new "
                "array, which is not used here, and leave the old one as it was. Write array = "
                "array.write(index, value)", stacklevel=2)

    def _blank_rows(self, size: Tensor) -> Rows:
        """Return rows, their number a tensor that is known at run time."""
        size = size if size.dtype == np.int64 else size.astype(np.int64)
        n_rows = capacity_op(size) if self.dynamic_size else size
        written = blank_op(n_rows, shape=(), dtype=np.dtype(bool))
        rows = Rows(None, written, size, self.dynamic_size)
        return rows.blank(self.element_shape, self.dtype) if is_known(self.element_shape) else rows

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.use()
        raise TypeError("a TensorArray is not an array: call its method stack()")

    def __repr__(self) -> str:
        form = self._form
        if isinstance(form, Elements):
            size: Any = form.size
        else:
            size = None if form.grows else form.written.shape[0]
        return f"TensorArray({self.dtype}, size={size}, element_shape={self.element_shape})"

    # ---- writing

    def write(self, index: Any, value: Any) -> TensorArray:
        """Return an array with one more element.

        Parameters
        ----------
        index : int or Tensor
            Not yet written.
        value : array_like

        Examples
        --------
        >>> import cytape
        >>> start = cytape.TensorArray("float64", size=2, element_shape=())
        >>> array = start.write(0, 3.0)
        >>> float(array.read(0)), float(start.read(0))
        (3.0, 0.0)
        """
        value = another(as_tensor(value, self.dtype))
        self._check(value, value.shape)
        return self._written(index, value, value.shape, lambda: [value])

    def unstack(self, value: Any) -> TensorArray:
        """Return an array with the slices of a tensor along its first axis as elements 0, 1, ...

        Examples
        --------
        >>> import cytape
        >>> float(cytape.TensorArray("float64", size=2).unstack([1.0, 2.0]).read(1))
        2.0
        """
        value = as_tensor(value, self.dtype)
        _require_axis("what is unstacked", value)
        if value.shape is not None and value.shape[0] is not None:
            return self.scatter(np.arange(value.shape[0]), value)
        return self.scatter(positions_op(value), value)

    def scatter(self, indices: Any, value: Any) -> TensorArray:
        """Return an array with the slices of a tensor along its first axis as further elements.

        Examples
        --------
        >>> import cytape
        >>> array = cytape.TensorArray("float64", size=3, element_shape=())
        >>> array.scatter([2, 0], [1.0, 2.0]).stack().numpy()
        array([2., 0., 1.])
        """
        value = as_tensor(value, self.dtype)
        _require_axis("what is scattered", value)
        self._check(value, value.shape and value.shape[1:])
        if value.shape is not None and has_value(indices):
            n = len(numbers(indices))
            value = ensure_shape(
                value, (n, *value.shape[1:]),
                f"scatter needs one slice for each index, got {{}} slices and {n} indices")
        return self._written(
            indices, value, value.shape and value.shape[1:], lambda: list(unstack(value)))

    def split(self, value: Any, lengths: Any) -> TensorArray:
        """Return an array with consecutive parts of a tensor, of given lengths, as elements.

        Examples
        --------
        >>> import cytape
        >>> array = cytape.TensorArray("float64", size=2, infer_shape=False)
        >>> array = array.split([1.0, 2.0, 3.0], [1, 2])
        >>> array.read(1).numpy()
        array([2., 3.])
        """
        value = as_tensor(value, self.dtype)
        _require_axis("what is split", value)
        lengths = np.asarray(constant_of(lengths))
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" and lengths.size:
            raise TypeError(f"lengths must be integers along one axis, got {lengths!r}")
        n = int(lengths.sum())
        value = ensure_shape(
            value, (n, *value.shape[1:]),
            f"the lengths sum to {n}, but the split tensor has {{}} slices")
        array = self
        for i, part in enumerate(split(value, np.cumsum(lengths)[:-1]) if lengths.size else ()):
            array = array.write(i, part)
        return array

    # ---- reading

    def read(self, index: Any) -> Tensor:
        """Return an element; zeros if it was not written, but the shape of elements is known.

        Examples
        --------
        >>> import cytape
        >>> array = cytape.TensorArray("float64", size=2).write(0, [1.0, 2.0])
        >>> array.read(1).numpy()
        array([0., 0.])
        """
        if has_value(index) and isinstance(self._form, Elements):
            return self._element(*numbers(index))
        return self._in_rows().read(as_index(index))

    def gather(self, indices: Any) -> Tensor:
        """Return several elements as one tensor.

        Examples
        --------
        >>> import cytape
        >>> array = cytape.TensorArray("float64", size=3).unstack([1.0, 2.0, 3.0])
        >>> array.gather([2, 2, 0]).numpy()
        array([3., 3., 1.])
        """
        if has_value(indices) and isinstance(self._form, Elements) and (places := numbers(indices)):
            order = {place: n for n, place in enumerate(dict.fromkeys(places))}  # each is read once
            rows = stack(list(map(self._element, order)))
            return rows if len(order) == len(places) else rows[[order[i] for i in places]]
        return self._in_rows().read(as_index(indices))

    def stack(self) -> Tensor:
        """Return all elements as one tensor, along a new first axis.

        Examples
        --------
        >>> import cytape
        >>> cytape.TensorArray("float64", size=2).write(1, 2.0).write(0, 3.0).stack().numpy()
        array([3., 2.])
        """
        form = self._form
        if isinstance(form, Elements) and form.n_writes and form.size:
            return stack(list(map(self._element, range(form.size))))
        return self._in_rows().all()

    def concat(self) -> Tensor:
        """Return all elements as one tensor, joined along their first axis.

        Examples
        --------
        >>> import cytape
        >>> array = cytape.TensorArray("float64", size=2).unstack([[1.0, 2.0], [3.0, 4.0]])
        >>> array.concat().numpy()
        array([1., 2., 3., 4.])
        """
        if self.use().element_shape == ():
            raise ValueError("concat joins along the first axis of elements, got scalars")
        form = self._form
        if isinstance(form, Elements) and form.n_writes and form.size:
            return concatenate(list(map(self._element, range(form.size))))
        tensor = self.stack()
        shape = tensor.shape
        count = shape[0] * shape[1] if None not in shape[:2] else -1
        return reshape(tensor, (count, *shape[2:]))

    def size(self) -> Tensor:
        """Return the number of elements, including those not written.

        Examples
        --------
        >>> import cytape
        >>> int(cytape.TensorArray("float64", dynamic_size=True).write(4, 1.0).size())
        5
        """
        form = self._form
        return (constant if isinstance(form, Elements) else convert_to_tensor)(form.size)

    def identity(self) -> TensorArray:
        """Return an array with the same elements.

        Examples
        --------
        >>> import cytape
        >>> float(cytape.TensorArray("float64", size=1).write(0, 2.0).identity().read(0))
        2.0
        """
        return self._like(self._form, self.element_shape)

    @property
    def graph(self) -> Any:
        """The graph of its symbolic tensors, None if all have values."""
        form = self._form
        tensors = form.by_index().values() if isinstance(form, Elements) else form.leaves
        return next((x.graph for x in tensors if x is not None and x.graph is not None), None)

    # ---- forms

    @property
    def _form(self) -> Elements | Rows:
        return self.use()._held

    def use(self) -> TensorArray:
        """Mark the array as used, even if no element is read."""
        self._unused = False
        return self

    def _like(
        self, form: Elements | Rows, element_shape: Shape, is_new: bool = False
    ) -> TensorArray:
        array = object.__new__(TensorArray)
        array.dtype, array.dynamic_size = self.dtype, self.dynamic_size
        array._infer_shape, array.element_shape = self._infer_shape, element_shape
        array._held, array._unused = form, is_new
        return array

    def _of_rows(self, rows: Rows, is_new: bool = False) -> TensorArray:
        shape = getattr(rows.tensor, "shape", None)
        return self._like(rows, self.element_shape if shape is None else tuple(shape[1:]), is_new)

    def _as_elements(self) -> Elements | None:
        """Return the elements as a list, if they have values and no graph is being built."""
        form = self._form
        if isinstance(form, Elements):
            return form
        if self.graph is not None or current_graph() is not None:
            return None
        written = np.flatnonzero(form.written.numpy()).tolist()
        elements = unstack(form.tensor) if written else ()  # one op for any number of elements
        return Elements(int(self.size()), {i: elements[i] for i in written})

    def _element(self, index: int) -> Tensor:
        assert isinstance(self._form, Elements)
        element = self._form.find(index)
        return self._zeros(index) if element is None else element

    def _zeros(self, index: int) -> Tensor:
        form, shape = self._form, self.element_shape
        if is_known(shape):
            return tensor_of(np.zeros(shape, self.dtype))
        if isinstance(form, Elements) and self._infer_shape:
            for element in form.by_index().values():
                return fill_like(element, 0)
        raise ValueError(
            f"TensorArray: index {index} was not written, and the shape of the zeros to read there "
            "is not known: write it, or pass element_shape"
        )

    def _rows(self, leaves: Sequence[Any] | None = None) -> Rows:
        tensor, written, size = map(as_leaf, self.leaves() if leaves is None else leaves)
        return Rows(tensor, written, size, self.dynamic_size)

    def _in_rows(self) -> Rows:
        """Return the rows, of elements of a known shape."""
        rows = self._rows()
        if rows.tensor is None:
            raise ValueError(
                "TensorArray: nothing was written, and the shape of elements is not known: pass "
                "element_shape"
            )
        return rows

    def leaves(self) -> list[Any]:
        """Return its tensors: the rows, the mask of written ones, and the size.

        Examples
        --------
        >>> import cytape
        >>> cytape.TensorArray("float64", size=2).write(1, 3.0).leaves()
        [Tensor([0., 3.]), Tensor([False,  True]), Tensor(2, dtype=int64)]
        """
        rows = self._form
        if isinstance(rows, Elements):
            n = capacity(rows.size) if self.dynamic_size else rows.size
            tensor, written = rows.stacked(n, self._zeros)
            if tensor is None and is_known(shape := self.element_shape):
                tensor = tensor_of(np.zeros((n, *shape), self.dtype))
            size = tensor_of(np.asarray(rows.size))
            rows = Rows(tensor, tensor_of(written), size, self.dynamic_size)
        if rows.grows and isinstance(rows.size, Tensor) and current_graph() is not None:
            rows = rows.grown_to(rows.size)  # the number of rows may change from here on
        return rows.leaves

    def _check(self, value: Tensor, shape: Any) -> None:
        self.use()
        if value.dtype != self.dtype:
            raise TypeError(
                f"a TensorArray of {self.dtype} takes no {value.dtype}: convert it, say with astype"
            )
        if not may_agree(shape, self.element_shape):
            raise ValueError(
                f"a TensorArray of elements of shape {self.element_shape} does not take one of "
                f"shape {shape}; with infer_shape=False it takes elements of any shape"
            )

    def _written(self, index: Any, values: Tensor, shape: Any, parts: Callable) -> TensorArray:
        elements = self._as_elements() if has_value(index) else None
        if elements is None:
            return self._of_rows(
                self._rows().with_written(as_index(index), values, shape), is_new=True)
        places = numbers(index)
        if not places:
            return self
        after = elements.with_written(places, parts(), self.dynamic_size)
        return self._like(
            after, merged(self.element_shape, shape) if self._infer_shape else self.element_shape,
            is_new=True)

    def told(self, element_shape: Shape) -> TensorArray:
        """Return an array with a more specific shape of elements.

        Examples
        --------
        >>> import cytape
        >>> cytape.TensorArray("float64", size=2).told((3,)).stack().shape
        (2, 3)
        """
        rows = self._form
        if isinstance(rows, Rows) and rows.tensor is None:
            rows = rows.blank(element_shape, self.dtype)
        return self._like(rows, element_shape)

    @property
    def is_open(self) -> bool:
        """Whether the shape of elements is unknown, and no element has been written."""
        form = self._form
        if isinstance(form, Elements):
            return not form.by_index() and not is_known(self.element_shape)
        return form.tensor is None


def _require_axis(what: str, value: Tensor) -> None:
    if value.shape == ():
        raise ValueError(f"{what} must have a first axis, got a scalar")


nest.register(TensorArray, nest.Rules(
    leaves=TensorArray.leaves,
    n_leaves=lambda array: 3,
    with_leaves=lambda array, leaves: array._of_rows(array._rows(leaves)),
    static=lambda array: (
        array.dtype.str, array.dynamic_size, array._infer_shape, array.element_shape),
))
register_structure(
    TensorArray, lambda array: array._form.parts,
    lambda array, parts: array._like(array._form.with_parts(parts), None))
