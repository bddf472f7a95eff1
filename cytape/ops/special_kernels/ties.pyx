cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

ctypedef void (*share_float_t)(
    const float*, const float*, const float*, float*, float*, npy_intp, npy_intp, npy_intp, bint,
    bint) noexcept nogil
ctypedef void (*share_double_t)(
    const double*, const double*, const double*, double*, double*, npy_intp, npy_intp, npy_intp,
    bint, bint) noexcept nogil

cdef extern from *:
    """
    #include <math.h>
    #define CYTAPE_PART 512  /* elements, of which it is known whether one is the extremum */

    /* Of a vector: what lies between the parts with the first and the last of the extrema is
       read again, all others are written at once, or left alone. */
    #define CYTAPE_SHARE(type, kind, OF, SIGNED, AT) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_share_line_##kind( \\
                const type gradient, const type *x, const type y, type *out, npy_intp n, \\
                int skip_nan, int adds) { \\
            npy_intp i, start, ties = 0, first = n, last = 0; \\
            for (start = 0; start < n; start += CYTAPE_PART) { \\
                const npy_intp stop = n - start < CYTAPE_PART ? n : start + CYTAPE_PART; \\
                npy_intp here = 0; \\
                for (i = start; i < stop; i++) { here += OF(x[i]) == y; } \\
                if (here) { first = ties ? first : start; last = stop; ties += here; } \\
            } \\
            const type one = ties ? AT(y, gradient) / ties : 0; \\
            const type none = ties || skip_nan ? 0 : NAN; \\
            if (adds && none == 0) { \\
                for (i = first; i < last; i++) { \\
                    out[i] += OF(x[i]) == y ? SIGNED(one, x[i]) : 0; \\
                } \\
                return; \\
            } \\
            for (i = 0; i < first; i++) { out[i] = none; } \\
            for (i = first; i < last; i++) { \\
                out[i] = OF(x[i]) == y ? SIGNED(one, x[i]) : none; \\
            } \\
            for (i = last > first ? last : first; i < n; i++) { out[i] = none; } \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_share_columns_##kind( \\
                const type *g, const type *x, const type *y, type *out, type *shares, \\
                npy_intp n, npy_intp inner, int skip_nan, int adds) { \\
            npy_intp i, j; \\
            type *none = shares + inner; \\
            for (j = 0; j < inner; j++) { shares[j] = 0; } \\
            for (i = 0; i < n; i++) { \\
                const type *row = x + i * inner; \\
                for (j = 0; j < inner; j++) { shares[j] += OF(row[j]) == y[j] ? 1 : 0; } \\
            } \\
            for (j = 0; j < inner; j++) { \\
                none[j] = shares[j] || skip_nan ? 0 : NAN; \\
                shares[j] = shares[j] ? AT(y[j], g[j]) / shares[j] : 0; \\
            } \\
            for (i = 0; i < n; i++) { \\
                const type *row = x + i * inner; \\
                type *into = out + i * inner; \\
                if (adds) { \\
                    for (j = 0; j < inner; j++) { \\
                        into[j] += OF(row[j]) == y[j] ? SIGNED(shares[j], row[j]) : none[j]; \\
                    } \\
                    continue; \\
                } \\
                for (j = 0; j < inner; j++) { \\
                    into[j] = OF(row[j]) == y[j] ? SIGNED(shares[j], row[j]) : none[j]; \\
                } \\
            } \\
        } \\
        static void cytape_share_##kind(const type *g, const type *x, const type *y, type *out, \\
                                        type *shares, npy_intp blocks, npy_intp n, \\
                                        npy_intp inner, int skip_nan, int adds) { \\
            npy_intp k; \\
            for (k = 0; k < blocks; k++) { \\
                if (inner == 1) { \\
                    cytape_share_line_##kind(g[k], x + k * n, y[k], out + k * n, n, skip_nan, \\
                                             adds); \\
                } else { \\
                    cytape_share_columns_##kind(g + k * inner, x + k * n * inner, y + k * inner, \\
                                                out + k * n * inner, shares, n, inner, skip_nan, \\
                                                adds); \\
                } \\
            } \\
        }
    #define CYTAPE_ITSELF(x) (x)
    #define CYTAPE_AS_IT_IS(share, x) (share)
    #define CYTAPE_ANYWHERE(y, gradient) (gradient)
    CYTAPE_SHARE(float, float, CYTAPE_ITSELF, CYTAPE_AS_IT_IS, CYTAPE_ANYWHERE)
    CYTAPE_SHARE(double, double, CYTAPE_ITSELF, CYTAPE_AS_IT_IS, CYTAPE_ANYWHERE)
    /* Of magnitudes: with the element's sign, and none at 0. */
    #define CYTAPE_SIGNED(share, x) ((share) * copysign(1, x))
    #define CYTAPE_SIGNED_F(share, x) ((share) * copysignf(1, x))
    #define CYTAPE_BUT_AT_ZERO(y, gradient) ((y) == 0 ? 0 : (gradient))
    CYTAPE_SHARE(float, float_size, fabsf, CYTAPE_SIGNED_F, CYTAPE_BUT_AT_ZERO)
    CYTAPE_SHARE(double, double_size, fabs, CYTAPE_SIGNED, CYTAPE_BUT_AT_ZERO)
    """
    share_float_t cytape_share_float, cytape_share_float_size
    share_double_t cytape_share_double, cytape_share_double_size

