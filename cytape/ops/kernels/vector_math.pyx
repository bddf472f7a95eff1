import numpy as np

cdef extern from *:
    """
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
    """
    bint CYTAPE_HAS_VECTOR_MATH
    void* cytape_sin
    void* cytape_cos


cdef loop_t vector_loop(ufunc) except? NULL:
    if CYTAPE_HAS_VECTOR_MATH and ufunc is np.cos:
        return <loop_t><void*>cytape_cos
    if CYTAPE_HAS_VECTOR_MATH and ufunc is np.sin:
        return <loop_t><void*>cytape_sin
    return NULL
