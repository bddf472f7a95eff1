cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from cytape.ops.special_kernels.ties cimport in_c_order, lines_of
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy cimport ndarray, npy_intp

import numpy as np

cnp.import_array()

ctypedef void (*spread_t)(
    const void*, const void*, const void*, void*, void*, npy_intp*, const npy_intp*, npy_intp,
    const npy_intp*, int) noexcept nogil
ctypedef void (*fold_t)(
    const void*, const void*, const void*, void*, npy_intp*, const npy_intp*, npy_intp,
    const npy_intp*) noexcept nogil

cdef extern from *:
    """
    #include <string.h>
    #define CYTAPE_PART 512  /* elements that are compared before one of them is looked for */

    static inline npy_intp cytape_end(const npy_intp *at, npy_intp k, npy_intp count, npy_intp n) {
        return k + 1 == count ? n : at[k + 1] > at[k] ? at[k + 1] : at[k] + 1;
    }

    /* A slice is n rows of `inner` elements, and each column is reduced. */
    #define CYTAPE_SLICES(kind, type) \\
        /* Give each element the gradient, or its opposite to all but the first. */ \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_repeat_##kind( \\
                const type *g, const type *x, const type *y, type *out, npy_intp *equal, \\
                npy_intp n, npy_intp inner, int negative) { \\
            npy_intp i, j; \\
            for (j = 0; j < inner; j++) { out[j] = g[j]; } \\
            if (inner == 1) { \\
                const type other = negative ? -*g : *g; \\
                for (i = 1; i < n; i++) { out[i] = other; } \\
                return; \\
            } \\
            for (i = 1; i < n; i++) { \\
                type *row = out + i * inner; \\
                if (negative) { \\
                    for (j = 0; j < inner; j++) { row[j] = -g[j]; } \\
                } else { \\
                    for (j = 0; j < inner; j++) { row[j] = g[j]; } \\
                } \\
            } \\
        } \\
        /* Halve a gradient at each tie, as a fold does, from the last one; or give it to NaN. */ \\
        static void cytape_halve_##kind( \\
                type share, const type *x, const type y, type *out, npy_intp equal, npy_intp n, \\
                npy_intp inner) { \\
            npy_intp i, nan = 0; \\
            for (i = 0; !equal && i < n; i++) { \\
                const int is_first = x[i * inner] != x[i * inner] && !nan++; \\
                out[i * inner] = is_first ? share : 0; \\
            } \\
            for (i = n - 1; equal && i >= 0; i--) { \\
                if (x[i * inner] == y) { \\
                    if (equal-- > 1) { share = share / 2; } \\
                    out[i * inner] = share; \\
                } \\
            } \\
        } \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_choose_##kind( \\
                const type *g, const type *x, const type *y, type *out, npy_intp *equal, \\
                npy_intp n, npy_intp inner, int negative) { \\
            npy_intp i, j; \\
            for (j = 0; j < inner; j++) { equal[j] = 0; } \\
            if (inner == 1) { \\
                const type extremum = *y, gradient = *g; \\
                npy_intp found = 0; \\
                for (i = 0; i < n; i++) { \\
                    const int is = x[i] == extremum; \\
                    found += is; \\
                    out[i] = is ? gradient : 0; \\
                } \\
                *equal = found; \\
            } else { \\
                for (i = 0; i < n; i++) { \\
                    const type *row = x + i * inner; \\
                    type *into = out + i * inner; \\
                    for (j = 0; j < inner; j++) { \\
                        const type gradient = g[j]; \\
                        const int is = row[j] == y[j]; \\
                        equal[j] += is; \\
                        into[j] = is ? gradient : 0; \\
                    } \\
                } \\
            } \\
            for (j = 0; j < inner; j++) { \\
                if (equal[j] != 1) { \\
                    cytape_halve_##kind(g[j], x + j, y[j], out + j, equal[j], n, inner); \\
                } \\
            } \\
        } \\
        typedef void (*cytape_into_##kind)( \\
            const type *, const type *, const type *, type *, npy_intp *, npy_intp, npy_intp, \\
            int); \\
        /* Write each slice once; add what another slice has an element of as well. */ \\
        static void cytape_spread_##kind( \\
                cytape_into_##kind write, const type *g, const type *x, const type *y, type *out, \\
                type *apart, npy_intp *equal, const npy_intp *at, npy_intp count, \\
                const npy_intp *lines, int negative) { \\
            const npy_intp n = lines[1], inner = lines[2]; \\
            npy_intp block, k, i; \\
            for (block = 0; block < lines[0]; block++) { \\
                npy_intp written = 0; \\
                for (k = 0; k < count; k++, g += inner, y += y ? inner : 0) { \\
                    const npy_intp start = at[k], stop = cytape_end(at, k, count, n); \\
                    const int again = start < written; \\
                    type *into = again ? apart : out + start * inner; \\
                    write(g, x + (x ? start * inner : 0), y, into, equal, stop - start, inner, \\
                          negative); \\
                    if (again) { \\
                        const npy_intp seen = stop < written ? stop : written; \\
                        const npy_intp both = (seen - start) * inner; \\
                        for (i = 0; i < both; i++) { out[start * inner + i] += apart[i]; } \\
                        memcpy(out + start * inner + both, apart + both, \\
                               ((stop - start) * inner - both) * sizeof(type)); \\
                    } else { \\
                        memset(out + written * inner, 0, \\
                               (start - written) * inner * sizeof(type)); \\
                    } \\
                    written = stop < written ? written : stop; \\
                } \\
                memset(out + written * inner, 0, (n - written) * inner * sizeof(type)); \\
                x += x ? n * inner : 0; \\
                out += n * inner; \\
            } \\
        } \\
        static void cytape_repeated_##kind( \\
                const void *g, const void *x, const void *y, void *out, void *apart, \\
                npy_intp *equal, const npy_intp *at, npy_intp count, const npy_intp *lines, \\
                int negative) { \\
            cytape_spread_##kind(cytape_repeat_##kind, g, x, y, out, apart, equal, at, count, \\
                                 lines, negative); \\
        } \\
        static void cytape_chosen_##kind( \\
                const void *g, const void *x, const void *y, void *out, void *apart, \\
                npy_intp *equal, const npy_intp *at, npy_intp count, const npy_intp *lines, \\
                int negative) { \\
            cytape_spread_##kind(cytape_choose_##kind, g, x, y, out, apart, equal, at, count, \\
                                 lines, negative); \\
        } \\
        /* The transpose of cytape_choose. */ \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_fold_##kind( \\
                const type *t, const type *x, const type *y, type *out, npy_intp *equal, \\
                npy_intp n, npy_intp inner) { \\
            npy_intp i, j, start; \\
            for (j = 0; j < inner; j++) { out[j] = equal[j] = 0; } \\
            for (start = 0; inner == 1 && start < n; start += CYTAPE_PART) { \\
                const npy_intp stop = n - start < CYTAPE_PART ? n : start + CYTAPE_PART; \\
                const type extremum = *y; \\
                npy_intp here = 0; \\
                for (i = start; i < stop; i++) { here += x[i] == extremum; } \\
                for (i = start; here && i < stop; i++) { \\
                    if (x[i] == extremum) { *out = (*equal)++ ? *out / 2 + t[i] / 2 : t[i]; } \\
                } \\
            } \\
            for (i = 0; inner > 1 && i < n; i++) { \\
                for (j = 0; j < inner; j++) { \\
                    const type own = t[i * inner + j], tie = out[j] / 2 + own / 2; \\
                    const type last = equal[j] ? tie : own; \\
                    const int is = x[i * inner + j] == y[j]; \\
                    out[j] = is ? last : out[j]; \\
                    equal[j] += is; \\
                } \\
            } \\
            for (j = 0; j < inner; j++) { \\
                for (i = 0; !equal[j] && i < n; i++) { \\
                    if (x[i * inner + j] != x[i * inner + j]) { \\
                        out[j] = t[i * inner + j]; \\
                        equal[j] = 1; \\
                    } \\
                } \\
            } \\
        } \\
        static void cytape_folded_##kind( \\
                const void *of_t, const void *of_x, const void *of_y, void *result, \\
                npy_intp *equal, const npy_intp *at, npy_intp count, const npy_intp *lines) { \\
            const type *t = of_t, *x = of_x, *y = of_y; \\
            const npy_intp n = lines[1], inner = lines[2]; \\
            type *out = result; \\
            npy_intp block, k; \\
            for (block = 0; block < lines[0]; block++) { \\
                for (k = 0; k < count; k++, y += inner, out += inner) { \\
                    const npy_intp start = at[k], stop = cytape_end(at, k, count, n); \\
                    cytape_fold_##kind(t + start * inner, x + start * inner, y, out, equal, \\
                                       stop - start, inner); \\
                } \\
                t += n * inner; \\
                x += n * inner; \\
            } \\
        }
    CYTAPE_SLICES(f, float)
    CYTAPE_SLICES(d, double)
    CYTAPE_SLICES(g, npy_longdouble)
    CYTAPE_SLICES(F, float _Complex)
    CYTAPE_SLICES(D, double _Complex)
    CYTAPE_SLICES(G, long double _Complex)
    typedef void (*cytape_spread_t)(
        const void *, const void *, const void *, void *, void *, npy_intp *, const npy_intp *,
        npy_intp, const npy_intp *, int);
    typedef void (*cytape_fold_t)(
        const void *, const void *, const void *, void *, npy_intp *, const npy_intp *, npy_intp,
        const npy_intp *);
    #define CYTAPE_OF_ALL(name) {name##_f, name##_d, name##_g, name##_F, name##_D, name##_G}
    static cytape_spread_t cytape_repeated[] = CYTAPE_OF_ALL(cytape_repeated);
    static cytape_spread_t cytape_chosen[] = CYTAPE_OF_ALL(cytape_chosen);
    static cytape_fold_t cytape_folded[] = CYTAPE_OF_ALL(cytape_folded);
    """
    spread_t* cytape_repeated
    spread_t* cytape_chosen
    fold_t* cytape_folded

