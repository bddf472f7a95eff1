cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport ndarray, npy_intp

from .ties cimport in_c_order, lines_of

import numpy as np

cnp.import_array()

ctypedef long double longdouble
ctypedef float complex floatcomplex
ctypedef double complex doublecomplex
ctypedef long double complex longdoublecomplex
ctypedef fused number:
    float
    double
    longdouble
    floatcomplex
    doublecomplex
    longdoublecomplex

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

cdef enum:
    LANES = 8  # lines that are gone through at once

cdef struct Lines:
    char* g  # of cumulative products; NULL: of the product of each slice, and 1
    char* x
    char* t
    char* result
    char* kept
    npy_intp n, step, lane  # elements of a line, and how many are from one to the next, ...
    npy_intp n_slices       # ... and from one line to the next
    const npy_intp* starts

cdef int64_t* effort = effort_so_far()


def cumprod_gradient(g, x, t=None):
    """Return the gradient of a cumulative product along the last axis, without a division.

    The element i gets the product of those before it, times r[i] = g[i] + x[i + 1] * r[i + 1]. A
    gradient of zero adds nothing, even if the product of the others is infinite.

    Parameters
    ----------
    g : ndarray
        The gradient of the products.
    x : ndarray
        The factors; of the shape and dtype of `g`.
    t : ndarray, optional
        A tangent of the factors, likewise; the tangent of the gradient is returned then.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If they are not floats or complex numbers of one dtype and shape, or have no axis.
    """
    if (x.dtype.char not in "fdgFDG" or not x.dtype.isnative or not x.ndim
            or any([y.dtype != x.dtype or y.shape != x.shape for y in (g, t) if y is not None])):
        raise TypeError(
            "expected a gradient and factors of one shape, with an axis at least, and one dtype, "
            "of floats or complex numbers of single precision or more, not of shapes "
            f"{g.shape} and {x.shape} and dtypes {g.dtype} and {x.dtype}: convert them first")
    return lines_gradient(g, x, t, None, (x.ndim - 1,))


def products_of_others(x, axis, starts=None, t=None):
    """Return the product of all other factors of a line or slice, for each factor.

    Parameters
    ----------
    x : ndarray
        The factors, of `float32`, `float64`, `longdouble` or a complex dtype of these.
    axis : tuple of int
        The axes of a line.
    starts : ndarray, optional
        Where slices of a line begin, which go on to the next one, in order. By default a line is
        one slice. What is before the first has a product of 0.
    t : ndarray, optional
        A tangent of the factors, of their shape and dtype; the tangents of the products are
        returned then.

    Returns
    -------
    ndarray
    """
    return lines_gradient(None, x, t, starts, axis)


cdef ndarray lines_gradient(g, x, t, starts, tuple axis):
    """Gradient of products along lines, cumulative ones if `g` is given; its tangent if `t` is."""
    cdef npy_intp[3] lines
    cdef ndarray factors = in_c_order(x), begins, result
    cdef ndarray gradients = None if g is None else in_c_order(g)
    cdef ndarray tangents = None if t is None else in_c_order(t)
    cdef Lines of
    if not lines_of(factors, axis, lines):
        raise ValueError(f"the axes {axis} of {factors.ndim} are not side by side")
    begins = np.zeros(1, np.intp) if starts is None else np.ascontiguousarray(starts, np.intp)
    result = np.zeros((<object>factors).shape, factors.dtype)
    if not result.size or not begins.size:
        return result
    of.n, of.starts, of.n_slices = lines[1], <npy_intp*>cnp.PyArray_DATA(begins), begins.size
    effort[0] += factors.nbytes
    of.g = NULL if gradients is None else cnp.PyArray_BYTES(gradients)
    of.t = NULL if tangents is None else cnp.PyArray_BYTES(tangents)
    of.x, of.result = cnp.PyArray_BYTES(factors), cnp.PyArray_BYTES(result)
    of.kept = <char*>malloc(LANES * lines[1] * factors.itemsize if of.t != NULL else 1)
    if of.kept == NULL:
        raise MemoryError()
    cdef int type_num = cnp.PyArray_TYPE(factors)
    with nogil:
        if type_num == cnp.NPY_FLOAT:
            go_through[float](&of, lines, 0)
        elif type_num == cnp.NPY_DOUBLE:
            go_through[double](&of, lines, 0)
        elif type_num == cnp.NPY_LONGDOUBLE:
            go_through[longdouble](&of, lines, 0)
        elif type_num == cnp.NPY_CFLOAT:
            go_through[floatcomplex](&of, lines, 0)
        elif type_num == cnp.NPY_CDOUBLE:
            go_through[doublecomplex](&of, lines, 0)
        else:
            go_through[longdoublecomplex](&of, lines, 0)
    free(of.kept)
    return result


