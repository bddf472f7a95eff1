cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport ndarray, npy_intp

from .divided_products cimport by_division
from .ties cimport in_c_order, lines_of

import numpy as np

cnp.import_array()

cdef struct Lines:
    bint cumulative  # one g, or one returned tangent, per element, not per slice
    char* g
    char* x
    char* t
    char* result
    char* kept
    npy_intp n, step, lane  # elements of a line, distance from one to the next, ...
    npy_intp n_slices       # ... and from one line to the next
    npy_intp slice_step, slice_lane  # the same for arrays with one number per slice
    const npy_intp* starts

cdef int64_t* effort = effort_so_far()


def products_derivative(x, axis, starts=None, g=None, t=None, product=None,
                        bint cumulative=False):
    """Return derivatives of the products of lines or slices, or of cumulative products of these.

    A gradient or tangent of zero adds nothing, even if the product of the others is infinite.

    Parameters
    ----------
    x : ndarray
        The factors, of `float32`, `float64`, `longdouble` or a complex dtype of these.
    axis : None, int or tuple of int
        The axes of a line.
    starts : ndarray, optional
        Begins of the slices of a line, in order; each ends at the next one. By default a line is
        one slice. Elements before the first slice are in no product.
    g : ndarray, optional
        The gradients, one per product. If given, the gradient of the factors is returned, otherwise
        the tangent of the products.
    t : ndarray, optional
        A tangent of the factors. With `g` the tangent of the gradient is returned.
    product : ndarray, optional
        The products of lines, if they are known.
    cumulative : bool, optional
        Whether each slice has one product per element, of the elements up to this one.

    Returns
    -------
    ndarray or None
        In the shape of `x`; a tangent of products has one element per product. None if the axes are
        not adjacent.

    Raises
    ------
    TypeError
        If the factors are of another dtype, or the other arrays do not fit.
    """
    cdef npy_intp[3] lines
    cdef ndarray factors = in_c_order(x), begins, result
    cdef npy_intp at_once = 0
    cdef ndarray gradients = None if g is None else in_c_order(g)
    cdef ndarray tangents = None if t is None else in_c_order(t)
    cdef ndarray products = None
    cdef Lines of
    cdef npy_intp k
    cdef int type_num = cnp.PyArray_TYPE(factors)
    if not lines_of(factors, axis, lines):
        return None
    of.n, of.starts, of.n_slices = lines[1], &at_once, 1
    if starts is not None:
        begins = np.ascontiguousarray(starts, np.intp)
        of.starts, of.n_slices = <npy_intp*>cnp.PyArray_DATA(begins), begins.size
    cdef npy_intp n_products = (
        factors.size if cumulative else lines[0] * of.n_slices * lines[2])
    if (not cnp.NPY_FLOAT <= type_num <= cnp.NPY_CLONGDOUBLE
            or not fits(factors, type_num, factors.size)
            or not fits(gradients, type_num, n_products)
            or not fits(tangents, type_num, factors.size)):
        raise TypeError(
            "expected factors, gradients and tangents of matching shapes and of one dtype, floats "
            f"or complex numbers of at least single precision, got factors of {x.dtype}: convert "
            "them first")
    for k in range(of.n_slices):
        if not (of.starts[k - 1] if k else 0) <= of.starts[k] < max(of.n, 1):
            raise ValueError(f"starts of slices of {of.n} elements must be in increasing order, "
                             f"got {begins}")
    if g is None and not cumulative:
        result = cnp.PyArray_EMPTY(1, &n_products, type_num, 0)
    else:
        result = cnp.PyArray_EMPTY(factors.ndim, cnp.PyArray_DIMS(factors), type_num, 0)
    if not result.size or not factors.size or not of.n_slices:
        result.fill(0)
        return result
    effort[0] += factors.nbytes
    of.cumulative = cumulative
    of.g = NULL if gradients is None else cnp.PyArray_BYTES(gradients)
    of.t = NULL if tangents is None else cnp.PyArray_BYTES(tangents)
    of.x, of.result = cnp.PyArray_BYTES(factors), cnp.PyArray_BYTES(result)
    of.kept = <char*>malloc(max(LANES * lines[1], lines[2]) * factors.itemsize)
    if of.kept == NULL:
        raise MemoryError()
    if product is not None:
        products = in_c_order(product)
        if not fits(products, type_num, n_products):
            products = None
    cdef char* of_products = NULL if products is None else cnp.PyArray_BYTES(products)
    with nogil:
        if not cumulative and (of.g == NULL or of.t == NULL) and by_division(
                type_num, of.g, of.x, of.t, of_products, of.result, of.kept, lines, of.starts,
                of.n_slices):
            pass
        elif type_num == cnp.NPY_FLOAT:
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


