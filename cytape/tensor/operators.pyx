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
    """Register the functions that write to tensors, which are imported at the first write.

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
