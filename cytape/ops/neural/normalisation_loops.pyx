cimport numpy as cnp
from numpy cimport ndarray

import functools

import numpy as np

cnp.import_array()

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_FOR_CPU __attribute__((target_clones("avx2", "default")))
    #else
    #define CYTAPE_FOR_CPU
    #endif

    #if defined(__clang__)
    #define CYTAPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
    #elif defined(__GNUC__)
    #define CYTAPE_INDEPENDENT _Pragma("GCC ivdep")
    #else
    #define CYTAPE_INDEPENDENT
    #endif
    #define CYTAPE_CHANNELS CYTAPE_INDEPENDENT for (c = 0; c < channels; c++)

    /* Sums of a row, in eight parts, which the compiler vectorises. */
    #define CYTAPE_ROW_SUM(wide, total, term) { \
            wide parts[8] = {0}; \
            for (i = 0; i + 8 <= n; i += 8) { \
                for (j = 0; j < 8; j++) { const npy_intp k = i + j; parts[j] += term; } \
            } \
            for (j = 0; i < n; i++, j++) { const npy_intp k = i; parts[j] += term; } \
            total = ((parts[0] + parts[4]) + (parts[1] + parts[5])) \
                + ((parts[2] + parts[6]) + (parts[3] + parts[7])); \
        }
    /* Means over all rows of each group, repeated for each channel of the group. */
    #define CYTAPE_GROUP_MEANS(wide, means, term) { \
            CYTAPE_CHANNELS { means[c] = 0; } \
            for (i = 0; i < axes->n1; i++) { \
                const npy_intp row = i * channels; \
                CYTAPE_CHANNELS { const npy_intp k = row + c; means[c] += term; } \
            } \
            for (c = 0; c < channels; c += n2) { \
                wide total = 0; \
                for (j = 0; j < n2; j++) { total += means[c + j]; } \
                for (j = 0; j < n2; j++) { means[c + j] = total / (wide)n; } \
            } \
        }

    /* work: memory for three numbers for each channel */
    #define CYTAPE_NORMALISE(number, wide, root) \
        CYTAPE_FOR_CPU static void cytape_normalise_##number( \
                const cytape_axes *axes, const void *from, void *to, void *factors, void *work, \
                double epsilon, int centered) { \
            const npy_intp n2 = axes->n2, channels = axes->groups * n2, n = axes->n1 * n2; \
            const number *x = (const number *)from; \
            number *y = (number *)to, *reciprocal = (number *)factors; \
            wide *means = (wide *)work, *squares = means + channels; \
            npy_intp b, i, j, c; \
            for (b = 0; b < axes->outer; b++) { \
                if (axes->groups == 1) { \
                    wide mean = 0, square, factor; \
                    if (centered) { CYTAPE_ROW_SUM(wide, mean, x[k]) mean /= (wide)n; } \
                    CYTAPE_ROW_SUM(wide, square, (x[k] - mean) * (x[k] - mean)) \
                    factor = 1 / root(square / (wide)n + (wide)epsilon); \
                    for (i = 0; i < n; i++) { y[i] = (number)((x[i] - mean) * factor); } \
                    *reciprocal = (number)factor; \
                } else { \
                    CYTAPE_CHANNELS { means[c] = 0; } \
                    if (centered) CYTAPE_GROUP_MEANS(wide, means, x[k]) \
                    CYTAPE_GROUP_MEANS( \
                        wide, squares, (x[k] - means[c]) * (x[k] - means[c])) \
                    CYTAPE_CHANNELS { \
                        squares[c] = 1 / root(squares[c] + (wide)epsilon); \
                    } \
                    for (i = 0; i < axes->n1; i++) { \
                        const npy_intp row = i * channels; \
                        CYTAPE_CHANNELS { \
                            y[row + c] = (number)((x[row + c] - means[c]) * squares[c]); \
                        } \
                    } \
                    for (c = 0; c < axes->groups; c++) { \
                        reciprocal[c] = (number)squares[c * n2]; \
                    } \
                } \
                x += channels * axes->n1; \
                y += channels * axes->n1; \
                reciprocal += axes->groups; \
            } \
        } \
        CYTAPE_FOR_CPU static void cytape_slope_##number( \
                const cytape_axes *axes, const void *directions, const void *values, \
                const void *factors, void *to, void *work, int centered) { \
            const npy_intp n2 = axes->n2, channels = axes->groups * n2, n = axes->n1 * n2; \
            const number *t = (const number *)directions, *y = (const number *)values; \
            const number *reciprocal = (const number *)factors; \
            number *result = (number *)to; \
            wide *means = (wide *)work, *products = means + channels; \
            wide *repeated = products + channels; \
            npy_intp b, i, j, c; \
            for (b = 0; b < axes->outer; b++) { \
                if (axes->groups == 1) { \
                    wide mean = 0, share; \
                    if (centered) { CYTAPE_ROW_SUM(wide, mean, t[k]) mean /= (wide)n; } \
                    CYTAPE_ROW_SUM(wide, share, (wide)y[k] * t[k]) \
                    share /= (wide)n; \
                    for (i = 0; i < n; i++) { \
                        result[i] = (number)(*reciprocal * (t[i] - y[i] * share - mean)); \
                    } \
                } else { \
                    CYTAPE_CHANNELS { means[c] = 0; } \
                    if (centered) CYTAPE_GROUP_MEANS(wide, means, t[k]) \
                    CYTAPE_GROUP_MEANS(wide, products, (wide)y[k] * t[k]) \
                    for (c = 0; c < channels; c++) { repeated[c] = reciprocal[c / n2]; } \
                    for (i = 0; i < axes->n1; i++) { \
                        const npy_intp row = i * channels; \
                        CYTAPE_CHANNELS { \
                            result[row + c] = (number)(repeated[c] * ( \
                                t[row + c] - y[row + c] * products[c] - means[c])); \
                        } \
                    } \
                } \
                t += channels * axes->n1; \
                y += channels * axes->n1; \
                result += channels * axes->n1; \
                reciprocal += axes->groups; \
            } \
        }
    CYTAPE_NORMALISE(npy_float, double, sqrt)
    CYTAPE_NORMALISE(npy_double, double, sqrt)
    CYTAPE_NORMALISE(npy_longdouble, npy_longdouble, sqrtl)
    typedef void (*cytape_normalise)(
        const cytape_axes *, const void *, void *, void *, void *, double, int);
    typedef void (*cytape_slope)(const cytape_axes *, const void *, const void *, const void *,
                                 void *, void *, int);
    /* In the order of TYPES. */
    static const cytape_normalise cytape_normalise_loops[] = {
        cytape_normalise_npy_float, cytape_normalise_npy_double, cytape_normalise_npy_longdouble};
    static const cytape_slope cytape_slope_loops[] = {
        cytape_slope_npy_float, cytape_slope_npy_double, cytape_slope_npy_longdouble};
    """
    ctypedef void (*Normalise "cytape_normalise")(
        const Axes*, const void*, void*, void*, void*, double, int) noexcept nogil
    ctypedef void (*Slope "cytape_slope")(
        const Axes*, const void*, const void*, const void*, void*, void*, int) noexcept nogil
    const Normalise* cytape_normalise_loops
    const Slope* cytape_slope_loops

cdef list TYPES = [cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_LONGDOUBLE]


@functools.lru_cache(1024)
def four_axes(tuple shape, tuple axes):
    """Return four extents of an array, which is normalised over the second and the fourth axis.

    None: the array must be transposed first.
    """
    cdef list extents = [1]  # of kept and of normalised axes in turn
    cdef bint normalised
    cdef set chosen = {axis % len(shape) for axis in axes}
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        normalised = axis in chosen
        if (len(extents) % 2 == 0) != normalised:
            extents.append(1)
        extents[len(extents) - 1] *= n
    if len(extents) == 2:  # a row
        extents = [extents[0], 1, 1, extents[1]]
    return (*extents, *[1] * (4 - len(extents))) if len(extents) <= 4 else None


cdef int fill(Axes* axes, tuple extents) except -1:
    axes.outer, axes.n1, axes.groups, axes.n2 = extents
    return 0


def normalise(x, extents, double epsilon, bint centered):
    """Return normalised values, and the reciprocals of their standard deviations.

    Parameters
    ----------
    x : ndarray of float32, float64 or longdouble
    extents : tuple of int
        As `four_axes` returns them.
    epsilon : float
    centered : bool
        Whether to subtract the mean first.
    """
    cdef Axes axes
    cdef ndarray given = np.require(x, x.dtype.newbyteorder("="), "CA")
    cdef ndarray y = np.empty(x.shape, given.dtype)
    cdef ndarray reciprocal, work
    cdef Normalise loop = cytape_normalise_loops[TYPES.index(cnp.PyArray_TYPE(given))]
    fill(&axes, extents)
    reciprocal = np.empty(axes.outer * axes.groups, given.dtype)
    work = np.empty(3 * axes.groups * axes.n2 if axes.groups > 1 else 0, np.longdouble)
    with nogil:
        loop(&axes, cnp.PyArray_DATA(given), cnp.PyArray_DATA(y), cnp.PyArray_DATA(reciprocal),
             cnp.PyArray_DATA(work), epsilon, centered)
    return y, reciprocal


def slope(t, y, reciprocal, extents, bint centered):
    """Return the derivative of the values that `normalise` returned, times `t`."""
    cdef Axes axes
    cdef object dtype = np.result_type(t, y, np.float32)
    cdef ndarray directions = np.require(t, dtype, "CA"), values = np.require(y, dtype, "CA")
    cdef ndarray factors = np.require(reciprocal, dtype, "CA"), work
    cdef ndarray result = np.empty(t.shape, dtype)
    cdef Slope loop = cytape_slope_loops[TYPES.index(cnp.PyArray_TYPE(directions))]
    fill(&axes, extents)
    work = np.empty(3 * axes.groups * axes.n2 if axes.groups > 1 else 0, np.longdouble)
    with nogil:
        loop(&axes, cnp.PyArray_DATA(directions), cnp.PyArray_DATA(values),
             cnp.PyArray_DATA(factors), cnp.PyArray_DATA(result), cnp.PyArray_DATA(work), centered)
    return result