cdef int64_t* effort = effort_so_far()


def shared_among_ties(g, ndarray x not None, y not None, axis, bint skip_nan, ndarray into=None,
                      bint signed=False):
    """Give each element that equals the extremum of its line an equal share of a gradient.

    Parameters
    ----------
    g, y : ndarray
        The gradients and the extrema, one for each line, in the order of the lines.
    x : ndarray
    axis : None, int or tuple of int
        The axes of the lines.
    skip_nan : bool
        Where none equals the extremum, which is NaN, there is no gradient; if not, it is NaN.
    into : ndarray, optional
        An earlier result for the same array, to which the shares are added.
    signed : bool, optional
        The extrema are those of magnitudes: a share has the element's sign, and is 0 at 0.

    Returns
    -------
    ndarray or None
        None where it is left to NumPy: other dtypes, and axes that are not side by side.
    """
    cdef int type_num = cnp.PyArray_TYPE(x)
    cdef npy_intp[3] lines
    cdef npy_intp blocks, n, inner
    cdef ndarray gradients, extrema
    cdef bint adds = into is not None
    cdef void* data
    cdef void* out
    cdef void* of_lines
    cdef void* extremes
    cdef void* shares
    if (type_num not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) or not x.dtype.isnative
            or g.dtype != x.dtype or y.dtype != x.dtype or not lines_of(x, axis, lines)):
        return None
    blocks, n, inner = lines[0], lines[1], lines[2]
    x, gradients, extrema = in_c_order(x), in_c_order(g), in_c_order(y)
    if gradients.size != blocks * inner or extrema.size != blocks * inner:
        return None
    if into is None:
        into = cnp.PyArray_EMPTY(x.ndim, cnp.PyArray_DIMS(x), type_num, 0)
    shares = malloc(2 * inner * x.itemsize + 1)
    if shares == NULL:
        raise MemoryError()
    effort[0] += x.nbytes
    data, out = cnp.PyArray_DATA(x), cnp.PyArray_DATA(into)
    of_lines, extremes = cnp.PyArray_DATA(gradients), cnp.PyArray_DATA(extrema)
    with nogil:
        if type_num == cnp.NPY_FLOAT:
            (cytape_share_float_size if signed else cytape_share_float)(
                <float*>of_lines, <float*>data, <float*>extremes, <float*>out, <float*>shares,
                blocks, n, inner, skip_nan, adds)
        else:
            (cytape_share_double_size if signed else cytape_share_double)(
                <double*>of_lines, <double*>data, <double*>extremes, <double*>out,
                <double*>shares, blocks, n, inner, skip_nan, adds)
    free(shares)
    return into


cdef bint lines_of(ndarray x, axis, npy_intp* lines) except -1:
    cdef int ndim = x.ndim, first = 0, last = x.ndim, i
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        first, last = ndim, 0
        for i in axes:
            i = i + ndim if i < 0 else i
            first, last = min(first, i), max(last, i + 1)
        if not axes or last - first != len(axes):
            return False
    if first < 0 or last > ndim:
        return False
    lines[0] = lines[1] = lines[2] = 1
    for i in range(ndim):
        lines[0 if i < first else 1 if i < last else 2] *= x.shape[i]
    return True


cdef ndarray in_c_order(x):
    if type(x) is ndarray and cnp.PyArray_ISCARRAY_RO(x):
        return x
    return np.ascontiguousarray(x)