cdef void go_through(Lines* of, const npy_intp* lines, number _) noexcept nogil:
    """Go through lines, several at once: each product waits for the one before it in its line."""
    cdef npy_intp block, first, at, n_beside, apart
    of.step = lines[2]
    of.lane = 1 if lines[2] > 1 else lines[1]
    n_beside = lines[2] if lines[2] > 1 else lines[0]
    apart = lines[1] * lines[2]
    for block in range(lines[0] if lines[2] > 1 else 1):
        first = 0
        while first + LANES <= n_beside:
            at = block * apart + first * of.lane
            if of.t == NULL:
                differentiate(of, at, LANES, _)
            else:
                differentiate_twice(of, at, LANES, _)
            first += LANES
        for first in range(first, n_beside):
            at = block * apart + first * of.lane
            if of.t == NULL:
                differentiate(of, at, 1, _)
            else:
                differentiate_twice(of, at, 1, _)


cdef inline void differentiate(Lines* of, npy_intp at, int width, number _) noexcept nogil:
    """Element i gets the product of those before it, times r[i] = g[i] + x[i + 1] * r[i + 1]."""
    cdef number* g = NULL if of.g == NULL else <number*>of.g + at
    cdef number* x = <number*>of.x + at
    cdef number* result = <number*>of.result + at
    cdef number[LANES] product, later, next_x
    cdef bint[LANES] still  # all gradients so far are zero
    cdef number gradient
    cdef npy_intp i, j, place, start, stop
    cdef int k
    for j in range(of.n_slices):
        start, stop = of.starts[j], of.starts[j + 1] if j + 1 < of.n_slices else of.n
        for k in range(width):
            product[k] = 1
        for i in range(start, stop):
            for k in range(width):
                place = i * of.step + k * of.lane
                result[place] = product[k]
                product[k] = product[k] * x[place]
        for k in range(width):
            still[k] = True
            later[k] = next_x[k] = 0
        for i in range(stop - 1, start - 1, -1):
            for k in range(width):
                place = i * of.step + k * of.lane
                gradient = g[place] if g != NULL else 1 if i == stop - 1 else 0
                later[k] = gradient if still[k] else gradient + next_x[k] * later[k]
                still[k] = still[k] and gradient == 0
                result[place] = 0 if still[k] else result[place] * later[k]
                next_x[k] = x[place]


