cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

from cytape.ops.kernels.ufunc_loops cimport N_TYPES, Kernel, Loop, clear_trouble, kernel_of, trouble

import numpy as np

cnp.import_array()

cdef extern from "<fenv.h>":
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int fetestexcept(int excepts) noexcept nogil

cdef int64_t* effort = effort_so_far()


def fold_slices(ufunc, x, starts):
    """Accumulate each slice of the last axis by a ufunc, y[k] = ufunc(y[k - 1], x[k]).

    Parameters
    ----------
    ufunc : numpy.ufunc
        Of two operands and one result.
    x : ndarray
    starts : ndarray
        Begins of the slices, in order; the first is 0.

    Returns
    -------
    ndarray or None
        None if NumPy must be called, for its warnings or because there is no loop for the dtype.
    """
    cdef ndarray y
    cdef ndarray begins = np.ascontiguousarray(starts, np.intp)
    cdef int type_num = cnp.PyArray_TYPE(<ndarray>x)
    cdef Kernel kernel = kernel_of(ufunc)
    cdef Loop* loop
    cdef npy_intp n, rows, _, k, count, itemsize, m = begins.size
    cdef npy_intp* of_starts = <npy_intp*>cnp.PyArray_DATA(begins)
    cdef npy_intp[3] strides
    cdef char* data[3]
    cdef char* memory
    if type_num >= N_TYPES or not x.dtype.isnative:
        return None
    loop = &kernel.numpys[type_num]  # which checks for overlap of operands and results
    if loop.function == NULL:
        loop = &kernel.loops[type_num]
    if loop.function == NULL or loop.out_type != type_num:
        return None
    y = np.array(x, order="C")
    n, itemsize = y.shape[y.ndim - 1], y.itemsize
    rows = y.size // n if y.size else 0
    strides[0] = strides[1] = strides[2] = itemsize
    memory = cnp.PyArray_BYTES(y)
    effort[0] += y.nbytes
    clear_trouble()
    with nogil:
        for _ in range(rows):
            for k in range(m):
                count = (of_starts[k + 1] if k + 1 < m else n) - of_starts[k] - 1
                if count > 0:
                    data[0] = memory + of_starts[k] * itemsize
                    data[1] = data[2] = data[0] + itemsize
                    loop.function(data, &count, strides, loop.data)
            memory += n * itemsize
    if trouble():
        reported = fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
        clear_trouble()
        if reported or np.geterr()["under"] != "ignore":
            return None
    return y
