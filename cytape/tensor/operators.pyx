cdef class Operator:
    cdef object call1(self, x):
        raise NotImplementedError

    cdef object call2(self, x, y):
        raise NotImplementedError

    cdef int assign(self, x, index, value) except -1:
        raise NotImplementedError


cdef class Operators:
    pass


operators, functions = Operators(), {}


def install(dict named, dict others):
    """Register the operators and functions of tensors.

    Parameters
    ----------
    named : dict of str to Operator
        Attributes of `Operators`.
    others : dict of str to callable
        Other functions that tensors call by name: bitwise operators, properties, protocols.
    """
    for name, operator in named.items():
        setattr(operators, name, operator)
    functions.update(others)
