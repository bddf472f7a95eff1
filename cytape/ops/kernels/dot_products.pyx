cimport numpy as cnp

from .ufunc_loops cimport Kernel, kernel_of, loop_t

import numpy as np

cnp.import_array()

cdef extern from *:
    """
    /* A product that is added is rounded first, as it is where it gets memory of its own. Like
       all sums of products of BLAS it begins with a zero, beside which -0.0 is 0.0. */
    #if defined(__clang__)
    #define CYTAPE_ROUNDED
    #define CYTAPE_ROUND _Pragma("STDC FP_CONTRACT OFF")
    #elif defined(__GNUC__)
    #define CYTAPE_ROUNDED __attribute__((optimize("fp-contract=off")))
    #define CYTAPE_ROUND
    #else
    #define CYTAPE_ROUNDED
    #define CYTAPE_ROUND
    #endif
    #define CYTAPE_OUTER(name, type, assign) \\
        CYTAPE_ROUNDED static void name(char **data, const npy_intp *dimensions, \\
                                        const npy_intp *strides, void *extra) { \\
            CYTAPE_ROUND \\
            /* A single column is gone through as a row: the inner loop is the long one. */ \\
            const int turned = dimensions[3] == 1; \\
            const npy_intp rows = dimensions[turned ? 3 : 1]; \\
            const npy_intp columns = dimensions[turned ? 1 : 3]; \\
            const npy_intp down = strides[turned ? 6 : 3]; \\
            const npy_intp along = strides[turned ? 3 : 6]; \\
            npy_intp k, i, j; \\
            for (k = 0; k < dimensions[0]; k++) { \\
                const char *a = data[turned ? 1 : 0] + k * strides[turned ? 1 : 0]; \\
                const char *b = data[turned ? 0 : 1] + k * strides[turned ? 0 : 1]; \\
                type *out = (type *)(data[2] + k * strides[2]); \\
                for (i = 0; i < rows; i++) { \\
                    const type x = *(const type *)(a + i * down); \\
                    if (along == sizeof(type)) { \\
                        const type *y = (const type *)b; \\
                        for (j = 0; j < columns; j++) { out[j] assign x * y[j] + (type)0; } \\
                    } else { \\
                        for (j = 0; j < columns; j++) { \\
                            out[j] assign x * *(const type *)(b + j * along) + (type)0; \\
                        } \\
                    } \\
                    out += columns; \\
                } \\
            } \\
        }
    CYTAPE_OUTER(cytape_outer_double, double, =)
    CYTAPE_OUTER(cytape_outer_float, float, =)
    CYTAPE_OUTER(cytape_add_outer_double, double, +=)
    CYTAPE_OUTER(cytape_add_outer_float, float, +=)
    """
    void cytape_outer_double() noexcept
    void cytape_outer_float() noexcept
    void cytape_add_outer_double() noexcept
    void cytape_add_outer_float() noexcept

cdef Kernel matmul_kernel = kernel_of(np.matmul)
cdef Loop outer_loops[2]
cdef Loop add_outer_loops[2]
outer_loops[0].function = <loop_t><void*>cytape_outer_double
outer_loops[1].function = <loop_t><void*>cytape_outer_float
add_outer_loops[0].function = <loop_t><void*>cytape_add_outer_double
add_outer_loops[1].function = <loop_t><void*>cytape_add_outer_float


cdef Loop* product_loop(int type_num, npy_intp inner) noexcept:
    if inner == 1:
        return &outer_loops[type_num == cnp.NPY_FLOAT]
    return &matmul_kernel.loops[type_num]


cdef Loop* add_outer_loop(int type_num) noexcept:
    return &add_outer_loops[type_num == cnp.NPY_FLOAT]