cdef int64_t* effort = effort_so_far()
DTYPES = "fdgFDG"


def spread(g, indices, n, axis, negative=False):
    """Add the gradient of each slice to all elements of the slice.

    Parameters
    ----------
    g : ndarray
        The gradients, of floats or complex numbers of single precision or more.
    indices : ndarray
        The indices of `numpy.ufunc.reduceat`.
    n : int
        The number of elements along the axis.
    axis : int
    negative : bool, optional
        All elements of a slice but the first get the opposite.

    Returns
    -------
    ndarray

    Raises
    ------
    IndexError
        If an index is not one of an element.
    """
    shape = (*g.shape[:axis], n, *g.shape[axis + 1:])
    return spread_by(cytape_repeated, g, None, None, shape, indices, axis, negative)


def spread_to_extrema(g, x, y, indices, axis):
    """Spread gradients of the extrema of slices to the elements that are the extrema.

    Ties share the gradient as in a fold: the last one gets half, the one before it half of the
    rest, and so on. If the extremum is NaN, the first NaN gets the gradient.

    Parameters
    ----------
    g, y : ndarray
        The gradients, and the extrema.
    x : ndarray
        The elements; all are of one dtype.
    indices, axis
        As for `spread`.

    Returns
    -------
    ndarray
    """
    return spread_by(cytape_chosen, g, in_c_order(x), in_c_order(y), x.shape, indices, axis, False)