cdef inline bint fits(ndarray x, int type_num, npy_intp size):
    return x is None or (
        cnp.PyArray_TYPE(x) == type_num and cnp.PyArray_ISNOTSWAPPED(x) and x.size == size)


cdef void go_through(Lines* of, const npy_intp* lines, number _) noexcept nogil:
    """Process lines, several at once if they are interleaved or latency-bound."""
    cdef npy_intp block, first, at, at_slices, n_beside
    cdef bint is_columns = lines[2] > 1
    of.step = of.slice_step = lines[2]
    of.lane = 1 if is_columns else lines[1]
    of.slice_lane = 1 if is_columns else of.n_slices
    n_beside = lines[2] if is_columns else lines[0]
    for block in range(lines[0] if is_columns else 1):
        first = 0
        while first < n_beside:
            at = block * lines[1] * lines[2] + first * of.lane
            at_slices = block * of.n_slices * lines[2] + first * of.slice_lane
            if first + LANES > n_beside or not is_columns and of.g != NULL:
                differentiate(of, at, at_slices, 1, of.lane, _)
                first += 1
            elif is_columns:
                differentiate(of, at, at_slices, LANES, 1, _)
                first += LANES
            else:
                differentiate(of, at, at_slices, LANES, of.lane, _)
                first += LANES


cdef inline void differentiate(Lines* of, npy_intp at, npy_intp at_slices, int width,
                               npy_intp lane, number _) noexcept nogil:
    """Process lines that are `lane` elements apart, slice after slice."""
    cdef number* result = <number*>of.result + at
    cdef npy_intp j, i, start, stop
    cdef int k
    for j in range(of.n_slices):
        start, stop = of.starts[j], of.starts[j + 1] if j + 1 < of.n_slices else of.n
        if of.g == NULL:
            move(of, at, at_slices, start, stop, width, lane, _)
        elif of.t == NULL:
            give_back(of, at, at_slices, start, stop, width, lane, _)
        else:
            move_back(of, at, at_slices, start, stop, width, lane, _)
        at_slices += of.slice_step
    if of.g != NULL or of.cumulative:
        for i in range(of.starts[0]):
            for k in range(width):
                result[i * of.step + k * lane] = 0


cdef inline void move(Lines* of, npy_intp at, npy_intp at_slices, npy_intp start, npy_intp stop,
                      int width, npy_intp lane, number _) noexcept nogil:
    """Tangents of products: d[i] = x[i] * d[i - 1] + t[i] * p[i - 1]."""
    cdef number* x = <number*>of.x + at
    cdef number* t = <number*>of.t + at
    cdef number* result = <number*>of.result + (at if of.cumulative else at_slices)
    cdef number[LANES] product, moved
    cdef bint[LANES] stays  # all tangents so far are zero
    cdef npy_intp i, place
    cdef int k
    for k in range(width):
        product[k] = 1
        moved[k] = 0
        stays[k] = True
    for i in range(start, stop):
        for k in range(width):
            place = i * of.step + k * lane
            follow(&product[k], &moved[k], &stays[k], x[place], t[place])
            if of.cumulative:
                result[place] = moved[k]
    if not of.cumulative:
        for k in range(width):
            result[k * of.slice_lane] = moved[k]


cdef inline void follow(number* product, number* moved, bint* stays, number x,
                        number t) noexcept nogil:
    """Multiply a product by its next factor, and update its tangent."""
    if not stays[0]:
        moved[0] = moved[0] * x
    if t != 0:
        moved[0] = moved[0] + product[0] * t
        stays[0] = False
    product[0] = product[0] * x


