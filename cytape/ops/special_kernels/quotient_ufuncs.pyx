cimport cytape.ops.kernels.compilers
cimport numpy as cnp
from numpy cimport PyUFuncGenericFunction

cnp.import_array()
cnp.import_ufunc()

cdef extern from *:
    """
    #include <fenv.h>
    #include <math.h>
    #define CYTAPE_AT_ONCE 256  /* elements that are looked at before a formula is chosen */

    #define CYTAPE_FLAGS (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW)

    /* What can be divided by, and keeps its precision. */
    #define IN_RANGE_npy_double(x) (isgreaterequal(x, 1e-280) & islessequal(x, 1e280))
    #define IN_RANGE_npy_float(x) (isgreaterequal(x, 1e-30f) & islessequal(x, 1e30f))
    #define MAGNITUDE_npy_double fabs
    #define MAGNITUDE_npy_float fabsf
    #define COUNT_npy_double npy_int64
    #define COUNT_npy_float npy_int32

    /* a / (b**2 + c**2); the careful one overflows only where the result does. */
    #define SQUARES_IN_RANGE(type) IN_RANGE_##type(b * b + c * c)
    #define SQUARES_QUICK(type) (a / (b * b + c * c))
    #define SQUARES_CAREFUL(type) cytape_over_squares_##type(a, b, c)
    #define CYTAPE_OVER_SQUARES(type) \\
        static type cytape_over_squares_##type(type a, type b, type c) { \\
            const int is_larger = !isgreater(c, b) == !isgreater(c, -b); \\
            const type found = is_larger ? c : b, smaller = is_larger ? b : c; \\
            const type larger = found == 0 ? (type)INFINITY : found; \\
            return a / larger / (larger + smaller * (smaller / larger)); \\
        }
    CYTAPE_OVER_SQUARES(npy_float)
    CYTAPE_OVER_SQUARES(npy_double)

    /* b**(c - 1), where a is b**c; 1 where b and c are 0. */
    #define POWER_IN_RANGE(type) ( \\
        IN_RANGE_##type(MAGNITUDE_##type(a)) & IN_RANGE_##type(MAGNITUDE_##type(b)))
    #define POWER_QUICK(type) (c == 2 ? b : a / b)
    #define POWER_CAREFUL(type) cytape_power_less_one_##type(a, b, c)
    #define POWER_npy_double pow
    #define POWER_npy_float powf
    #define CYTAPE_POWER_LESS_ONE(type) \\
        static type cytape_power_less_one_##type(type a, type b, type c) { \\
            return POWER_IN_RANGE(type) ? POWER_QUICK(type) \\
                                        : POWER_##type(b, b != 0 || c != 0 ? c - 1 : c); \\
        }
    CYTAPE_POWER_LESS_ONE(npy_float)
    CYTAPE_POWER_LESS_ONE(npy_double)

    /* The next so many elements of an operand, where they lie or copied together. */
    #define CYTAPE_NEXT(type, k, x, copied) \\
        if (strides[k] == sizeof(type)) { \\
            x = (const type *)data[k] + done; \\
        } else { \\
            for (i = 0; i < n; i++) { \\
                copied[i] = *(const type *)(data[k] + (done + i) * strides[k]); \\
            } \\
            x = copied; \\
        }
    #define CYTAPE_LOOP(name, type, kind) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_##name##_##type##_loop( \\
                char **data, const npy_intp *count, const npy_intp *strides, void *extra) { \\
            type x_copied[CYTAPE_AT_ONCE], y_copied[CYTAPE_AT_ONCE], z_copied[CYTAPE_AT_ONCE]; \\
            type results[CYTAPE_AT_ONCE]; \\
            npy_intp done, i, n; \\
            for (done = 0; done < *count; done += n) { \\
                const type *x, *y, *z; \\
                const int near = strides[3] == sizeof(type); \\
                type *out = near ? (type *)data[3] + done : results; \\
                const int before = fetestexcept(CYTAPE_FLAGS); \\
                COUNT_##type in_range = 0; \\
                n = *count - done < CYTAPE_AT_ONCE ? *count - done : CYTAPE_AT_ONCE; \\
                CYTAPE_NEXT(type, 0, x, x_copied) \\
                CYTAPE_NEXT(type, 1, y, y_copied) \\
                CYTAPE_NEXT(type, 2, z, z_copied) \\
                for (i = 0; i < n; i++) { \\
                    const type a = x[i], b = y[i], c = z[i]; \\
                    (void)a; (void)b; (void)c; \\
                    in_range += kind##_IN_RANGE(type); \\
                } \\
                if (in_range == n) { \\
                    CYTAPE_INDEPENDENT \\
                    for (i = 0; i < n; i++) { \\
                        const type a = x[i], b = y[i], c = z[i]; \\
                        out[i] = kind##_QUICK(type); \\
                    } \\
                } else { \\
                    /* To look at the elements is no reason for a warning. */ \\
                    feclearexcept(fetestexcept(CYTAPE_FLAGS) & ~before); \\
                    for (i = 0; i < n; i++) { \\
                        const type a = x[i], b = y[i], c = z[i]; \\
                        out[i] = kind##_CAREFUL(type); \\
                    } \\
                } \\
                for (i = 0; i < (near ? 0 : n); i++) { \\
                    *(type *)(data[3] + (done + i) * strides[3]) = out[i]; \\
                } \\
            } \\
        }
    #define CYTAPE_QUOTIENT(name, kind) \\
        CYTAPE_LOOP(name, npy_float, kind) \\
        CYTAPE_LOOP(name, npy_double, kind) \\
        static PyUFuncGenericFunction cytape_##name[] = { \\
            (PyUFuncGenericFunction)cytape_##name##_npy_float_loop, \\
            (PyUFuncGenericFunction)cytape_##name##_npy_double_loop, \\
        };
    CYTAPE_QUOTIENT(over_squares, SQUARES)
    CYTAPE_QUOTIENT(power_less_one, POWER)

    /* a / b, where b is the length of a vector with the component a: 0 if that is 0, and the sign
       of an infinite component. */
    #define CYTAPE_UNIT(type) \\
        static void cytape_unit_##type##_loop( \\
                char **data, const npy_intp *count, const npy_intp *strides, void *extra) { \\
            npy_intp i; \\
            for (i = 0; i < *count; i++) { \\
                const type a = *(const type *)(data[0] + i * strides[0]); \\
                const type b = *(const type *)(data[1] + i * strides[1]); \\
                const int is_infinite = MAGNITUDE_##type(a) == (type)INFINITY; \\
                const type above = is_infinite ? (a == (type)INFINITY ? (type)1 : (type)-1) : a; \\
                *(type *)(data[2] + i * strides[2]) = \\
                    (b == 0 ? (type)0 : above) / ((b == 0) | is_infinite ? (type)1 : b); \\
            } \\
        }
    CYTAPE_UNIT(npy_float)
    CYTAPE_UNIT(npy_double)
    static PyUFuncGenericFunction cytape_unit[] = {
        (PyUFuncGenericFunction)cytape_unit_npy_float_loop,
        (PyUFuncGenericFunction)cytape_unit_npy_double_loop,
    };

    /* (b - a) / b, the derivative of a * log(a / b) - a + b in b: 1 at the origin and at infinite
       b; NaN for negative operands. */
    #define CYTAPE_DIVERGENCE_SLOPE(type) \
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_divergence_slope_##type##_loop( \
                char **data, const npy_intp *count, const npy_intp *strides, void *extra) { \
            npy_intp i; \
            CYTAPE_INDEPENDENT \
            for (i = 0; i < *count; i++) { \
                const type a = *(const type *)(data[0] + i * strides[0]); \
                const type b = *(const type *)(data[1] + i * strides[1]); \
                const int is_limit = ((a == 0) & (b == 0)) \
                    | (isless(a, (type)INFINITY) & (b == (type)INFINITY)); \
                const int is_inside = isgreaterequal(a, 0) & isgreaterequal(b, 0); \
                const type slope = is_limit ? (type)1 : ((is_limit ? 0 : b) - a) \
                    / (is_limit ? (type)1 : b); \
                *(type *)(data[2] + i * strides[2]) = is_inside ? slope : (type)NAN; \
            } \
        }
    CYTAPE_DIVERGENCE_SLOPE(npy_float)
    CYTAPE_DIVERGENCE_SLOPE(npy_double)
    static PyUFuncGenericFunction cytape_divergence_slope[] = {
        (PyUFuncGenericFunction)cytape_divergence_slope_npy_float_loop,
        (PyUFuncGenericFunction)cytape_divergence_slope_npy_double_loop,
    };
    static char cytape_pairs_of_floats[3 * 2] = {
        NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
    };
    static char cytape_float_types[4 * 2] = {
        NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT,
        NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,
    };
    static void *cytape_nothing[2];
    """
    PyUFuncGenericFunction* cytape_over_squares
    PyUFuncGenericFunction* cytape_power_less_one
    PyUFuncGenericFunction* cytape_unit
    PyUFuncGenericFunction* cytape_divergence_slope
    char* cytape_float_types
    char* cytape_pairs_of_floats
    void** cytape_nothing


cdef object ufunc(PyUFuncGenericFunction* loops, char* types, int n_operands, char* name):
    return cnp.PyUFunc_FromFuncAndData(
        loops, cytape_nothing, types, 2, n_operands, 1, cnp.PyUFunc_None, name, NULL, 0)


over_squares = ufunc(cytape_over_squares, cytape_float_types, 3, b"over_squares")
power_less_one = ufunc(cytape_power_less_one, cytape_float_types, 3, b"power_less_one")
unit = ufunc(cytape_unit, cytape_pairs_of_floats, 2, b"unit")
divergence_slope = ufunc(
    cytape_divergence_slope, cytape_pairs_of_floats, 2, b"divergence_slope")
