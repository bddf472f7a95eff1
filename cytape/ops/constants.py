"""Constant and uninitialised arrays: zeros, ones, full and empty, and their `_like` forms."""

from typing import Any

import numpy as np

import cytape.ops.shapes.known_shapes as known_shapes
from cytape.ops.adjoints.conform import broadcast_batch_to, identity_op, sum_to
from cytape.ops.broadcasting import broadcast_to
from cytape.ops.calls.operands import is_tensor
from cytape.ops.creation import array, copy, in_order
from cytape.ops.engine.op_kinds import nondifferentiable, structural
from cytape.ops.shapes import shape_rules
from cytape.tensor import Tensor, convert_to_tensor
from cytape.tensor.recording.state import anybody_records, current_graph
from cytape.tensor.tensor import tensor_of

__all__ = [
    "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


def _like_in_batch(call):
    shape = call.attrs.get("shape")
    if len(call.inputs) > 1 or shape is not None and call.extent is None:
        return NotImplemented
    return call.again(call.inputs, **{} if shape is None else {
        "shape": (call.extent, *np.atleast_1d(shape).tolist())})


def _constant_like(name, forward, **facts):
    return nondifferentiable(
        name, forward, shape_rule=shape_rules.constant_like, batch=_like_in_batch, **facts)


zeros_like_op = _constant_like("ZerosLike", np.zeros_like, lowering="ZEROS")
ones_like_op = _constant_like("OnesLike", np.ones_like, lowering="ONES")
empty_like_op = _constant_like("EmptyLike", np.empty_like)
full_like_op = _constant_like("FullLike", np.full_like)


def _like(op, a, order, **options):
    result = op(a, order=order, **options)
    return in_order(result, order) if order == "F" and type(result) is Tensor else result


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None) -> Any:
    """Return zeros of the same shape and dtype, as `numpy.zeros_like`.

    Examples
    --------
    >>> import cytape
    >>> np.zeros_like(cytape.constant([1.0, 2.0])).numpy()
    array([0., 0.])
    """
    return _like(zeros_like_op, a, order, dtype=dtype, subok=subok, shape=shape, device=device)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None) -> Any:
    """Return ones of the same shape and dtype, as `numpy.ones_like`.

    Examples
    --------
    >>> import cytape
    >>> np.ones_like(cytape.constant([1.0, 2.0])).numpy()
    array([1., 1.])
    """
    return _like(ones_like_op, a, order, dtype=dtype, subok=subok, shape=shape, device=device)


def empty_like(prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None) -> Any:
    """Return a tensor of the same shape and dtype and of any value, as `numpy.empty_like`.

    Examples
    --------
    >>> import cytape
    >>> np.empty_like(cytape.constant([1.0, 2.0])).shape
    (2,)
    """
    return _like(
        empty_like_op, prototype, order, dtype=dtype, subok=subok, shape=shape, device=device)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None) -> Any:
    """Return a tensor of the same shape and dtype filled with a value, as `numpy.full_like`.

    It is differentiable in the value.

    Examples
    --------
    >>> import cytape
    >>> np.full_like(cytape.constant([1.0, 2.0]), 3.0).numpy()
    array([3., 3.])
    """
    if is_tensor(fill_value):
        like = a if is_tensor(a) else np.asarray(a)
        dtype = like.dtype if dtype is None else dtype
        shape = like.shape if shape is None else shape
        return full(shape, fill_value, dtype, "F" if order == "F" else "C")
    return _like(
        full_like_op, a, order, fill_value=fill_value, dtype=dtype, subok=subok, shape=shape,
        device=device)


def _made(function, shape, order, **options):
    """Return NumPy's array, or a writable tensor if a recorder or a graph is active.

    Under tapes and accumulators integers stay arrays. In a graph all constants are tensors, since
    symbolic values may be written to them; each is one number, broadcast.
    """
    graph = current_graph()
    if graph is None and not anybody_records():
        return function(shape, order=order, **options)
    number = function((), order=order, **options)
    if number.dtype.kind not in ("fc" if graph is None else "biufc"):
        return function(shape, order=order, **options)
    tensor = tensor_of(function(shape, **options)) if graph is None else (
        identity_op(broadcast_to(convert_to_tensor(number), shape)))
    return in_order(tensor, "F") if order == "F" else tensor


def zeros(shape, dtype=float, order="C", *, device=None, like=None) -> Any:
    """Return zeros, as `numpy.zeros`; a tensor if a recorder or a graph is active.

    That is the case in functions that are differentiated, traced or mapped, and inside of tapes.
    Assignments to its elements are differentiated, in time independent of its size. Elsewhere it is
    an array; integers are tensors only in graphs.

    Examples
    --------
    >>> import cytape
    >>> import cytape.numpy as cnp
    >>> def powers(x):
    ...     found = cnp.zeros(4)
    ...     for i in range(4):
    ...         found[i] = x**i
    ...     return found
    >>> cytape.jacrev(powers)(2.0)
    array([ 0.,  1.,  4., 12.])
    >>> powers(2.0)
    array([1., 2., 4., 8.])
    """
    return _made(np.zeros, shape, order, dtype=dtype, device=device, like=like)


def ones(shape, dtype=None, order="C", *, device=None, like=None) -> Any:
    """Return ones, as `numpy.ones`; a tensor if a recorder or a graph is active (see `zeros`).

    Examples
    --------
    >>> import cytape.numpy as cnp
    >>> cnp.ones(3)
    array([1., 1., 1.])
    """
    return _made(np.ones, shape, order, dtype=dtype, device=device, like=like)


def empty(shape, dtype=float, order="C", *, device=None, like=None) -> Any:
    """Return uninitialised values, as `numpy.empty`.

    A tensor if a recorder or a graph is active, see `zeros`.

    Examples
    --------
    >>> import cytape.numpy as cnp
    >>> cnp.empty((2, 3)).shape
    (2, 3)
    """
    return _made(np.empty, shape, order, dtype=dtype, device=device, like=like)


full_op = structural(
    "Full", lambda x, *, shape: np.broadcast_to(x, shape).copy(),
    lambda results, operands, *, shape: [(results[0], operands[0])],
    transpose=lambda op, g: sum_to(g, op.input_specs[0]),
    batched=lambda x, *, shape: copy(broadcast_batch_to(x, np.atleast_1d(shape)), "C"),
    shape_rule=known_shapes.broadcast_to,
)  # fmt: skip


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None) -> Any:
    """Return an array filled with a number, an array or a tensor, as `numpy.full`.

    It is differentiable in a tensor. Filled with an array it is an array; with a number it is an
    array, or a tensor if a recorder or a graph is active (see `zeros`).

    Examples
    --------
    >>> import cytape
    >>> from cytape.ops.constants import full
    >>> full(2, cytape.constant(3.0)).numpy()
    array([3., 3.])
    """
    if isinstance(fill_value, (bool, int, float, complex, np.generic)):
        return _made(np.full, shape, order, fill_value=fill_value, dtype=dtype, device=device,
                     like=like)
    if not is_tensor(fill_value):
        return np.full(shape, fill_value, dtype, order, device=device, like=like)
    if order != "C" or device is not None or like is not None:
        np.full((), 0.0, order=order, device=device, like=like)  # raises NumPy's error
    if type(fill_value) is not Tensor or dtype is not None and fill_value.dtype != dtype:
        fill_value = array(fill_value, dtype)
    if type(shape) is int or type(shape) is tuple and all([type(n) is int for n in shape]):
        result = full_op(fill_value, shape=shape)
    else:
        result = identity_op(broadcast_to(fill_value, shape))
    return in_order(result, order) if order == "F" else result