cdef inline void give_back(Lines* of, npy_intp at, npy_intp at_slices, npy_intp start,
                           npy_intp stop, int width, npy_intp lane, number _) noexcept nogil:
    """Gradient of element i: the product of elements before it, times
    r[i] = g[i] + x[i + 1] * r[i + 1].

    Both recurrences run at once, from either end, and are multiplied after they meet.
    """
    cdef number* g = <number*>of.g + (at if of.cumulative else at_slices)
    cdef number* x = <number*>of.x + at
    cdef number* result = <number*>of.result + at
    cdef number[LANES] product, later, next_x
    cdef npy_intp[LANES] still  # all gradients from there on are zero
    cdef npy_intp i, j, place, other, middle = start + (stop - start) // 2
    cdef number gradient
    cdef int k
    for k in range(width):
        product[k] = 1
        later[k] = next_x[k] = 0
        still[k] = stop
    for i in range(start, stop):
        j = start + stop - 1 - i
        for k in range(width):
            place, other = i * of.step + k * lane, j * of.step + k * lane
            gradient = gradient_at(of, g, other, k, i == start)
            later[k] = gradient if still[k] == j + 1 else gradient + next_x[k] * later[k]
            if still[k] == j + 1 and gradient == 0:
                still[k] = j
            next_x[k] = x[other]
            if i < middle:
                result[place], result[other] = product[k], later[k]
            elif i == j:
                result[place] = 0 if i >= still[k] else product[k] * later[k]
            else:
                result[place] = 0 if i >= still[k] else product[k] * result[place]
                result[other] = 0 if j >= still[k] else result[other] * later[k]
            product[k] = product[k] * x[place]


cdef inline void move_back(Lines* of, npy_intp at, npy_intp at_slices, npy_intp start,
                           npy_intp stop, int width, npy_intp lane, number _) noexcept nogil:
    """Tangent of the result of `give_back`, for a tangent of the factors.

    Zero gradients and tangents add nothing, as there, even times infinite products.
    """
    cdef number* g = <number*>of.g + (at if of.cumulative else at_slices)
    cdef number* x = <number*>of.x + at
    cdef number* t = <number*>of.t + at
    cdef number* result = <number*>of.result + at  # temporarily the tangents, or r
    cdef number* kept = <number*>of.kept           # products, or tangents of r
    cdef number[LANES] product, moved, later, moved_later, next_x, next_t
    cdef bint[LANES] stays
    cdef npy_intp[LANES] still, later_stays  # g from there on, and terms of t in r, are zero
    cdef npy_intp i, j, place, other, middle = start + (stop - start) // 2
    cdef number gradient
    cdef int k
    for k in range(width):
        product[k] = 1
        moved[k] = 0
        stays[k] = True
        later[k] = moved_later[k] = next_x[k] = next_t[k] = 0
        still[k] = later_stays[k] = stop
    for i in range(start, stop):
        j = start + stop - 1 - i
        for k in range(width):
            place, other = i * of.step + k * lane, j * of.step + k * lane
            if later_stays[k] > j + 1:
                moved_later[k] = next_x[k] * moved_later[k]
            if next_t[k] != 0 and still[k] > j + 1:
                moved_later[k] = moved_later[k] + next_t[k] * later[k]
            elif later_stays[k] == j + 1:
                later_stays[k] = j
            gradient = gradient_at(of, g, other, k, i == start)
            later[k] = gradient if still[k] == j + 1 else gradient + next_x[k] * later[k]
            if still[k] == j + 1 and gradient == 0:
                still[k] = j
            next_x[k], next_t[k] = x[other], t[other]
            if i < middle:
                result[place], kept[i * width + k] = moved[k], product[k]
                result[other], kept[j * width + k] = later[k], moved_later[k]
            elif i == j:
                result[place] = tangent_of_product(
                    product[k], moved[k], later[k], moved_later[k], i >= still[k],
                    i >= later_stays[k])
            else:
                result[place] = tangent_of_product(
                    product[k], moved[k], result[place], kept[i * width + k], i >= still[k],
                    i >= later_stays[k])
                result[other] = tangent_of_product(
                    kept[j * width + k], result[other], later[k], moved_later[k], j >= still[k],
                    j >= later_stays[k])
            follow(&product[k], &moved[k], &stays[k], x[place], t[place])


cdef inline number gradient_at(Lines* of, const number* g, npy_intp place, int k,
                               bint at_end) noexcept nogil:
    """Return the gradient that enters r: of each element, or of the last one for its slice."""
    if of.cumulative:
        return g[place]
    return g[k * of.slice_lane] if at_end else 0


cdef inline number tangent_of_product(
        number product, number moved, number later, number moved_later, bint still,
        bint later_stays) noexcept nogil:
    cdef number total = 0 if still or moved == 0 else moved * later
    return total if later_stays else total + product * moved_later
