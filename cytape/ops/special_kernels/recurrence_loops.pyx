cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

from .line_products cimport (
    LANES, doublecomplex, floatcomplex, longdouble, longdoublecomplex, number)
from .ties cimport in_c_order

import numpy as np

cnp.import_array()

ctypedef void* address
ctypedef void (*solve_t)(
    void* a, void* b, void* y, npy_intp rows, npy_intp n, bint backwards) noexcept nogil
ctypedef void (*sum_t)(
    char* g, npy_intp stride, void* result, npy_intp rows, npy_intp n) noexcept nogil

cdef int64_t* effort = effort_so_far()
cdef str DTYPES = "fdgFDG"
cdef address[6] solvers = [  # in the order of NumPy's numbers of types
    <void*>solve_rows[float], <void*>solve_rows[double], <void*>solve_rows[longdouble],
    <void*>solve_rows[floatcomplex], <void*>solve_rows[doublecomplex],
    <void*>solve_rows[longdoublecomplex]]
cdef address[6] sums = [
    <void*>sum_back[float], <void*>sum_back[double], <void*>sum_back[longdouble],
    <void*>sum_back[floatcomplex], <void*>sum_back[doublecomplex],
    <void*>sum_back[longdoublecomplex]]


def linear_recurrence(a, b, backwards=False):
    """Solve y[k] = a[k] * y[k - 1] + b[k] along the last axis; the first of `a` is not read.

    Backwards y[k] = a[k + 1] * y[k + 1] + b[k]. A y of 0 adds nothing, even times an infinite a.

    Parameters
    ----------
    a, b : ndarray
        Of one shape and one dtype: `float32`, `float64`, `longdouble` or a complex dtype of these.
    backwards : bool, optional

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If they differ in shape or dtype, have another dtype or no axis.
    """
    if a.shape != b.shape or a.dtype != b.dtype or not a.ndim or a.dtype.char not in DTYPES:
        raise ValueError(
            "expected factors and terms of one dtype and one shape with at least one axis, "
            "floats or complex numbers of at least single precision, got "
            f"shapes {a.shape} and {b.shape} and dtypes {a.dtype} and {b.dtype}")
    cdef ndarray factors = in_c_order(a), terms = in_c_order(b)
    cdef ndarray result = np.empty((<object>terms).shape, terms.dtype)
    cdef npy_intp n = terms.shape[terms.ndim - 1]
    cdef npy_intp rows = terms.size // n if terms.size else 0
    cdef char* of_a = cnp.PyArray_BYTES(factors)
    cdef char* of_b = cnp.PyArray_BYTES(terms)
    cdef char* of_y = cnp.PyArray_BYTES(result)
    cdef int type_num = cnp.PyArray_TYPE(terms)
    cdef bint back = backwards
    effort[0] += result.nbytes
    with nogil:
        (<solve_t>solvers[type_num - cnp.NPY_FLOAT])(of_a, of_b, of_y, rows, n, back)
    return result


cdef void solve_rows(number* a, number* b, number* y, npy_intp rows, npy_intp n,
                     bint backwards) noexcept nogil:
    cdef npy_intp row = 0
    while row + LANES <= rows:
        solve(a + row * n, b + row * n, y + row * n, n, backwards, LANES)
        row += LANES
    for row in range(row, rows):
        solve(a + row * n, b + row * n, y + row * n, n, backwards, 1)


cdef inline void solve(number* a, number* b, number* y, npy_intp n, bint backwards,
                       int width) noexcept nogil:
    """Solve `LANES` rows at once, since each element waits for the one before it in its row."""
    cdef number[LANES] last
    cdef npy_intp i
    cdef int k
    for k in range(width):
        last[k] = 0
    if backwards:
        for i in range(n - 1, -1, -1):
            for k in range(width):
                last[k] = b[i + k * n] if last[k] == 0 else (
                    a[i + 1 + k * n] * last[k] + b[i + k * n])
                y[i + k * n] = last[k]
        return
    for i in range(n):
        for k in range(width):
            last[k] = b[i + k * n] if last[k] == 0 else a[i + k * n] * last[k] + b[i + k * n]
            y[i + k * n] = last[k]


def cumsum_gradient(ndarray g not None):
    """Return the gradient of a cumulative sum along the last axis.

    Parameters
    ----------
    g : ndarray
        The gradient of the sums.

    Returns
    -------
    ndarray
        Of each element to the last one the sum, added up from the last.

    Raises
    ------
    TypeError
        If it is not of floats or complex numbers, or has no axis.
    """
    if g.dtype.char not in DTYPES or not g.dtype.isnative or not g.ndim:
        raise TypeError(
            "expected a gradient with at least one axis, of floats or complex numbers of at least "
            f"single precision, got shape {(<object>g).shape} and dtype {g.dtype}: convert it "
            "first")
    g = g if g.ndim == 1 else in_c_order(g)
    cdef ndarray result = np.empty((<object>g).shape, g.dtype)
    cdef npy_intp n = g.shape[g.ndim - 1]
    cdef npy_intp stride = cnp.PyArray_STRIDES(g)[0] if g.ndim == 1 else g.dtype.itemsize
    cdef npy_intp rows = result.size // n if result.size else 0
    cdef int type_num = cnp.PyArray_TYPE(g)
    cdef char* of_g = cnp.PyArray_BYTES(g)
    cdef char* of_result = cnp.PyArray_BYTES(result)
    effort[0] += result.nbytes
    with nogil:
        (<sum_t>sums[type_num - cnp.NPY_FLOAT])(of_g, stride, of_result, rows, n)
    return result


cdef void sum_back(char* g, npy_intp stride, number* result, npy_intp rows,
                   npy_intp n) noexcept nogil:
    cdef number total
    cdef npy_intp _, i
    for _ in range(rows):
        total = (<number*>(g + (n - 1) * stride))[0]
        result[n - 1] = total
        for i in range(n - 2, -1, -1):
            total = total + (<number*>(g + i * stride))[0]
            result[i] = total
        g += n * stride
        result += n