cdef spread_by(spread_t* loops, g, ndarray x, ndarray y, tuple shape, indices, int axis,
               bint negative):
    cdef ndarray gradients = in_c_order(g), result = np.empty(shape, g.dtype)
    cdef ndarray at = checked(indices, shape, axis)
    cdef npy_intp[3] lines
    cdef npy_intp count = at.size
    of_slices = (*shape[:axis], count, *shape[axis + 1:])
    require(gradients, of_slices, result)
    require(x, shape, result)
    require(y, of_slices, result)
    cdef int kind = kind_of(g.dtype)
    cdef const npy_intp* begins = <npy_intp*>cnp.PyArray_DATA(at)
    lines_of(result, axis, lines)
    cdef bint in_order = True
    cdef npy_intp k
    for k in range(count - 1):
        in_order = in_order and begins[k + 1] > begins[k]
    cdef npy_intp* equal = <npy_intp*>malloc(
        lines[2] * sizeof(npy_intp) + (1 if in_order else lines[1] * lines[2] * result.itemsize))
    if equal == NULL:
        raise MemoryError()
    cdef void* apart = equal + lines[2]
    cdef void* of_x = NULL if x is None else cnp.PyArray_DATA(x)
    cdef void* of_y = NULL if y is None else cnp.PyArray_DATA(y)
    effort[0] += result.nbytes
    with nogil:
        loops[kind](cnp.PyArray_DATA(gradients), of_x, of_y, cnp.PyArray_DATA(result), apart, equal,
                    begins, count, lines, negative)
    free(equal)
    return result


