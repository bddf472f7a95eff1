cimport cytape.ops.kernels.compilers

import numpy as np

cdef extern from *:
    """
    #include <math.h>
    #include <stdlib.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CYTAPE_VECTOR_MATH(name) \\
        __attribute__((simd("notinbranch"), const, nothrow, leaf)) \\
        extern double cytape_scalar_##name(double) __asm__(#name); \\
        __attribute__((target("avx512f,prefer-vector-width=512"))) \\
        static void name##_avx512(const double *x, double *y, npy_intp n) { \\
            npy_intp i; \\
            for (i = 0; i < n; i++) { y[i] = cytape_scalar_##name(x[i]); } \\
        } \\
        __attribute__((target("avx2,fma"))) \\
        static void name##_avx2(const double *x, double *y, npy_intp n) { \\
            npy_intp i; \\
            for (i = 0; i < n; i++) { y[i] = cytape_scalar_##name(x[i]); } \\
        } \\
        static void cytape_##name(char **data, const npy_intp *n, const npy_intp *strides, \\
                                  void *extra) { \\
            const double *x = (const double *)data[0]; \\
            double *y = (double *)data[1]; \\
            npy_intp i; \\
            if (strides[0] != sizeof(double) || strides[1] != sizeof(double)) { \\
                for (i = 0; i < *n; i++) { \\
                    *(double *)(data[1] + i * strides[1]) = cytape_scalar_##name( \\
                        *(const double *)(data[0] + i * strides[0])); \\
                } \\
            } else if (__builtin_cpu_supports("avx512f")) { \\
                name##_avx512(x, y, *n); \\
            } else { \\
                name##_avx2(x, y, *n); \\
            } \\
        }
    CYTAPE_VECTOR_MATH(sin)
    CYTAPE_VECTOR_MATH(cos)
    #define CYTAPE_HAS_VECTOR_MATH (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    #else
    #define CYTAPE_HAS_VECTOR_MATH 0
    #define cytape_sin NULL
    #define cytape_cos NULL
    #endif

    /* Of an array and a number, or of two arrays; NaN stays, of equal ones b is taken. */
    #define CYTAPE_CHOSEN(a, b, compare) ((compare(a, b) | !isgreaterequal(a, a)) ? (a) : (b))
    #define CYTAPE_EXTREMUM(name, compare) \\
        CYTAPE_FOR_CPU CYTAPE_NO_BRANCHES static void cytape_##name( \\
                char **data, const npy_intp *n, const npy_intp *strides, void *extra) { \\
            const double *x = (const double *)data[0], *y = (const double *)data[1]; \\
            double *out = (double *)data[2]; \\
            const npy_intp size = sizeof(double); \\
            npy_intp i; \\
            if (strides[0] == size && strides[1] == 0 && strides[2] == size) { \\
                const double b = *y; \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < *n; i++) { out[i] = CYTAPE_CHOSEN(x[i], b, compare); } \\
            } else if (strides[0] == size && strides[1] == size && strides[2] == size) { \\
                CYTAPE_INDEPENDENT \\
                for (i = 0; i < *n; i++) { out[i] = CYTAPE_CHOSEN(x[i], y[i], compare); } \\
            } else { \\
                for (i = 0; i < *n; i++) { \\
                    const double a = *(const double *)(data[0] + i * strides[0]); \\
                    const double b = *(const double *)(data[1] + i * strides[1]); \\
                    *(double *)(data[2] + i * strides[2]) = CYTAPE_CHOSEN(a, b, compare); \\
                } \\
            } \\
        }
    CYTAPE_EXTREMUM(maximum, isgreater)
    CYTAPE_EXTREMUM(minimum, isless)
    """
    bint CYTAPE_HAS_VECTOR_MATH
    void* cytape_sin
    void* cytape_cos
    loop_t cytape_maximum
    loop_t cytape_minimum


cdef loop_t vector_loop(ufunc) except? NULL:
    if CYTAPE_HAS_VECTOR_MATH and ufunc is np.cos:
        return <loop_t><void*>cytape_cos
    if CYTAPE_HAS_VECTOR_MATH and ufunc is np.sin:
        return <loop_t><void*>cytape_sin
    return cytape_maximum if ufunc is np.maximum else (
        cytape_minimum if ufunc is np.minimum else NULL)
