cimport cytape.ops.kernels.compilers
cimport cytape.ops.kernels.ufunc_loops
cimport numpy as cnp
from numpy cimport PyUFuncGenericFunction

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from *:
    """
    #define CYTAPE_IS_INVALID() (cytape_trouble() & FE_INVALID)

    typedef struct { float re, im; } cytape_cfloat;
    typedef struct { double re, im; } cytape_cdouble;
    typedef struct { npy_longdouble re, im; } cytape_clongdouble;

    /* Numbers of a kind: whether one is above another, as NumPy orders them; whether they are
       equal; whether one is NaN; half of one; zero. */
    #define REAL_ABOVE(x, y) ((x) > (y))
    #define REAL_EQUAL(x, y) ((x) == (y))
    #define REAL_IS_NAN(x) ((x) != (x))
    #define REAL_HALVED(x) ((x) / 2)
    #define REAL_ZERO {0}
    #define HALF_IS_NAN(x) (((x) & 0x7fff) > 0x7c00)
    #define HALF_PLACE(x) ((x) & 0x8000 ? 0x8000 - (int)(x) : (int)(x))  /* among all numbers */
    #define HALF_ABOVE(x, y) (HALF_PLACE(x) > HALF_PLACE(y) && !HALF_IS_NAN(x) && !HALF_IS_NAN(y))
    #define HALF_EQUAL(x, y) (HALF_PLACE(x) == HALF_PLACE(y) && !HALF_IS_NAN(x))
    #define HALF_ZERO {0}
    static inline npy_half HALF_HALVED(npy_half x) {
        const unsigned size = x & 0x7fff;
        if (size >= 0x0800) { return size < 0x7c00 ? x - 0x0400 : x; }
        return (x & 0x8000) | ((size >> 1) + (size & size >> 1 & 1));  /* to even */
    }
    #define COMPLEX_ABOVE(x, y) (((x).re > (y).re && (x).im == (x).im && (y).im == (y).im) \\
                                 || ((x).re == (y).re && (x).im > (y).im))
    #define COMPLEX_EQUAL(x, y) ((x).re == (y).re && (x).im == (y).im)
    #define COMPLEX_IS_NAN(x) ((x).re != (x).re || (x).im != (x).im)
    #define COMPLEX_HALVED(x) {(x).re / 2, (x).im / 2}
    #define COMPLEX_ZERO {0, 0}

    /* Which elements the first operand of a function gives, where the two are not equal. */
    #define IN_MAXIMUM(kind) (kind##_ABOVE(a, b) | kind##_IS_NAN(a))
    #define IN_MINIMUM(kind) (kind##_ABOVE(b, a) | kind##_IS_NAN(a))
    #define IN_FMAX(kind) (kind##_ABOVE(a, b) | kind##_IS_NAN(b))
    #define IN_FMIN(kind) (kind##_ABOVE(b, a) | kind##_IS_NAN(b))
    #define FIRST(kind, in) (in(kind))
    #define SECOND(kind, in) (!in(kind))

    #define CYTAPE_SHARE(type, kind, position, in) { \\
        const type half = kind##_HALVED(whole), none = kind##_ZERO; \\
        const type one = position(kind, in) ? whole : none; \\
        *out = kind##_EQUAL(a, b) ? half : one; \\
    }
    #define CYTAPE_UNCHANGED(type, kind, position, in) { \\
        const type none = kind##_ZERO; \\
        *out = kind##_EQUAL(a, b) | (kind##_IS_NAN(a) & kind##_IS_NAN(b)) ? whole : none; \\
    }

    #define CYTAPE_NEAR(type, first, second, act, position, in) \\
        CYTAPE_INDEPENDENT \\
        for (i = 0; i < count; i++) { \\
            const type whole = first, a = x[i], b = second; \\
            type *const out = z + i; \\
            act(type, REAL, position, in) \\
        }
    #define CYTAPE_NEAR_LOOPS(type, act, position, in) \\
        const type *g = (const type *)data[0], *x = (const type *)data[1]; \\
        const type *y = (const type *)data[2], gradient = *g, number = *y; \\
        type *z = (type *)data[3]; \\
        if (strides[0] && strides[2]) { \\
            CYTAPE_NEAR(type, g[i], y[i], act, position, in) \\
        } else if (strides[0]) { \\
            CYTAPE_NEAR(type, g[i], number, act, position, in) \\
        } else if (strides[2]) { \\
            CYTAPE_NEAR(type, gradient, y[i], act, position, in) \\
        } else { \\
            CYTAPE_NEAR(type, gradient, number, act, position, in) \\
        }
    #define CYTAPE_IS_NEAR(type) (count && strides[1] == sizeof(type) \\
                                  && strides[3] == sizeof(type) \\
                                  && (strides[0] == sizeof(type) || strides[0] == 0) \\
                                  && (strides[2] == sizeof(type) || strides[2] == 0))

    #define CYTAPE_STRIDED_LOOP(type, kind, act, position, in) \\
        for (i = 0; i < count; i++) { \\
            const type whole = *(const type *)(data[0] + i * strides[0]); \\
            const type a = *(const type *)(data[1] + i * strides[1]); \\
            const type b = *(const type *)(data[2] + i * strides[2]); \\
            type *const out = (type *)(data[3] + i * strides[3]); \\
            act(type, kind, position, in) \\
        }

    /* A comparison with NaN is not an invalid operation here. */
    #define CYTAPE_DEFINE(name, type, loops) \\
        static void cytape_##name##_##type(char **data, const npy_intp *n, \\
                                           const npy_intp *strides, void *extra) { \\
            const int before = CYTAPE_IS_INVALID(); \\
            const npy_intp count = *n; \\
            npy_intp i; \\
            loops \\
            if (!before && CYTAPE_IS_INVALID()) { feclearexcept(FE_INVALID); } \\
        }
    #define CYTAPE_FAST(name, type, act, position, in) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES CYTAPE_DEFINE(name, type, \\
            if (CYTAPE_IS_NEAR(type)) { \\
                CYTAPE_NEAR_LOOPS(type, act, position, in) \\
            } else { \\
                CYTAPE_STRIDED_LOOP(type, REAL, act, position, in) \\
            })
    #define CYTAPE_ANY(name, type, kind, act, position, in) \\
        CYTAPE_DEFINE(name, type, CYTAPE_STRIDED_LOOP(type, kind, act, position, in))
    #define CYTAPE_UFUNC(name, act, position, in) \\
        CYTAPE_ANY(name, npy_half, HALF, act, position, in) \\
        CYTAPE_FAST(name, npy_float, act, position, in) \\
        CYTAPE_FAST(name, npy_double, act, position, in) \\
        CYTAPE_ANY(name, npy_longdouble, REAL, act, position, in) \\
        CYTAPE_ANY(name, cytape_cfloat, COMPLEX, act, position, in) \\
        CYTAPE_ANY(name, cytape_cdouble, COMPLEX, act, position, in) \\
        CYTAPE_ANY(name, cytape_clongdouble, COMPLEX, act, position, in) \\
        static PyUFuncGenericFunction cytape_##name[] = { \\
            (PyUFuncGenericFunction)cytape_##name##_npy_half, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_float, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_double, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_longdouble, \\
            (PyUFuncGenericFunction)cytape_##name##_cytape_cfloat, \\
            (PyUFuncGenericFunction)cytape_##name##_cytape_cdouble, \\
            (PyUFuncGenericFunction)cytape_##name##_cytape_clongdouble, \\
        };
    CYTAPE_UFUNC(first_of_maximum, CYTAPE_SHARE, FIRST, IN_MAXIMUM)
    CYTAPE_UFUNC(second_of_maximum, CYTAPE_SHARE, SECOND, IN_MAXIMUM)
    CYTAPE_UFUNC(first_of_minimum, CYTAPE_SHARE, FIRST, IN_MINIMUM)
    CYTAPE_UFUNC(second_of_minimum, CYTAPE_SHARE, SECOND, IN_MINIMUM)
    CYTAPE_UFUNC(first_of_fmax, CYTAPE_SHARE, FIRST, IN_FMAX)
    CYTAPE_UFUNC(second_of_fmax, CYTAPE_SHARE, SECOND, IN_FMAX)
    CYTAPE_UFUNC(first_of_fmin, CYTAPE_SHARE, FIRST, IN_FMIN)
    CYTAPE_UFUNC(second_of_fmin, CYTAPE_SHARE, SECOND, IN_FMIN)
    CYTAPE_UFUNC(where_unchanged, CYTAPE_UNCHANGED, , )
    static char cytape_types[4 * 7] = {
        NPY_HALF, NPY_HALF, NPY_HALF, NPY_HALF,
        NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT,
        NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
        NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE,
        NPY_CFLOAT, NPY_CFLOAT, NPY_CFLOAT, NPY_CFLOAT,
        NPY_CDOUBLE, NPY_CDOUBLE, NPY_CDOUBLE, NPY_CDOUBLE,
        NPY_CLONGDOUBLE, NPY_CLONGDOUBLE, NPY_CLONGDOUBLE, NPY_CLONGDOUBLE,
    };
    static void *cytape_no_data[7];
    """
    PyUFuncGenericFunction* cytape_first_of_maximum
    PyUFuncGenericFunction* cytape_second_of_maximum
    PyUFuncGenericFunction* cytape_first_of_minimum
    PyUFuncGenericFunction* cytape_second_of_minimum
    PyUFuncGenericFunction* cytape_first_of_fmax
    PyUFuncGenericFunction* cytape_second_of_fmax
    PyUFuncGenericFunction* cytape_first_of_fmin
    PyUFuncGenericFunction* cytape_second_of_fmin
    PyUFuncGenericFunction* cytape_where_unchanged
    char* cytape_types
    void** cytape_no_data


class Receiver(np.ndarray):
    """An operand that returns the ufunc it meets, since clip's ufunc has no public name."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return ufunc


cdef object ufunc(PyUFuncGenericFunction* loops, char* name):
    return cnp.PyUFunc_FromFuncAndData(
        loops, cytape_no_data, cytape_types, 7, 3, 1, cnp.PyUFunc_None, name, NULL, 0)


first_of_maximum = ufunc(cytape_first_of_maximum, b"first_of_maximum")
second_of_maximum = ufunc(cytape_second_of_maximum, b"second_of_maximum")
first_of_minimum = ufunc(cytape_first_of_minimum, b"first_of_minimum")
second_of_minimum = ufunc(cytape_second_of_minimum, b"second_of_minimum")
first_of_fmax = ufunc(cytape_first_of_fmax, b"first_of_fmax")
second_of_fmax = ufunc(cytape_second_of_fmax, b"second_of_fmax")
first_of_fmin = ufunc(cytape_first_of_fmin, b"first_of_fmin")
second_of_fmin = ufunc(cytape_second_of_fmin, b"second_of_fmin")
where_unchanged = ufunc(cytape_where_unchanged, b"where_unchanged")
clip = np.zeros(1).view(Receiver).clip(0, 1)