def fold_at_extrema(t, x, y, indices, axis):
    """Return the tangents of the extrema of slices: the transpose of `spread_to_extrema`.

    Parameters
    ----------
    t : ndarray
        The tangents of the elements.
    x, y, indices, axis
        As for `spread_to_extrema`.

    Returns
    -------
    ndarray
    """
    cdef ndarray tangents = in_c_order(t), elements = in_c_order(x), extrema = in_c_order(y)
    cdef ndarray at = checked(indices, x.shape, axis), result = np.empty(y.shape, t.dtype)
    cdef npy_intp[3] lines
    cdef int kind = kind_of(t.dtype)
    cdef npy_intp count = at.size
    shape = (<object>elements).shape
    require(tangents, shape, result)
    require(elements, shape, result)
    require(extrema, (*shape[:axis], count, *shape[axis + 1:]), result)
    lines_of(elements, axis, lines)
    cdef npy_intp* equal = <npy_intp*>malloc(lines[2] * sizeof(npy_intp) + 1)
    if equal == NULL:
        raise MemoryError()
    effort[0] += elements.nbytes
    with nogil:
        cytape_folded[kind](
            cnp.PyArray_DATA(tangents), cnp.PyArray_DATA(elements), cnp.PyArray_DATA(extrema),
            cnp.PyArray_DATA(result), equal, <npy_intp*>cnp.PyArray_DATA(at), count, lines)
    free(equal)
    return result


cdef int kind_of(dtype) except -1:
    """Return the number of the loop for a dtype."""
    if dtype.char not in DTYPES or not dtype.isnative:
        raise TypeError(
            f"expected floats or complex numbers of at least single precision, got {dtype}: "
            "convert them first")
    return DTYPES.index(dtype.char)


cdef ndarray checked(indices, tuple shape, int axis):
    """Return indices along an axis, or raise if one is out of bounds."""
    if not 0 <= axis < len(shape):
        raise ValueError(f"axis must be at least 0 and less than {len(shape)}, got {axis}")
    cdef npy_intp n = shape[axis]
    cdef ndarray at = np.ascontiguousarray(indices, np.intp)
    cdef npy_intp* of_at = <npy_intp*>cnp.PyArray_DATA(at)
    cdef npy_intp k
    for k in range(at.size):
        if not 0 <= of_at[k] < n:
            raise IndexError(f"index {of_at[k]} out of bounds for {n} elements")
    return at


cdef int require(array, shape, result) except -1:
    """Raise if an array (None is allowed) has a shape or dtype other than the result's."""
    if array is not None and (array.shape != shape or array.dtype != result.dtype):
        raise ValueError(
            f"expected an array of shape {shape} and dtype {result.dtype}, got one of shape "
            f"{array.shape} and dtype {array.dtype}")
    return 0
