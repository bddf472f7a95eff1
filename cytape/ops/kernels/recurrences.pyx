cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport fabs
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

from .ties cimport in_c_order, lines_of

import numpy as np

cnp.import_array()

ctypedef fused number:
    float
    double
    long double
    float complex
    double complex
    long double complex

ctypedef fused floating:
    float
    double

cdef extern from *:
    """
    #include <math.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default"), \\
                                          optimize("no-trapping-math")))
    #else
    #define CYTAPE_FOR_CPU
    #endif
    #define CYTAPE_CHAINS 16
    /* A line multiplied in chains, which a processor goes through at once. 0 if one is not normal
       on the way: what is multiplied by later factors may hide that. */
    #define CYTAPE_LINES(type, count_type, magnitude) \\
        CYTAPE_FOR_CPU static int cytape_multiply_##type( \\
                const type *x, npy_intp n, type *product, type least) { \\
            type chains[CYTAPE_CHAINS]; \\
            count_type normal[CYTAPE_CHAINS] = {0}; \\
            npy_intp i, j; \\
            int all_normal = 1; \\
            for (j = 0; j < CYTAPE_CHAINS; j++) { chains[j] = 1; } \\
            for (i = 0; i + CYTAPE_CHAINS <= n; i += CYTAPE_CHAINS) { \\
                for (j = 0; j < CYTAPE_CHAINS; j++) { \\
                    chains[j] *= x[i + j]; \\
                    normal[j] += magnitude(chains[j]) >= least; \\
                } \\
            } \\
            for (j = 0; j < CYTAPE_CHAINS; j++) { all_normal &= normal[j] == n / CYTAPE_CHAINS; } \\
            for (; i < n; i++) { \\
                chains[0] *= x[i]; \\
                all_normal &= magnitude(chains[0]) >= least; \\
            } \\
            for (i = CYTAPE_CHAINS / 2; i; i /= 2) { \\
                for (j = 0; j < i; j++) { \\
                    chains[j] *= chains[j + i]; \\
                    all_normal &= magnitude(chains[j]) >= least; \\
                } \\
            } \\
            *product = chains[0]; \\
            return all_normal; \\
        } \\
        CYTAPE_FOR_CPU static int cytape_divide_##type( \\
                const type whole, const type *x, npy_intp n, type *result, type least) { \\
            count_type normal = 0; \\
            npy_intp i; \\
            for (i = 0; i < n; i++) { \\
                const type factor = x[i]; \\
                normal += magnitude(factor) >= least; \\
                result[i] = whole / factor; \\
            } \\
            return normal == (count_type)n; \\
        }
    CYTAPE_LINES(float, npy_int32, fabsf)
    CYTAPE_LINES(double, npy_int64, fabs)
    """
    bint cytape_multiply_float(const float*, npy_intp, float*, float) noexcept nogil
    bint cytape_multiply_double(const double*, npy_intp, double*, double) noexcept nogil
    bint cytape_divide_float(float, const float*, npy_intp, float*, float) noexcept nogil
    bint cytape_divide_double(double, const double*, npy_intp, double*, double) noexcept nogil

