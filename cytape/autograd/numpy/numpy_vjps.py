"""Helpers of users' reverse rules: sums over broadcast axes, choices between real and complex."""

import numpy as onp

import cytape.numpy as functions
from cytape.autograd.numpy.numpy_wrapper import metadata


def unbroadcast(x, target_meta, broadcast_idx=0):
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
    found, n_axes, _, found_complex = metadata(x)
    for _ in range(n_axes - ndim):
        x = functions.sum(x, axis=broadcast_idx)
    if found != shape:
        repeated = tuple([axis for axis, extent in enumerate(shape) if extent == 1])
        x = functions.sum(x, axis=repeated, keepdims=True)
    return functions.real(x) if found_complex and not is_complex else x


def unbroadcast_f(target, f):
    """Make a reverse rule sum its gradients to the shape of the operand.

    Examples
    --------
    >>> unbroadcast_f(2.0, lambda g: g * 10)(onp.ones(3))
    np.float64(30.0)
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target, x):
    """Return a gradient that is complex if and only if the operand is."""
    is_complex = metadata(target)[3]
    if is_complex == metadata(x)[3]:
        return x
    return x + 0j if is_complex else functions.real(x)


def replace_zero(x, val):
    """Return an array with a value in the place of zeros."""
    return functions.where(x, x, val)


def balanced_eq(x, z, y):
    """Return 1 where `x` equals `z`, divided by 2 where it also equals `y`, else 0."""
    return (x == z) / (1.0 + (x == y))


def repeat_to_match_shape(g, shape, dtype, axis, keepdims):
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
