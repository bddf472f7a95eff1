cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from cytape.ops.special_kernels.ties cimport in_c_order
from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from numpy cimport ndarray, npy_intp

cnp.import_array()

ctypedef fused floating:
    float
    double

cdef int64_t* effort = effort_so_far()


def over_powers_of_two(ndarray x not None, ndarray exponents not None):
    """Return ``ldexp(x, -exponents)``.

    Parameters
    ----------
    x, exponents : ndarray
        Of one shape; the exponents as `numpy.frexp` returns them.

    Returns
    -------
    ndarray or None
        None where it is left to NumPy: other numbers than of single or double precision.
    """
    cdef int type_num = cnp.PyArray_TYPE(x)
    cdef ndarray result
    cdef npy_intp n = cnp.PyArray_SIZE(exponents), step = cnp.PyArray_ITEMSIZE(x)
    if (type_num not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) or not cnp.PyArray_ISNOTSWAPPED(x)
            or cnp.PyArray_TYPE(exponents) != cnp.NPY_INT
            or not cnp.PyArray_ISNOTSWAPPED(exponents)
            or not cnp.PyArray_SAMESHAPE(x, exponents)):
        return None
    if cnp.PyArray_NDIM(x) == 1:
        step = cnp.PyArray_STRIDES(x)[0]
    else:
        x = in_c_order(x)
    exponents = in_c_order(exponents)
    result = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), type_num, 0)
    effort[0] += cnp.PyArray_NBYTES(result)
    cdef char* of_x = cnp.PyArray_BYTES(x)
    cdef int* of_exponents = <int*>cnp.PyArray_DATA(exponents)
    cdef void* of_result = cnp.PyArray_DATA(result)
    with nogil:
        if type_num == cnp.NPY_FLOAT:
            divide(of_x, step, of_exponents, <float*>of_result, n)
        else:
            divide(of_x, step, of_exponents, <double*>of_result, n)
    return result


cdef void divide(char* x, npy_intp step, const int* exponents, floating* result,
                 npy_intp n) noexcept nogil:
    cdef npy_intp i
    cdef int beyond = 0
    cdef uint64_t bits
    cdef double factor
    for i in range(n):
        beyond |= (exponents[i] <= -1022) | (exponents[i] >= 1022)
        bits = (<uint64_t>1023 - <uint64_t>exponents[i]) << 52
        memcpy(&factor, &bits, sizeof(factor))
        result[i] = <floating>((<floating*>(x + i * step))[0] * factor)
    if beyond:  # a factor is not a normal number
        for i in range(n):
            result[i] = <floating>ldexp((<floating*>(x + i * step))[0], -exponents[i])
