cimport cython
cimport numpy as cnp
from cpython.ref cimport PyObject
from cytape.core.interrupts cimport effort_so_far
from cytape.tensor.values.value cimport Value, value_of_array
from libc.stdint cimport int64_t
from libc.string cimport memset
from numpy cimport ndarray

from .partial_program cimport Operands, add_operand
from .partial_tracer cimport FIRST_INPUT

import numpy as np

from cytape.ops.kernels.partial_program import trace

cnp.import_array()

cdef int64_t* effort = effort_so_far()

cdef enum:
    WORTH_BLOCKS = 1 << 14  # bytes of an operand; below NumPy is as fast, and warns


@cython.final
cdef class FusedFunction:
    """FusedFunction(function, n_inputs)

    Function of arrays and numbers, with NumPy's result.

    Parameters
    ----------
    function : callable
        Consists of ufuncs and `numpy.where`.
    n_inputs : int

    Examples
    --------
    >>> import numpy as np
    >>> f = FusedFunction(lambda x, y: np.where(x > y, x * x, -y), 2)
    >>> f(np.array([1.0, 3.0]), 2.0)
    array([-2.,  9.])
    """

    def __init__(self, function, int n_inputs):
        self.function, self.n_inputs = function, n_inputs

    def __call__(self, *operands):
        result = self.by_program(operands) if len(operands) == self.n_inputs else None
        if result is not None:
            return result
        return self.function(*[
            np.asarray(x) if isinstance(x, (list, tuple)) else x for x in operands])[()]

    cdef object by_program(self, tuple operands):
        """Return the result for large arrays of one shape, or None."""
        cdef ndarray array = None, result
        cdef Operands given
        cdef Value like, value
        cdef list values = []
        cdef int i
        for x in operands:
            if type(x) is ndarray and cnp.PyArray_NDIM(x) and array is None:
                array = x
        if array is None or cnp.PyArray_NBYTES(array) < WORTH_BLOCKS or not (
                cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE
                or cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT) or (
                not cnp.PyArray_ISCARRAY_RO(array)):  # NumPy's result has another order
            return None
        for x in operands:
            if type(x) is float or type(x) is int:
                x = np.array(x, array.dtype)
            elif type(x) is not ndarray or cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(array) or (
                    cnp.PyArray_NDIM(x) and x.shape != (<object>array).shape):
                return None
            values.append(value_of_array(x))
        if not self.is_traced:
            self.program = trace(lambda y, *inputs: self.function(*inputs), self.n_inputs, True)
            self.is_traced = True
        if self.program is None or self.program.copied != -1 or not (
                self.program.runs_on[cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT]):
            return None
        result = np.empty((<object>array).shape, array.dtype)
        like = value_of_array(result)
        memset(&given, 0, sizeof(given))
        given.shape, given.flat = <PyObject*>like.spec, True
        for i, value in enumerate(values):
            add_operand(&given, FIRST_INPUT + i, value)
        effort[0] += result.nbytes
        self.program.run_on(&given, like, False)
        return result
