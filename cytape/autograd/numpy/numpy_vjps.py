"""Helpers of users' reverse rules: sums over broadcast axes, choices between real and complex."""

from collections.abc import Callable
from typing import Any

import numpy as onp

import cytape.numpy as functions
from cytape.autograd.core import SparseObject
from cytape.autograd.numpy.numpy_wrapper import metadata

__all__ = [
    "balanced_eq", "match_complex", "nograd_functions", "repeat_to_match_shape", "replace_zero",
    "unbroadcast", "unbroadcast_f", "untake",
]  # fmt: skip

nograd_functions = [getattr(functions, name) for name in (
    "floor ceil round rint around fix trunc all any argmax argmin argpartition argsort argwhere "
    "nonzero flatnonzero count_nonzero searchsorted sign ndim shape floor_divide logical_and "
    "logical_or logical_not logical_xor isfinite isinf isnan isneginf isposinf allclose isclose "
    "array_equal array_equiv greater greater_equal less less_equal equal not_equal iscomplexobj "
    "iscomplex size isscalar isreal zeros_like ones_like result_type").split()]


def unbroadcast(x: Any, target_meta: tuple, broadcast_idx: int = 0) -> Any:
    """Sum a gradient over the axes along which its operand was repeated.

    Parameters
    ----------
    x : array or Tensor
        Gradient of the result.
    target_meta : tuple
        The operand's `numpy_wrapper.metadata`.
    broadcast_idx : int
        Which axes to sum if there are more than the operand's: the first ones (0) or the last (-1).

    Examples
    --------
    >>> unbroadcast(onp.ones((3, 2)), metadata(onp.zeros((1, 2))))
    array([[3., 3.]])
    """
    shape, ndim, _, is_complex = target_meta
    while functions.ndim(x) > ndim:
        x = functions.sum(x, axis=broadcast_idx)
    if functions.shape(x) != shape:
        repeated = tuple([axis for axis, extent in enumerate(shape) if extent == 1])
        x = functions.sum(x, axis=repeated, keepdims=True)
    return x if is_complex or not functions.iscomplexobj(x) else functions.real(x)


def unbroadcast_f(target: Any, f: Callable) -> Callable:
    """Make a reverse rule sum its gradients to the shape of the operand.

    Examples
    --------
    >>> unbroadcast_f(2.0, lambda g: g * 10)(onp.ones(3))
    np.float64(30.0)
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """Return a gradient that is complex if and only if the operand is."""
    is_complex = functions.iscomplexobj(target)
    if is_complex == functions.iscomplexobj(x):
        return x
    return x + 0j if is_complex else functions.real(x)


def replace_zero(x: Any, val: Any) -> Any:
    """Return an array with a value in the place of zeros."""
    return functions.where(x, x, val)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """Return 1 where `x` equals `z`, divided by 2 where it also equals `y`, else 0."""
    return (x == z) / (1.0 + (x == y))


def repeat_to_match_shape(g: Any, shape: tuple, dtype: Any, axis: Any, keepdims: bool) -> tuple:
    """Repeat the gradient of a reduction along the reduced axes.

    Returns
    -------
    gradient : array or Tensor
        Of the given shape.
    count : int
        Number of the elements that were reduced to one.

    Examples
    --------
    >>> repeat_to_match_shape(onp.array([1.0, 2.0]), (2, 2), float, 1, False)
    (array([[1., 1.],
           [2., 2.]]), 2)
    """
    if shape == ():
        return g, 1
    kept, axes = onp.array(shape), list(axis) if isinstance(axis, tuple) else axis
    count = int(onp.prod(kept[axes]))
    kept[axes] = 1
    return functions.broadcast_to(functions.reshape(g, tuple(kept.tolist())), shape), count


def untake(x: Any, idx: Any, vs: Any) -> SparseObject:
    """Return the gradient of ``a[idx]``, given the space of `a`: zeros but for these elements."""
    def mut_add(a: Any) -> Any:
        onp.add.at(a, idx, x)
        return a

    return SparseObject(vs, mut_add)
