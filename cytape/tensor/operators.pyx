functions = {}


def install(dict operators, dict others):
    """Register the arithmetic of tensors.

    Parameters
    ----------
    operators : dict of str to Operator
        By the names of NumPy's ufuncs, with "matmul" and "getitem".
    others : dict of str to callable
        Other functions that tensors call by name: bitwise operators, properties, protocols.
    """
    global op_add, op_subtract, op_multiply, op_divide, op_matmul, op_power, op_floor_divide
    global op_remainder, op_negative, op_positive, op_absolute, op_square, op_getitem
    global op_less, op_less_equal, op_equal, op_not_equal, op_greater, op_greater_equal
    op_add = operators["add"]
    op_subtract = operators["subtract"]
    op_multiply = operators["multiply"]
    op_divide = operators["divide"]
    op_matmul = operators["matmul"]
    op_power = operators["power"]
    op_floor_divide = operators["floor_divide"]
    op_remainder = operators["remainder"]
    op_negative = operators["negative"]
    op_positive = operators["positive"]
    op_absolute = operators["absolute"]
    op_square = operators["square"]
    op_less = operators["less"]
    op_less_equal = operators["less_equal"]
    op_equal = operators["equal"]
    op_not_equal = operators["not_equal"]
    op_greater = operators["greater"]
    op_greater_equal = operators["greater_equal"]
    op_getitem = operators["getitem"]
    functions.update(others)


def install_updates(Operator set_item, dict others):
    """Register the functions that change tensors, which are imported late.

    Parameters
    ----------
    set_item : Operator
    others : dict of str to callable
    """
    global op_set_item
    op_set_item = set_item
    functions.update(others)


cdef class Operator:
    cdef object call1(self, x):
        raise NotImplementedError

    cdef object call2(self, x, y):
        raise NotImplementedError

    cdef int assign(self, x, index, value) except -1:
        raise NotImplementedError


# ---- methods that take their arguments in more ways than the functions of the same names

def reshape(self, *shape, order="C", copy=None):
    """Return the tensor with another shape; see numpy.reshape.

    Parameters
    ----------
    *shape : int or tuple of int
        The extents; one may be -1 and follows from the others.
    order : {"C", "F", "A"}, optional
        In which order the elements are read and placed.
    copy : bool, optional
        As numpy.reshape takes it.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the new shape has another number of elements.

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([1, 2, 3, 4]).reshape(2, -1)
    Tensor([[1, 2],
            [3, 4]], dtype=int64)
    """
    new_shape = shape[0] if len(shape) == 1 else shape
    return functions["reshape"](self, new_shape, order=order, copy=copy)


def transpose(self, *axes):
    """Return the tensor with its axes permuted; see numpy.transpose.

    Parameters
    ----------
    *axes : int or tuple of int
        For each axis of the result the axis it is taken from; by default all are reversed.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the axes are no permutation.

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([[1, 2, 3]]).transpose().shape
    (3, 1)
    """
    return functions["transpose"](self, (axes[0] if len(axes) == 1 else axes) if axes else None)


def astype(self, dtype, **arguments):
    """Return the tensor with another dtype; see numpy.ndarray.astype.

    Parameters
    ----------
    dtype : dtype
        Gradients flow through the cast if this and the tensor's own are floating or complex.
    **arguments
        As numpy.ndarray.astype takes them.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cytape
    >>> cytape.constant([1, 2]).astype("float32")
    Tensor([1., 2.], dtype=float32)
    """
    return functions["astype"](self, dtype, **arguments)
