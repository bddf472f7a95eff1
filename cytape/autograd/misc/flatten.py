"""Vectors of all numbers in a structure of arrays, and the way back."""

import math
from itertools import accumulate

import cytape.numpy as functions
from cytape.autograd.core import sources_checked
from cytape.tensor import nest


def flatten(value):
    """Join the arrays and numbers of a structure to one vector.

    Parameters
    ----------
    value : object
        An array or a number, or lists, tuples and dicts of them. Dicts are taken in the order of
        their sorted keys.

    Returns
    -------
    vector : array
    unflatten : callable
        Takes such a vector; returns it as a structure like `value`, of the same dtypes but for
        integers, which become floats. It can be differentiated.

    Raises
    ------
    TypeError
        For values of other types.

    Examples
    --------
    >>> vector, unflatten = flatten({"w": functions.array([[1.0, 2.0]]), "b": 3.0})
    >>> vector, unflatten(10 * vector)
    (array([3., 1., 2.]), {'w': array([[10., 20.]]), 'b': np.float64(30.0)})
    """
    sources_checked(value)
    leaves = nest.flatten(value)
    parts = [functions.ravel(leaf) for leaf in leaves]
    vector = functions.concatenate(parts) if parts else functions.array([])
    shapes = [functions.shape(leaf) for leaf in leaves]
    dtypes = list(map(functions.result_type, leaves))
    ends = [0, *accumulate(map(math.prod, shapes))]

    def unflatten(vector):
        pieces = []
        for shape, dtype, start, end in zip(shapes, dtypes, ends, ends[1:], strict=False):
            piece = functions.reshape(vector[start:end], shape) if shape else vector[start]
            piece = piece if dtype.kind == "c" else functions.real(piece)
            pieces.append(piece if dtype.kind in "biu" else functions.astype(piece, dtype))
        return nest.pack_sequence_as(value, pieces)

    return vector, unflatten


def flatten_func(func, example):
    """Make a function of vectors from one of structures.

    Parameters
    ----------
    func : callable
        Takes and returns structures of arrays.
    example : object
        A structure that it takes.

    Returns
    -------
    flat_func : callable
        Takes a vector, and further arguments of `func`; returns a vector.
    unflatten : callable
    vector : array
        As `flatten` returns for the example.

    Examples
    --------
    >>> double, unflatten, vector = flatten_func(lambda p: {"w": 2 * p["w"]}, {"w": 3.0})
    >>> double(vector)
    array([6.])
    """
    vector, unflatten = flatten(example)

    def flat_func(vector, *args):
        return flatten(func(unflatten(vector), *args))[0]

    return flat_func, unflatten, vector
