cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

ctypedef fused number:
    float
    double
    long double
    float complex
    double complex
    long double complex

cdef int64_t* effort = effort_so_far()


def cumprod_gradient(g, x):
    """Return the gradient of a cumulative product along the last axis, without a division.

    The element i gets the product of those before it, times r[i] = g[i] + x[i + 1] * r[i + 1]. A
    gradient of zero adds nothing, even if the product of the others is infinite.

    Parameters
    ----------
    g : ndarray
        The gradient of the products.
    x : ndarray
        The factors; of the shape and dtype of `g`.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If they are not floats or complex numbers of one dtype and shape, or have no axis.
    """
    if (g.dtype != x.dtype or x.dtype.char not in "fdgFDG" or not x.dtype.isnative
            or g.shape != x.shape or not x.ndim):
        raise TypeError(
            "expected a gradient and factors of one shape, with an axis at least, and one dtype, "
            "of floats or complex numbers of single precision or more, not of shapes "
            f"{g.shape} and {x.shape} and dtypes {g.dtype} and {x.dtype}: convert them first")
    cdef ndarray gradients = np.ascontiguousarray(g), factors = np.ascontiguousarray(x)
    cdef ndarray result = np.empty_like(factors)
    cdef npy_intp n = factors.shape[factors.ndim - 1]
    cdef int type_num = cnp.PyArray_TYPE(factors)
    effort[0] += factors.nbytes
    cdef char* of_g = cnp.PyArray_BYTES(gradients)
    cdef char* of_x = cnp.PyArray_BYTES(factors)
    cdef char* of_result = cnp.PyArray_BYTES(result)
    cdef npy_intp rows = factors.size // n if factors.size else 0
    with nogil:
        if type_num == cnp.NPY_FLOAT:
            go_through(<float*>of_g, <float*>of_x, <float*>of_result, rows, n)
        elif type_num == cnp.NPY_DOUBLE:
            go_through(<double*>of_g, <double*>of_x, <double*>of_result, rows, n)
        elif type_num == cnp.NPY_LONGDOUBLE:
            go_through(<long double*>of_g, <long double*>of_x, <long double*>of_result, rows, n)
        elif type_num == cnp.NPY_CFLOAT:
            go_through(
                <float complex*>of_g, <float complex*>of_x, <float complex*>of_result, rows, n)
        elif type_num == cnp.NPY_CDOUBLE:
            go_through(
                <double complex*>of_g, <double complex*>of_x, <double complex*>of_result, rows, n)
        else:
            go_through(<long double complex*>of_g, <long double complex*>of_x,
                       <long double complex*>of_result, rows, n)
    return result


cdef void go_through(number* g, number* x, number* result, npy_intp rows,
                     npy_intp n) noexcept nogil:
    cdef number product, later
    cdef npy_intp _, i
    cdef bint still
    for _ in range(rows):
        product = 1
        for i in range(n):
            result[i] = product
            product = product * x[i]
        later = 0
        still = True
        for i in range(n - 1, -1, -1):
            later = g[i] if still else g[i] + x[i + 1] * later
            still = still and g[i] == 0
            result[i] = 0 if still else result[i] * later
        g += n
        x += n
        result += n
