"""Broadcasting functions: `broadcast_to`, `broadcast_arrays`."""

from functools import lru_cache
from typing import Any

import numpy as np

from cytape.ops.adjoints.conform import broadcast_outline_op, broadcast_to_op
from cytape.ops.calls.operands import is_tensor, tensors_if_any
from cytape.ops.shapes import shape_rules
from cytape.ops.shaping import holds_symbol, shape_of_any
from cytape.tensor import Tensor
from cytape.tensor.values.spec import UnknownShape

__all__ = ["broadcast_arrays", "broadcast_to"]

_common_shape = lru_cache(np.broadcast_shapes)


def broadcast_to(array, shape, subok=False) -> Any:
    """Broadcast to a shape, as `numpy.broadcast_to`.

    Examples
    --------
    >>> import cytape
    >>> np.broadcast_to(cytape.constant([1.0, 2.0]), (2, 2)).numpy()
    array([[1., 2.],
           [1., 2.]])
    """
    if subok and not is_tensor(array):
        return np.broadcast_to(array, shape, subok=True)
    if type(shape) is UnknownShape and is_tensor(array):
        return broadcast_to_op(array, shape.tensor())
    if holds_symbol(shape):
        raise shape_rules.no_number(shape)
    return broadcast_to_op(array, shape=(None,) if shape is None else shape)  # None is of the op


def broadcast_arrays(*args, subok=False) -> Any:
    """Broadcast against each other, as `numpy.broadcast_arrays`.

    Examples
    --------
    >>> import cytape
    >>> [a.shape for a in np.broadcast_arrays(cytape.constant([[1.0], [2.0]]), 3.0)]
    [(2, 1), (2, 1)]
    """
    if not all([type(a) is Tensor for a in args]):
        if not any(map(is_tensor, args)):
            return np.broadcast_arrays(*args, subok=subok)
        others = [not is_tensor(a) and np.asarray(a).dtype.hasobject for a in args]
        if any(others):  # as matplotlib's None among numbers
            common = _common_shape(*map(np.shape, args))
            return tuple([(np.broadcast_to if other else broadcast_to)(a, common)
                          for a, other in zip(args, others, strict=True)])
        args = tensors_if_any(args)
    shapes = [a.shape or shape_of_any(a) for a in args]
    if any([None in shape for shape in shapes]):
        if len({id(a.spec.extents) for a in args}) == 1:
            return tuple(args)
        outline = broadcast_outline_op(*args)
        return tuple(broadcast_to_op(a, outline) for a in args)
    common = _common_shape(*shapes)
    if all([shape == common for shape in shapes]):
        return tuple(args)  # as NumPy does, so that they stay writable
    return tuple([broadcast_to_op(a, shape=common) for a in args])