cdef inline void differentiate_twice(Lines* of, npy_intp at, int width, number _) noexcept nogil:
    """Tangent of what `differentiate` returns, for a tangent of the factors.

    As there, what is multiplied by a zero that no factor made adds nothing.
    """
    cdef number* g = NULL if of.g == NULL else <number*>of.g + at
    cdef number* x = <number*>of.x + at
    cdef number* t = <number*>of.t + at
    cdef number* result = <number*>of.result + at
    cdef number* kept = <number*>of.kept  # products of the factors before each one
    cdef number[LANES] product, moved, later, moved_later, next_x, next_t
    cdef bint[LANES] still, stays, later_stays  # g so far, t so far, and what r got of it, are zero
    cdef number gradient
    cdef npy_intp i, j, place, start, stop
    cdef int k
    for j in range(of.n_slices):
        start, stop = of.starts[j], of.starts[j + 1] if j + 1 < of.n_slices else of.n
        for k in range(width):
            product[k] = 1
            moved[k] = 0
            stays[k] = still[k] = later_stays[k] = True
            later[k] = moved_later[k] = next_x[k] = next_t[k] = 0
        for i in range(start, stop):
            for k in range(width):
                place = i * of.step + k * of.lane
                kept[i * width + k] = product[k]
                result[place] = moved[k]
                if not stays[k]:
                    moved[k] = moved[k] * x[place]
                if t[place] != 0:
                    moved[k] = moved[k] + product[k] * t[place]
                    stays[k] = False
                product[k] = product[k] * x[place]
        for i in range(stop - 1, start - 1, -1):
            for k in range(width):
                place = i * of.step + k * of.lane
                if not later_stays[k]:
                    moved_later[k] = next_x[k] * moved_later[k]
                if next_t[k] != 0 and not still[k]:
                    moved_later[k] = moved_later[k] + next_t[k] * later[k]
                    later_stays[k] = False
                gradient = g[place] if g != NULL else 1 if i == stop - 1 else 0
                later[k] = gradient if still[k] else gradient + next_x[k] * later[k]
                still[k] = still[k] and gradient == 0
                if still[k] or result[place] == 0:
                    result[place] = 0
                else:
                    result[place] = result[place] * later[k]
                if not later_stays[k]:
                    result[place] = result[place] + kept[i * width + k] * moved_later[k]
                next_x[k], next_t[k] = x[place], t[place]


def linear_recurrence(a, b, backwards=False):
    """Solve y[k] = a[k] * y[k - 1] + b[k] along the last axis; the first of `a` does not count.

    Backwards y[k] = a[k + 1] * y[k + 1] + b[k]. A y of 0 adds nothing, even to infinite factors.

    Parameters
    ----------
    a, b : ndarray
        Of one shape and one dtype: `float32`, `float64`, `longdouble` or a complex dtype of these.
    backwards : bool, optional

    Returns
    -------
    ndarray
    """
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
        if type_num == cnp.NPY_FLOAT:
            solve_rows(<float*>of_a, <float*>of_b, <float*>of_y, rows, n, back)
        elif type_num == cnp.NPY_DOUBLE:
            solve_rows(<double*>of_a, <double*>of_b, <double*>of_y, rows, n, back)
        elif type_num == cnp.NPY_LONGDOUBLE:
            solve_rows(<longdouble*>of_a, <longdouble*>of_b, <longdouble*>of_y, rows, n, back)
        elif type_num == cnp.NPY_CFLOAT:
            solve_rows(<floatcomplex*>of_a, <floatcomplex*>of_b, <floatcomplex*>of_y, rows, n, back)
        elif type_num == cnp.NPY_CDOUBLE:
            solve_rows(
                <doublecomplex*>of_a, <doublecomplex*>of_b, <doublecomplex*>of_y, rows, n, back)
        else:
            solve_rows(<longdoublecomplex*>of_a, <longdoublecomplex*>of_b,
                       <longdoublecomplex*>of_y, rows, n, back)
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
    """Solve as many rows at once: each element waits for the one before it in its row."""
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
            sum_back(of_g, stride, <longdouble*>of_result, rows, n)
        elif type_num == cnp.NPY_CFLOAT:
            sum_back(of_g, stride, <floatcomplex*>of_result, rows, n)
        elif type_num == cnp.NPY_CDOUBLE:
            sum_back(of_g, stride, <doublecomplex*>of_result, rows, n)
        else:
            sum_back(of_g, stride, <longdoublecomplex*>of_result, rows, n)
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
