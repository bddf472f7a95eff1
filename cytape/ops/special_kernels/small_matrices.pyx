cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from cytape.core.interrupts cimport effort_so_far
from libc.math cimport fabs
from libc.stdint cimport int64_t
from numpy cimport ndarray, npy_intp, PyUFuncGenericFunction

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from *:
    """
    #include <math.h>

    /* Products are rounded before they are subtracted, as they are in arrays of their own. */
    #if defined(__clang__)
    #define CYTAPE_ROUND _Pragma("STDC FP_CONTRACT OFF")
    #define CYTAPE_ROUNDED
    #elif defined(__GNUC__)
    #define CYTAPE_ROUND
    #define CYTAPE_ROUNDED __attribute__((optimize("fp-contract=off")))
    #else
    #define CYTAPE_ROUND
    #define CYTAPE_ROUNDED
    #endif

    #define CYTAPE_CROSS(type) \\
        CYTAPE_ROUNDED static void cytape_cross_##type( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            CYTAPE_ROUND \\
            npy_intp i; \\
            for (i = 0; i < n[0]; i++) { \\
                const char *x = data[0] + i * strides[0], *y = data[1] + i * strides[1]; \\
                char *z = data[2] + i * strides[2]; \\
                const type *x0 = (const type *)x, *x1 = (const type *)(x + strides[3]); \\
                const type *x2 = (const type *)(x + 2 * strides[3]); \\
                const type *y0 = (const type *)y, *y1 = (const type *)(y + strides[4]); \\
                const type *y2 = (const type *)(y + 2 * strides[4]); \\
                type *z0 = (type *)z, *z1 = (type *)(z + strides[5]); \\
                type *z2 = (type *)(z + 2 * strides[5]); \\
                *z0 = *x1 * *y2 - *x2 * *y1; \\
                *z1 = *x2 * *y0 - *x0 * *y2; \\
                *z2 = *x0 * *y1 - *x1 * *y0; \\
            } \\
        }
    CYTAPE_CROSS(float)
    CYTAPE_CROSS(double)
    static PyUFuncGenericFunction cytape_cross[] = {
        (PyUFuncGenericFunction)cytape_cross_float, (PyUFuncGenericFunction)cytape_cross_double,
    };
    static char cytape_types[] = {
        NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
    };
    static void *cytape_no_data[2];

    /* The rows and columns from k on of a symmetric matrix whose diagonal is doubled: with the
       column k of the factor the entries of the gradient in that row and column become final. */
    CYTAPE_FOR_CPU static void cytape_cholesky(const double *lower, double *g, npy_intp n) {
        npy_intp i, j, k;
        for (k = n - 1; k >= 0; k--) {
            const double pivot = lower[k * n + k];
            double *const row = g + k * n, inner = 0;
            for (i = k + 1; i < n; i++) {
                const double factor = lower[i * n + k], *const other = g + i * n;
                CYTAPE_INDEPENDENT
                for (j = k + 1; j < n; j++) { row[j] -= factor * other[j]; }
            }
            for (j = k + 1; j < n; j++) {
                row[j] /= pivot;
                inner += lower[j * n + k] * row[j];
                g[j * n + k] = row[j];
            }
            row[k] = (row[k] / 2 - inner) / pivot;
        }
        for (i = 0; i < n * n; i++) { g[i] /= 2; }
    }

    /* The elimination backwards, row by row: the gradient of the packed factors becomes that of
       the matrix. The transpose has columns of U in its rows. */
    CYTAPE_FOR_CPU static void cytape_lu(const double *packed, const double *transpose, double *g,
                                         npy_intp n) {
        npy_intp i, j, k;
        for (i = n - 1; i >= 0; i--) {
            double *const row = g + i * n;
            for (j = i + 1; j < n; j++) {
                const double factor = packed[j * n + i], *const other = g + j * n;
                CYTAPE_INDEPENDENT
                for (k = i; k < n; k++) { row[k] -= factor * other[k]; }
            }
            for (j = n - 1; j >= 0; j--) {
                const double *const column = transpose + j * n;
                const double factor = j < i ? row[j] / column[j] : row[j];
                row[j] = factor;
                CYTAPE_INDEPENDENT
                for (k = 0; k < (j < i ? j : i); k++) { row[k] -= factor * column[k]; }
            }
        }
    }

    #define CYTAPE_SMALL 64

    /* Gauss and Jordan's elimination in place, with the largest of each column as the pivot;
       returns the determinant, 0 as soon as that is known. The rows that were exchanged are columns
       of the inverse. Rows are filled up with zeros to whole vectors of four. */
    CYTAPE_FOR_CPU static double cytape_invert(double *matrix, npy_intp n) {
        double a[CYTAPE_SMALL * CYTAPE_SMALL], determinant = 1;
        npy_intp from[CYTAPE_SMALL];
        const npy_intp width = (n + 3) / 4 * 4;
        npy_intp i, j, k;
        for (i = 0; i < n; i++) {
            for (j = 0; j < width; j++) { a[i * width + j] = j < n ? matrix[i * n + j] : 0; }
        }
        for (k = 0; k < n; k++) {
            double *const row = a + k * width;
            double pivot, largest = fabs(row[k]);
            from[k] = k;
            for (i = k + 1; i < n; i++) {
                if (fabs(a[i * width + k]) > largest) {
                    largest = fabs(a[i * width + k]);
                    from[k] = i;
                }
            }
            if (largest == 0) { return 0; }
            for (j = 0; j < n && from[k] != k; j++) {
                const double x = row[j];
                row[j] = a[from[k] * width + j];
                a[from[k] * width + j] = x;
            }
            pivot = row[k];
            determinant *= from[k] == k ? pivot : -pivot;
            row[k] = 1;
            for (j = 0; j < width; j++) { row[j] /= pivot; }
            for (i = 0; i < n; i++) {
                double *const other = a + i * width;
                const double factor = other[k];
                if (i != k) {
                    other[k] = 0;
                    CYTAPE_INDEPENDENT
                    for (j = 0; j < width; j++) { other[j] -= factor * row[j]; }
                }
            }
        }
        for (k = n - 1; k >= 0; k--) {
            for (i = 0; i < n && from[k] != k; i++) {
                const double x = a[i * width + k];
                a[i * width + k] = a[i * width + from[k]];
                a[i * width + from[k]] = x;
            }
        }
        for (i = 0; i < n; i++) {
            for (j = 0; j < n; j++) { matrix[i * n + j] = a[i * width + j]; }
        }
        return determinant;
    }
    """
    int CYTAPE_SMALL
    double cytape_invert(double* a, npy_intp n) noexcept nogil
    PyUFuncGenericFunction* cytape_cross
    char* cytape_types
    void** cytape_no_data
    void cytape_cholesky(const double* lower, double* g, npy_intp n) noexcept nogil
    void cytape_lu(const double* packed, const double* transpose, double* g,
                   npy_intp n) noexcept nogil