cdef extern from "<float.h>":
    const float FLT_MIN, FLT_MAX
    const double DBL_MIN, DBL_MAX

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
    if g.dtype.char not in "fdgFDG" or not g.dtype.isnative or not g.ndim:
        raise TypeError(
            "expected a gradient with an axis at least, of floats or complex numbers of single "
            f"precision or more, not of shape {(<object>g).shape} and dtype {g.dtype}: convert it "
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
        if type_num == cnp.NPY_FLOAT:
            sum_back(of_g, stride, <float*>of_result, rows, n)
        elif type_num == cnp.NPY_DOUBLE:
            sum_back(of_g, stride, <double*>of_result, rows, n)
        elif type_num == cnp.NPY_LONGDOUBLE:
            sum_back(of_g, stride, <long double*>of_result, rows, n)
        elif type_num == cnp.NPY_CFLOAT:
            sum_back(of_g, stride, <float complex*>of_result, rows, n)
        elif type_num == cnp.NPY_CDOUBLE:
            sum_back(of_g, stride, <double complex*>of_result, rows, n)
        else:
            sum_back(of_g, stride, <long double complex*>of_result, rows, n)
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


def prod_gradient(g, ndarray x not None, product, axis):
    """Return the gradient of the product of lines, by division.

    Parameters
    ----------
    g : ndarray
        The gradients, one for each line, in the order of the lines.
    x : ndarray
    product : ndarray or None
        The products, likewise, if they are known.
    axis : None, int or tuple of int
        The axes of the lines.

    Returns
    -------
    ndarray or None
        None where it cannot be told so, or is left to NumPy: unless all factors, products and
        these times their gradients are normal numbers of single or double precision.
    """
    cdef npy_intp[3] lines
    cdef ndarray gradients, products, result
    cdef int type_num = cnp.PyArray_TYPE(x)
    cdef bint normal
    if (type_num not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) or not x.dtype.isnative
            or g.dtype != x.dtype or not lines_of(x, axis, lines)
            or g.size != lines[0] * lines[2]):
        return None
    if product is None and lines[2] == 1:
        product = np.empty(lines[0], x.dtype)
        x = in_c_order(x)
        if type_num == cnp.NPY_FLOAT:
            normal = multiply_lines(<float*>cnp.PyArray_DATA(x), lines,
                                    <float*>cnp.PyArray_DATA(product), FLT_MIN)
        else:
            normal = multiply_lines(<double*>cnp.PyArray_DATA(x), lines,
                                    <double*>cnp.PyArray_DATA(product), DBL_MIN)
        if not normal:
            return None
    elif product is None:
        product = np.multiply.reduce(x, axis)
    if product.dtype != x.dtype or product.size != g.size:
        return None
    x, gradients, products = in_c_order(x), in_c_order(g), in_c_order(product)
    result = np.empty((<object>x).shape, x.dtype)
    effort[0] += result.nbytes
    cdef char* of_x = cnp.PyArray_BYTES(x)
    cdef char* of_g = cnp.PyArray_BYTES(gradients)
    cdef char* of_product = cnp.PyArray_BYTES(products)
    cdef char* of_result = cnp.PyArray_BYTES(result)
    with nogil:
        if type_num == cnp.NPY_FLOAT:
            normal = divide_products(<float*>of_g, <float*>of_x, <float*>of_product,
                                     <float*>of_result, lines, FLT_MIN, FLT_MAX)
        else:
            normal = divide_products(<double*>of_g, <double*>of_x, <double*>of_product,
                                     <double*>of_result, lines, DBL_MIN, DBL_MAX)
    return result if normal else None


cdef bint multiply_lines(floating* x, const npy_intp* lines, floating* product,
                         floating least) noexcept nogil:
    """Multiply the factors of each line; False if a product is not normal on the way."""
    cdef npy_intp k
    for k in range(lines[0]):
        if floating is float:
            if not cytape_multiply_float(x, lines[1], product + k, least):
                return False
        elif not cytape_multiply_double(x, lines[1], product + k, least):
            return False
        x += lines[1]
    return True


cdef bint divide_products(floating* g, floating* x, floating* product, floating* result,
                          const npy_intp* lines, floating least, floating most) noexcept nogil:
    """Divide by each factor of a line its product times the gradient; False if one is not normal.
    """
    cdef npy_intp _, i, j, n = lines[1], inner = lines[2]
    cdef int abnormal = 0  # what else a factor might be shows in the product
    cdef floating whole
    for _ in range(lines[0]):
        for j in range(inner):
            whole = g[j] * product[j]
            if not (least <= fabs(whole) <= most and least <= fabs(product[j]) <= most):
                return False
        if inner == 1:
            whole = g[0] * product[0]
            if floating is float:
                abnormal = not cytape_divide_float(whole, x, n, result, least)
            else:
                abnormal = not cytape_divide_double(whole, x, n, result, least)
        else:
            for i in range(n):
                for j in range(inner):
                    abnormal |= not fabs(x[i * inner + j]) >= least
                    result[i * inner + j] = g[j] * product[j] / x[i * inner + j]
        if abnormal:
            return False
        x += n * inner
        result += n * inner
        g += inner
        product += inner
    return True
