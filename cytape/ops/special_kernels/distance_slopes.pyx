cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport INFINITY, NAN, pow
from libc.stdint cimport int64_t
from libc.string cimport memset
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

ctypedef void (*Terms)(npy_intp n, double x, double w, double p, const double* y, double* one,
                       double* other) noexcept nogil
ctypedef double (*Slopes)(npy_intp n, double x, double w, double p, const double* y,
                          const double* scale, const double* extra,
                          double* gradient) noexcept nogil

cdef extern from *:
    """
    #include <math.h>
    #define CYTAPE_BLOCK 256  /* columns of the table; a multiple of 8 */
    #define CYTAPE_SIGN(x) ((x) != (x) ? (x) : (x) > 0 ? 1.0 : (x) < 0 ? -1.0 : 0.0)

    /* Adds a coordinate's terms to sums of n pairs. */
    #define CYTAPE_TERMS(name, ...) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_##name( \\
                npy_intp n, double x, double w, double p, const double *restrict y, \\
                double *restrict one, double *restrict other) { \\
            npy_intp j; \\
            (void)w; (void)p; (void)other; \\
            for (j = 0; j < n; j++) { __VA_ARGS__; } \\
        }
    CYTAPE_TERMS(largest, {  /* which stays NaN: no number is larger */
        const double size = fabs(x - y[j]);
        one[j] = (size > one[j]) | (size != size) ? size : one[j];
    })
    CYTAPE_TERMS(count_largest, other[j] += fabs(x - y[j]) == one[j] ? 1.0 : 0.0)
    CYTAPE_TERMS(powers, one[j] += w * pow(fabs(x - y[j]), p))
    CYTAPE_TERMS(sizes, {
        one[j] += w * fabs(x - y[j]);
        other[j] += w * fabs(x + y[j]);
    })

    /* Subtracts from the gradients of n points in one coordinate, and returns the sum of those of
       the other point of each pair. n is a multiple of 8, and s the scale of a pair. */
    #define CYTAPE_SLOPES(name, ...) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static double cytape_##name( \\
                npy_intp n, double x, double w, double p, const double *restrict y, \\
                const double *restrict scale, const double *restrict extra, \\
                double *restrict gradient) { \\
            npy_intp i, j; \\
            double terms[CYTAPE_BLOCK], sums[8] = {0}; \\
            (void)p; (void)extra; \\
            for (i = 0; i < n; i++) { \\
                const double s = scale[i] * w, sign = CYTAPE_SIGN(x - y[i]); \\
                double of_x, of_y; \\
                __VA_ARGS__; \\
                terms[i] = s != 0 ? of_x : 0.0; \\
                gradient[i] -= s != 0 ? of_y : 0.0; \\
            } \\
            for (i = 0; i < n; i += 8) { \\
                for (j = 0; j < 8; j++) { sums[j] += terms[i + j]; } \\
            } \\
            return ((sums[0] + sums[1]) + (sums[2] + sums[3])) \\
                + ((sums[4] + sums[5]) + (sums[6] + sums[7])); \\
        }
    CYTAPE_SLOPES(cityblock, of_x = of_y = s * sign)
    CYTAPE_SLOPES(chebyshev, of_x = of_y = fabs(x - y[i]) == extra[i] ? s * sign : s - s)
    CYTAPE_SLOPES(minkowski, {
        const double size = fabs(x - y[i]);
        of_x = of_y = size == 0 ? 0.0 : s * pow(size, p - 1) * sign;
    })
    CYTAPE_SLOPES(canberra, {
        const double total = fabs(x) + fabs(y[i]), inverse = 1 / total;
        const double rest = fabs(x - y[i]) * inverse;
        of_x = total == 0 ? 0.0 : s * inverse * (sign - rest * CYTAPE_SIGN(x));
        of_y = total == 0 ? 0.0 : s * inverse * (sign + rest * CYTAPE_SIGN(y[i]));
    })
    CYTAPE_SLOPES(braycurtis, {
        const double rest = extra[i] * CYTAPE_SIGN(x + y[i]);
        of_x = s * (sign - rest);
        of_y = s * (sign + rest);
    })
    """
    enum:
        BLOCK "CYTAPE_BLOCK"
    Terms cytape_largest, cytape_count_largest, cytape_powers, cytape_sizes
    Slopes cytape_cityblock, cytape_chebyshev, cytape_minkowski, cytape_canberra, cytape_braycurtis

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
    cdef Metric kind = METRICS[metric]
    if kind == CHEBYSHEV:
        w = (w > 0).astype(np.float64)
    cdef npy_intp n = x.shape[0], m = y.shape[0], d = x.shape[1], block, start, i, j, k
    cdef npy_intp count, first
    cdef ndarray gx = np.zeros((n, d)), gy = np.zeros((m, d)), memory = np.zeros((2, d, BLOCK))
    cdef double* of_block = <double*>cnp.PyArray_DATA(memory)  # a row for each coordinate
    cdef double* in_block = of_block + d * BLOCK
    cdef double* to = <double*>cnp.PyArray_DATA(gy)
    cdef double* points = <double*>cnp.PyArray_DATA(y)
    cdef double* of_w = <double*>cnp.PyArray_DATA(w)
    cdef double* row
    cdef double* in_row
    cdef double scale[BLOCK]
    cdef double extra[BLOCK]
    cdef Slopes[5] add = [cytape_cityblock, cytape_chebyshev, cytape_minkowski, cytape_canberra,
                          cytape_braycurtis]
    effort[0] += g.nbytes * d
    with nogil:
        for block in range((m + BLOCK - 1) // BLOCK):
            start = block * BLOCK
            count = min(BLOCK, m - start)
            for j in range(count):
                for k in range(d):
                    of_block[k * BLOCK + j] = points[(start + j) * d + k]
            memset(in_block, 0, d * BLOCK * sizeof(double))
            for i in range(n):
                row = <double*>cnp.PyArray_DATA(x) + i * d
                in_row = <double*>cnp.PyArray_DATA(gx) + i * d
                first = first_of(<double*>cnp.PyArray_DATA(g) + i * m + start, count)
                if first >= count:
                    continue
                scales(<double*>cnp.PyArray_DATA(g) + i * m + start + first, row, of_w, p,
                       of_block + first, d, count - first, kind, scale, extra)
                for k in range(d):
                    in_row[k] += add[<int>kind](
                        (count + 7) // 8 * 8 - first, row[k], of_w[k], p,
                        of_block + k * BLOCK + first, scale, extra, in_block + k * BLOCK + first)
            for j in range(count):
                for k in range(d):
                    to[(start + j) * d + k] = in_block[k * BLOCK + j]
    return gx, gy


cdef void fold(Terms add, double* x, double* w, double p, double* of_block, npy_intp d,
               npy_intp n, double* one, double* other) noexcept nogil:
    """Add the terms of all coordinates that have a weight."""
    cdef npy_intp k
    for k in range(d):
        if w[k] != 0:
            add(n, x[k], w[k], p, of_block + k * BLOCK, one, other)


cdef npy_intp first_of(double* g, npy_intp n) noexcept nogil:
    """Return the index of the first gradient that is not 0, rounded down to a multiple of 8."""
    cdef npy_intp j
    for j in range(n):
        if g[j] != 0:
            return j // 8 * 8
    return n


cdef void scales(double* g, double* x, double* w, double p, double* of_block, npy_intp d,
                 npy_intp n, Metric kind, double* scale, double* extra) noexcept nogil:
    """Compute the gradients of pairs times a factor of all coordinates; fill up with 0.

    `extra` is the largest difference, or the distance.
    """
    cdef double other[BLOCK]
    cdef npy_intp j
    for j in range(n):
        scale[j] = g[j]
        extra[j] = other[j] = 0
    for j in range(n, (n + 7) // 8 * 8):
        scale[j] = extra[j] = 0
    if kind == CHEBYSHEV:  # coordinates with the largest difference share the gradient
        fold(cytape_largest, x, w, p, of_block, d, n, extra, other)
        fold(cytape_count_largest, x, w, p, of_block, d, n, extra, other)
    elif kind == MINKOWSKI:
        fold(cytape_powers, x, w, p, of_block, d, n, extra, other)
    elif kind == BRAYCURTIS:
        fold(cytape_sizes, x, w, p, of_block, d, n, extra, other)
    for j in range(n):
        if g[j] == 0:
            continue
        if kind == CHEBYSHEV:
            scale[j] = NAN if extra[j] != extra[j] else 0 if extra[j] == 0 else g[j] / other[j]
        elif kind == MINKOWSKI:
            scale[j] = 0 if extra[j] == 0 else NAN if extra[j] == INFINITY else (
                g[j] * pow(extra[j], 1 / p - 1))  # NaN where powers overflowed
        elif kind == BRAYCURTIS:
            scale[j] = g[j] / other[j]
            extra[j] /= other[j]