cdef double LEAST = 1e-290, MOST = 1e290  # determinants that are divided by
cdef int64_t* effort = effort_so_far()

SMALL = CYTAPE_SMALL

cross = cnp.PyUFunc_FromFuncAndDataAndSignature(
    cytape_cross, cytape_no_data, cytape_types, 2, 2, 1, cnp.PyUFunc_None, b"cross", NULL, 0,
    b"(3),(3)->(3)")


def cholesky_gradient(lower, g):
    """Return the gradients of symmetric matrices, given those of their Cholesky factors.

    Computed in double precision. Elements above the diagonals are not read.

    Parameters
    ----------
    lower : ndarray
        The factors; of float32 or float64.
    g : ndarray
        Their gradients; of the shape and dtype of `lower`.

    Returns
    -------
    ndarray

    Raises
    ------
    TypeError
        If they are not square matrices of one such dtype and shape.
    """
    return gradients(lower, g, True)


def lu_gradient(packed, g):
    """Return the gradients of matrices, given those of their packed factors L and U.

    The matrices are those whose rows have been exchanged. Parameters, dtypes, the result and errors
    are those of `cholesky_gradient`.
    """
    return gradients(packed, g, False)


cdef ndarray gradients(given, g, bint symmetric):
    if given.dtype != g.dtype or given.shape != g.shape or not takes(g):
        raise TypeError(
            "expected square matrices and gradients of one shape and one dtype, float32 or "
            f"float64, not of shapes {given.shape} and {g.shape} and dtypes {given.dtype} and "
            f"{g.dtype}: convert them first")
    cdef ndarray factors = np.ascontiguousarray(given, float)
    cdef ndarray transposed = factors if symmetric else (
        np.ascontiguousarray(factors.swapaxes(-1, -2)))
    cdef ndarray result = np.array(g, float, order="C")
    cdef npy_intp n = result.shape[result.ndim - 1]
    cdef npy_intp size = n * n
    cdef npy_intp i
    cdef double* of_factors = <double*>cnp.PyArray_DATA(factors)
    cdef double* of_transposed = <double*>cnp.PyArray_DATA(transposed)
    cdef double* of_result = <double*>cnp.PyArray_DATA(result)
    effort[0] += result.size * n
    with nogil:
        for i in range(result.size // size if size else 0):
            if symmetric:
                mirror(of_result + i * size, n)
                cytape_cholesky(of_factors + i * size, of_result + i * size, n)
            else:
                cytape_lu(of_factors + i * size, of_transposed + i * size, of_result + i * size, n)
    return result.astype(g.dtype, copy=False)


cdef bint takes(x) except -1:
    return x.dtype.char in "fd" and x.ndim > 1 and x.shape[x.ndim - 1] == x.shape[x.ndim - 2]


cdef void mirror(double* matrix, npy_intp n) noexcept nogil:
    """Add the transpose of the lower triangle to the matrix."""
    cdef npy_intp i, j
    for i in range(n):
        for j in range(i):
            matrix[j * n + i] = matrix[i * n + j]
        matrix[i * n + i] *= 2


def inverse(a):
    """Return the inverses of small matrices, None if one of them is singular.

    Computed in double precision, like NumPy's, but with fewer operations; the last bits may differ.

    Parameters
    ----------
    a : ndarray
        Matrices of float32 or float64, of `SMALL` rows at most.

    Returns
    -------
    ndarray or None

    Raises
    ------
    TypeError
        If they are no such matrices.
    """
    cdef ndarray result = copy_of_small(a)
    cdef npy_intp n = result.shape[result.ndim - 1]
    cdef double* matrix = <double*>cnp.PyArray_DATA(result)
    cdef double* end = matrix + result.size
    effort[0] += result.size * n
    with nogil:
        while matrix != end and cytape_invert(matrix, n) != 0:
            matrix += n * n
    return result.astype(a.dtype, copy=False) if matrix == end else None


def cofactors(a, determinants):
    """Return the derivatives of the determinants of small matrices, made of their inverses.

    Parameters
    ----------
    a : ndarray
        Matrices of float32 or float64, of `SMALL` rows at most.
    determinants : ndarray

    Returns
    -------
    ndarray or None
        None if a matrix is close to a singular one.

    Raises
    ------
    TypeError
        If they are no such matrices.
    """
    cdef ndarray result = copy_of_small(a.swapaxes(-1, -2) if a.ndim > 1 else a)
    cdef ndarray given = np.ascontiguousarray(determinants, float)
    cdef npy_intp n = result.shape[result.ndim - 1]
    cdef double* matrix = <double*>cnp.PyArray_DATA(result)
    cdef double* end = matrix + result.size
    cdef double* expected = <double*>cnp.PyArray_DATA(given)
    cdef double found
    if given.size * n * n != result.size:
        raise TypeError("expected a determinant per matrix, not an array of shape "
                        f"{determinants.shape} for matrices of shape {a.shape}")
    effort[0] += result.size * n
    with nogil:
        while matrix != end:
            found = cytape_invert(matrix, n)
            if not LEAST <= fabs(found) <= MOST or (
                    not fabs(found - expected[0]) <= 1e-6 * fabs(found)):
                break
            scale(matrix, expected[0], n)
            matrix += n * n
            expected += 1
    if matrix != end:
        return None
    return result.astype(a.dtype, copy=False)


cdef void scale(double* matrix, double factor, npy_intp n) noexcept nogil:
    cdef npy_intp i
    for i in range(n * n):
        matrix[i] *= factor


cdef ndarray copy_of_small(a):
    if not takes(a) or a.shape[a.ndim - 1] > SMALL:
        raise TypeError(
            f"expected square matrices of {SMALL} rows at most and of float32 or float64, not of "
            f"shape {a.shape} and dtype {a.dtype}: call numpy.linalg.inv")
    return np.array(a, float, order="C")
