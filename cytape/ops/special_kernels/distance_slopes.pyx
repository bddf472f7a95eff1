cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport NAN, copysign, fabs, pow
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

cdef int64_t* effort = effort_so_far()
METRICS = {
    "cityblock": CITYBLOCK, "chebyshev": CHEBYSHEV, "minkowski": MINKOWSKI, "canberra": CANBERRA,
    "braycurtis": BRAYCURTIS}


def slopes(of_x, of_y, of_g, metric, weights=None, double p=2):
    """Return the gradients of a table of distances in both arrays of points.

    Parameters
    ----------
    of_x, of_y : ndarray
        Points, in rows, of float64.
    of_g : ndarray
        Gradient of the table, of float64.
    metric : str
        One of `METRICS`.
    weights : ndarray, optional
        Of each coordinate.
    p : float
        Order of "minkowski".

    Returns
    -------
    tuple of ndarray

    Raises
    ------
    ValueError
        If shapes or dtypes do not fit.
    """
    cdef ndarray x = np.ascontiguousarray(of_x), y = np.ascontiguousarray(of_y)
    cdef ndarray g = np.ascontiguousarray(of_g)
    cdef ndarray w = np.ones(x.shape[1] if x.ndim == 2 else 0) if weights is None else (
        np.ascontiguousarray(weights))
    if not (x.dtype == y.dtype == g.dtype == w.dtype == np.float64 and x.ndim == y.ndim == 2
            and x.shape[1] == y.shape[1] and g.ndim == 2 and w.ndim == 1
            and g.shape[0] == x.shape[0] and g.shape[1] == y.shape[0]
            and w.shape[0] == x.shape[1]):
        raise ValueError(
            "expected float64 arrays of shapes (n, d), (m, d), (n, m) and (d,), got "
            f"{(<object>x).shape}, {(<object>y).shape}, {(<object>g).shape} and "
            f"{(<object>w).shape}")
    cdef ndarray gx = np.zeros((x.shape[0], x.shape[1])), gy = np.zeros((y.shape[0], y.shape[1]))
    cdef npy_intp n = x.shape[0], m = y.shape[0], d = x.shape[1], i, j
    cdef Metric kind = METRICS[metric]
    cdef double* of_weights = <double*>cnp.PyArray_DATA(w)
    cdef double* row
    cdef double* column
    cdef double* in_row
    cdef double* in_column
    cdef double gradient
    effort[0] += g.nbytes * d
    with nogil:
        for i in range(n):
            row = <double*>cnp.PyArray_DATA(x) + i * d
            in_row = <double*>cnp.PyArray_DATA(gx) + i * d
            for j in range(m):
                gradient = (<double*>cnp.PyArray_DATA(g))[i * m + j]
                if gradient == 0:
                    continue
                column = <double*>cnp.PyArray_DATA(y) + j * d
                in_column = <double*>cnp.PyArray_DATA(gy) + j * d
                if kind == CITYBLOCK:
                    add_cityblock(row, column, of_weights, gradient, d, in_row, in_column)
                elif kind == CHEBYSHEV:
                    add_chebyshev(row, column, of_weights, gradient, d, in_row, in_column)
                elif kind == MINKOWSKI:
                    add_minkowski(row, column, of_weights, gradient, d, p, in_row, in_column)
                elif kind == CANBERRA:
                    add_canberra(row, column, of_weights, gradient, d, in_row, in_column)
                else:
                    add_braycurtis(row, column, of_weights, gradient, d, in_row, in_column)
    return gx, gy


cdef inline double sign(double x) noexcept nogil:
    """Return the sign of a number, 0 of 0 and NaN of NaN; its branches are predictable."""
    if x == 0 or x != x:
        return x
    return copysign(1.0, x)


cdef inline void add_cityblock(
        double* x, double* y, double* w, double g, npy_intp d, double* gx,
        double* gy) noexcept nogil:
    cdef npy_intp k
    cdef double slope
    for k in range(d):
        slope = g * w[k] * sign(x[k] - y[k])
        gx[k] += slope
        gy[k] -= slope


cdef inline void add_chebyshev(
        double* x, double* y, double* w, double g, npy_intp d, double* gx,
        double* gy) noexcept nogil:
    """Share the gradient among the coordinates with the largest difference."""
    cdef npy_intp k, n = 0
    cdef double largest = 0, size, slope
    cdef bint has_nan = False
    for k in range(d):
        size = fabs(x[k] - y[k]) if w[k] > 0 else 0.0
        largest = size if size > largest else largest
        has_nan |= size != size
    if has_nan:
        largest = NAN
    for k in range(d):
        n += fabs(x[k] - y[k]) == largest and w[k] > 0
    if largest == 0:
        return
    for k in range(d):
        if has_nan or fabs(x[k] - y[k]) == largest and w[k] > 0:
            slope = NAN if has_nan else g / n * sign(x[k] - y[k])
            gx[k] += slope
            gy[k] -= slope


cdef inline void add_minkowski(double* x, double* y, double* w, double g, npy_intp d, double p,
                               double* gx, double* gy) noexcept nogil:
    cdef npy_intp k
    cdef double total = 0, size, slope, scale
    for k in range(d):
        total += w[k] * pow(fabs(x[k] - y[k]), p)
    if total == 0:
        return
    scale = g * pow(total, 1 / p - 1)
    for k in range(d):
        size = fabs(x[k] - y[k])
        if size != 0:
            slope = scale * w[k] * pow(size, p - 1) * sign(x[k] - y[k])
            gx[k] += slope
            gy[k] -= slope


cdef inline void add_canberra(
        double* x, double* y, double* w, double g, npy_intp d, double* gx,
        double* gy) noexcept nogil:
    cdef npy_intp k
    cdef double scale, rest
    for k in range(d):
        scale = fabs(x[k]) + fabs(y[k])
        if scale != 0:
            rest = fabs(x[k] - y[k]) / scale
            scale = g * w[k] / scale
            gx[k] += scale * (sign(x[k] - y[k]) - rest * sign(x[k]))
            gy[k] -= scale * (sign(x[k] - y[k]) + rest * sign(y[k]))


cdef inline void add_braycurtis(
        double* x, double* y, double* w, double g, npy_intp d, double* gx,
        double* gy) noexcept nogil:
    cdef npy_intp k
    cdef double upper = 0, lower = 0, slope, rest, scale
    for k in range(d):
        upper += w[k] * fabs(x[k] - y[k])
        lower += w[k] * fabs(x[k] + y[k])
    scale = g / lower
    upper /= lower
    for k in range(d):
        slope = scale * w[k] * sign(x[k] - y[k])
        rest = scale * w[k] * upper * sign(x[k] + y[k])
        gx[k] += slope - rest
        gy[k] -= slope + rest
